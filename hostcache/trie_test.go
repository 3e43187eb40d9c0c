package hostcache_test

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/hostcache"
)

// families are sets of keys that are hard on a trie in ways of their own.
var families = []struct {
	name string
	key  func(r *rand.Rand) string
}{
	{"short", func(r *rand.Rand) string { return randomBytes(r, r.IntN(4)) }},
	{"zero bytes", func(r *rand.Rand) string { return strings.Repeat("\x00", r.IntN(300)) }},
	{"all ones", func(r *rand.Rand) string { return strings.Repeat("\xff", r.IntN(900)) }},
	{"two bytes", func(r *rand.Rand) string {
		return strings.Map(func(c rune) rune { return 'a' + c&1 }, randomBytes(r, 1+r.IntN(14)))
	}},
	{"random", func(r *rand.Rand) string { return randomBytes(r, r.IntN(20)) }},
	{"long common prefix", func(r *rand.Rand) string {
		return strings.Repeat("prefix", 100) + fmt.Sprint(r.IntN(3000))
	}},
	{"around the length of long keys", func(r *rand.Rand) string {
		return strings.Repeat("x", 250+r.IntN(10)) + fmt.Sprint(r.IntN(300))
	}},
	{"hosts", func(r *rand.Rand) string {
		return fmt.Sprintf("com.host-%d.www%d", r.IntN(500), r.IntN(4))
	}},
}

func randomBytes(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return string(b)
}

// mapping is what Trie and Sharded have in common.
type mapping[V any] interface {
	Get(key string) (V, bool)
	Set(key string, v V) bool
	Delete(key string) bool
	Len() int
	All() iter.Seq2[string, V]
	Prefix(prefix string) iter.Seq2[string, V]
	LongestPrefix(s string) (string, V, bool)
	Size() hostcache.Size
}

// eachType runs a test with values that are kept in different ways.
func eachType(t *testing.T, test func(t *testing.T, empty func() mapping[string])) {
	for name, empty := range map[string]func() mapping[string]{
		"inline":  func() mapping[string] { return as[[8]byte]{hostcache.NewTrie[[8]byte](), eight} },
		"pointer": func() mapping[string] { return hostcache.NewTrie[string]() },
		"big":     func() mapping[string] { return as[[200]byte]{hostcache.NewTrie[[200]byte](), big} },
		"sharded": func() mapping[string] { return hostcache.NewSharded[string]() },
	} {
		t.Run("values="+name, func(t *testing.T) { test(t, empty) })
	}
}

// as shows a mapping to arrays of bytes as one to strings.
type as[V any] struct {
	mapping[V]
	convert func(string) (to V, back func(V) string)
}

func eight(s string) ([8]byte, func([8]byte) string) {
	var b [8]byte
	copy(b[:], s)
	return b, func(b [8]byte) string { return strings.TrimRight(string(b[:]), "\x00") }
}

func big(s string) ([200]byte, func([200]byte) string) {
	var b [200]byte
	copy(b[192:], s)
	return b, func(b [200]byte) string { return strings.TrimRight(string(b[192:]), "\x00") }
}

func (a as[V]) back(v V) string {
	_, back := a.convert("")
	return back(v)
}

func (a as[V]) Get(key string) (string, bool) {
	v, found := a.mapping.Get(key)
	return a.back(v), found
}

func (a as[V]) Set(key, v string) bool {
	to, _ := a.convert(v)
	return a.mapping.Set(key, to)
}

func (a as[V]) All() iter.Seq2[string, string] { return a.Prefix("") }

func (a as[V]) Prefix(prefix string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for key, v := range a.mapping.Prefix(prefix) {
			if !yield(key, a.back(v)) {
				return
			}
		}
	}
}

func (a as[V]) LongestPrefix(s string) (string, string, bool) {
	key, v, found := a.mapping.LongestPrefix(s)
	return key, a.back(v), found
}

// TestAgainstMap sets and deletes keys at random, growing and shrinking by turns.
func TestAgainstMap(t *testing.T) {
	t.Parallel()
	eachType(t, func(t *testing.T, empty func() mapping[string]) {
		for seed, f := range families {
			t.Run(fmt.Sprintf("keys=%s/seed=%d", f.name, seed), func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(seed), 0))
				m, want := empty(), map[string]string{}
				for phase := range 3 {
					for range 800 {
						operate(t, r, m, want, f.key(r), []int{1, 5, 9}[phase])
					}
					compare(t, r, m, want)
				}
				for key := range want {
					require.True(t, m.Delete(key))
				}
				compare(t, r, m, nil)
				require.Zero(t, m.Size().Bytes)
			})
		}
	})
}

// operate looks a key up, and sets or deletes it.
func operate(t *testing.T, r *rand.Rand, m mapping[string], want map[string]string, key string,
	deletions int) {
	old, had := want[key]
	if got, found := m.Get(key); found != had || got != old {
		t.Fatalf("Get(%.40q) = %q, %v, want %q, %v", key, got, found, old, had)
	}
	if r.IntN(10) < deletions {
		if m.Delete(key) != had {
			t.Fatalf("Delete(%.40q) = %v", key, !had)
		}
		delete(want, key)
		return
	}
	want[key] = fmt.Sprint(r.IntN(1e7))
	if m.Set(key, want[key]) == had {
		t.Fatalf("Set(%.40q) = %v", key, had)
	}
}

// compare asks a mapping everything it can tell, and a map the same.
func compare(t *testing.T, r *rand.Rand, m mapping[string], want map[string]string) {
	t.Helper()
	require.Equal(t, len(want), m.Len())
	keys := slices.Sorted(maps.Keys(want))
	compareList(t, m.All(), keys, want)
	for range 8 {
		prefix := ""
		if len(keys) > 0 {
			key := keys[r.IntN(len(keys))]
			prefix = key[:r.IntN(len(key)+1)] + []string{"", "\x00", "x"}[r.IntN(3)]
		}
		under := slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
			return !strings.HasPrefix(key, prefix)
		})
		compareList(t, m.Prefix(prefix), under, want)
		text := prefix + "a1\xff"
		longest, found := "", false
		for _, key := range keys {
			if strings.HasPrefix(text, key) && len(key) >= len(longest) {
				longest, found = key, true
			}
		}
		key, v, ok := m.LongestPrefix(text)
		require.Equal(t, found, ok, "%.40q", text)
		require.Equal(t, longest, key)
		require.Equal(t, want[longest], v)
	}
}

func compareList(t *testing.T, got iter.Seq2[string, string], keys []string,
	want map[string]string) {
	t.Helper()
	i := 0
	for key, v := range got {
		if i == len(keys) || key != keys[i] || v != want[key] {
			t.Fatalf("entry %d is %.40q: %q", i, key, v)
		}
		i++
	}
	require.Equal(t, len(keys), i)
}

func TestKeysOf64KiB(t *testing.T) {
	t.Parallel()
	trie, want := hostcache.NewTrie[int](), map[string]int{}
	for i := range 700 {
		key := strings.Repeat("k", 64<<10) + fmt.Sprint(i)
		if i%2 == 0 {
			key = strings.Repeat("k", 93*i)
		}
		trie.Set(key, i)
		want[key] = i
	}
	require.Equal(t, want, maps.Collect(trie.All()))
	for key, v := range want {
		got, found := trie.Get(key)
		require.True(t, found)
		require.Equal(t, v, got)
		require.True(t, trie.Delete(key))
	}
	require.Equal(t, hostcache.Size{Reserved: trie.Size().Reserved}, trie.Size())
}

func TestStructsWithoutPointersAreKeptBitByBit(t *testing.T) {
	type value struct {
		a uint8
		b float64
		c [3]int16
		d bool
		_ struct{}
		f complex64
	}
	trie := hostcache.NewTrie[value]()
	want := value{a: 1, b: -0.5, c: [3]int16{-1, 2, -3}, d: true, f: 2i}
	for i := range 5000 {
		want.a = uint8(i)
		trie.Set(fmt.Sprint(i), want)
	}
	for i := range 5000 {
		want.a = uint8(i)
		got, _ := trie.Get(fmt.Sprint(i))
		require.Equal(t, want, got)
	}
	none := hostcache.NewTrie[struct{}]() // a set
	require.True(t, none.Set("a", struct{}{}))
	require.False(t, none.Set("a", struct{}{}))
	_, found := none.Get("a")
	require.True(t, found)
}

// TestTrieMayChangeWhileItIsWalked sets and deletes within the loop. What is neither set nor
// deleted meanwhile is seen once, whatever happens around it.
func TestTrieMayChangeWhileItIsWalked(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		r := rand.New(rand.NewPCG(seed, 0))
		trie := hostcache.NewTrie[int]()
		for i := range 6_000 {
			trie.Set(fmt.Sprintf("%05d", i), i)
		}
		last, stable := "", 0
		for key, v := range trie.All() {
			require.Greater(t, key, last)
			last = key
			if v%2 == 0 && len(key) == 5 {
				stable++
			}
			trie.Delete(fmt.Sprintf("%05d", r.IntN(3_000)*2+1))
			trie.Set(fmt.Sprintf("%05d.%d", r.IntN(6_000), r.IntN(9)), 1)
		}
		require.Equal(t, 3_000, stable)
	}
}

func TestWalkStopsWhenAsked(t *testing.T) {
	trie := hostcache.NewTrie[int]()
	for i := range 2000 {
		trie.Set(fmt.Sprint(i), i)
	}
	seen := 0
	for range trie.Prefix("1") {
		if seen++; seen == 700 {
			break
		}
	}
	require.Equal(t, 700, seen)
}

// TestDeletedMemoryIsReused fills a trie and empties it several times over, always with other keys.
func TestDeletedMemoryIsReused(t *testing.T) {
	t.Parallel()
	trie := hostcache.NewTrie[[16]byte]()
	const n = 10_000
	key := func(round, i int) string { return fmt.Sprintf("com.%d.host-%d", (i*7919+round)%n, round) }
	most := 0
	for round := range 3 {
		for i := range n {
			trie.Set(key(round, i), [16]byte{})
		}
		full := trie.Size()
		if round == 0 {
			most = full.Reserved
		}
		require.LessOrEqual(t, full.Reserved, most*5/4, "round %d", round)

		for i := range n - n/100 {
			trie.Delete(key(round, i))
		}
		few := trie.Size()
		require.Equal(t, n/100, few.Entries)
		require.Less(t, few.Bytes, full.Bytes/20, "1 %% of the entries")
		for i := n - n/100; i < n; i++ {
			require.True(t, trie.Delete(key(round, i)))
		}
		empty := trie.Size()
		require.Zero(t, empty.Bytes)
		require.LessOrEqual(t, empty.Reserved, 3<<20, "a megabyte each may be kept")
	}
}

func TestReadsAllocateNothing(t *testing.T) {
	trie := hostcache.NewTrie[[16]byte]()
	for i := range 5000 {
		trie.Set(fmt.Sprint(i), [16]byte{1})
	}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, _ = trie.Get("4999")
		_, _ = trie.Get("absent")
		_, _, _ = trie.LongestPrefix("49999")
		trie.Set("77", [16]byte{2})
	}))
}

// FuzzTrieAgainstMap reads operations from the input: an opcode, a length and a key, over and over.
func FuzzTrieAgainstMap(f *testing.F) {
	f.Add([]byte("\x00\x03abc\x01\x03abc\x00\x00\x02\x02ab\x00\xff"))
	f.Add([]byte(strings.Repeat("\x00\x02aa\x00\x03aaa\x00\x01\x00\x01\x02aa", 40)))
	f.Fuzz(func(t *testing.T, in []byte) {
		trie, want := hostcache.NewTrie[string](), map[string]string{}
		r := rand.New(rand.NewPCG(1, 1))
		repeat, budget := 1, 3000
		for len(in) >= 2 && budget > 0 {
			op, n := in[0], min(int(in[1]), len(in)-2)
			key := strings.Repeat(string(in[2:2+n]), repeat)
			in = in[2+n:]
			switch op % 4 {
			case 0, 1:
				// Many keys with a common beginning make leaves burst.
				for i := range int(op) * 4 {
					operate(t, r, trie, want, key+fmt.Sprint(i), int(op%4)*7)
					budget--
				}
			case 2:
				operate(t, r, trie, want, key, int(op)%10)
			case 3:
				repeat = 1 + int(op)%20
			}
		}
		compare(t, r, trie, want)
	})
}
