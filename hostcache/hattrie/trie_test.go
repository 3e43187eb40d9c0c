package hattrie_test

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/hostcache/hattrie"
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
	{"two-byte lengths", func(r *rand.Rand) string {
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

// mapping is a trie with strings of up to eight bytes as values.
type mapping interface {
	Get(key string) (string, bool)
	Set(key, v string) bool
	Delete(key string) bool
	Len() int
	All() iter.Seq2[string, string]
	Prefix(prefix string) iter.Seq2[string, string]
	From(prefix, key string) iter.Seq2[string, string]
	Memory() (used, reserved int)
	setWithin(max int, key, v string) bool
}

// as shows a trie of values of another type, which strings are converted to, as a mapping.
type as[V any] struct {
	*hattrie.Trie[V]
	to   func(string) V
	back func(V) string
}

func (a as[V]) Get(key string) (string, bool) {
	v, found := a.Trie.Get(key)
	return a.back(v), found
}

func (a as[V]) Set(key, v string) bool { return a.Trie.Set(key, a.to(v)) }
func (a as[V]) setWithin(max int, key, v string) bool {
	_, ok := a.SetWithin(max, key, a.to(v))
	return ok
}

func (a as[V]) All() iter.Seq2[string, string]            { return a.each(a.Trie.Prefix("")) }
func (a as[V]) Prefix(p string) iter.Seq2[string, string] { return a.each(a.Trie.Prefix(p)) }
func (a as[V]) From(p, key string) iter.Seq2[string, string] {
	return a.each(a.Trie.From(p, key))
}

func (a as[V]) each(entries iter.Seq2[string, V]) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for key, v := range entries {
			if !yield(key, a.back(v)) {
				return
			}
		}
	}
}

// eachType runs a test with values that are kept in different ways.
func eachType(t *testing.T, test func(t *testing.T, empty func() mapping)) {
	trim := func(b []byte) string { return strings.TrimRight(string(b), "\x00") }
	for name, empty := range map[string]func() mapping{
		"inline": func() mapping {
			return as[[8]byte]{new(hattrie.Trie[[8]byte]),
				func(s string) (b [8]byte) { copy(b[:], s); return b },
				func(b [8]byte) string { return trim(b[:]) }}
		},
		"pointer": func() mapping {
			same := func(s string) string { return s }
			return as[string]{new(hattrie.Trie[string]), same, same}
		},
		"big": func() mapping {
			return as[[200]byte]{new(hattrie.Trie[[200]byte]),
				func(s string) (b [200]byte) { copy(b[192:], s); return b },
				func(b [200]byte) string { return trim(b[192:]) }}
		},
	} {
		t.Run("values="+name, func(t *testing.T) { test(t, empty) })
	}
}

// TestAgainstMap sets and deletes keys at random, growing and shrinking by turns.
func TestAgainstMap(t *testing.T) {
	t.Parallel()
	eachType(t, func(t *testing.T, empty func() mapping) {
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
				used, _ := m.Memory()
				require.Zero(t, used)
			})
		}
	})
}

// operate looks a key up, and sets or deletes it.
func operate(t *testing.T, r *rand.Rand, m mapping, want map[string]string, key string, deletions int) {
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
func compare(t *testing.T, r *rand.Rand, m mapping, want map[string]string) {
	t.Helper()
	require.Equal(t, len(want), m.Len())
	used, reserved := m.Memory()
	require.LessOrEqual(t, used, reserved)
	keys := slices.Sorted(maps.Keys(want))
	compareList(t, m.All(), keys, want)
	for range 8 {
		prefix := ""
		if len(keys) > 0 {
			key := keys[r.IntN(len(keys))]
			prefix = key[:r.IntN(len(key)+1)] + []string{"", "\x00", "x"}[r.IntN(3)]
		}
		from, _ := slices.BinarySearch(keys, prefix)
		compareList(t, m.From("", prefix), keys[from:], want)
		to := from
		for to < len(keys) && strings.HasPrefix(keys[to], prefix) {
			to++
		}
		compareList(t, m.Prefix(prefix), keys[from:to], want)
		if middle := from + (to-from)/2; middle < to {
			compareList(t, m.From(prefix, keys[middle]), keys[middle:to], want)
			compareList(t, m.From(prefix, keys[middle]+"\x00"), keys[middle+1:to], want)
		}
		compareList(t, m.From(prefix, prefix+strings.Repeat("\xff", 901)), nil, want)
	}
}

func compareList(t *testing.T, got iter.Seq2[string, string], keys []string, want map[string]string) {
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

// TestWalksWhileTheTrieChanges deletes whole regions and sets other keys within the loop, so that
// leaves burst, join and turn into nodes under the walk. What stays is shown once, in order; what
// is shown was there at some time since the walk began.
func TestWalksWhileTheTrieChanges(t *testing.T) {
	t.Parallel()
	eachType(t, func(t *testing.T, empty func() mapping) {
		for seed := range uint64(2) {
			r := rand.New(rand.NewPCG(seed, 7))
			m, there := empty(), map[string]bool{}
			key := func() string { return families[[]int{0, 2, 3, 6, 7}[r.IntN(5)]].key(r) }
			for range 1500 {
				k := key()
				there[k] = true
				m.Set(k, k[:min(len(k), 3)])
			}
			for _, prefix := range []string{"", "a", "com.host-1", "\xff", strings.Repeat("x", 251)} {
				walkAndChange(t, r, m, there, prefix, key)
			}
			got := []string{}
			for k := range m.All() {
				got = append(got, k)
			}
			require.Equal(t, slices.Sorted(maps.Keys(there)), got)
		}
	})
}

func walkAndChange(t *testing.T, r *rand.Rand, m mapping, there map[string]bool, prefix string,
	key func() string) {
	t.Helper()
	stable, ever := map[string]bool{}, map[string]bool{}
	for k := range there {
		if strings.HasPrefix(k, prefix) {
			stable[k], ever[k] = true, true
		}
	}
	last, first := "", true
	for k, v := range m.Prefix(prefix) {
		if !first && k <= last || !strings.HasPrefix(k, prefix) || !ever[k] ||
			v != strings.TrimRight(k[:min(len(k), 3)], "\x00") && v != k[:min(len(k), 3)] {
			t.Fatalf("%.60q: %q after %.60q under %.20q", k, v, last, prefix)
		}
		last, first = k, false
		delete(stable, k)
		for range r.IntN(4) {
			changed := key()
			delete(stable, changed)
			if r.IntN(2) == 0 {
				require.Equal(t, there[changed], m.Delete(changed))
				delete(there, changed)
				continue
			}
			there[changed] = true
			m.Set(changed, changed[:min(len(changed), 3)])
			ever[changed] = true
		}
	}
	require.Empty(t, stable, "%d keys were not shown", len(stable))
}

func TestWalkStopsWhenAsked(t *testing.T) {
	var trie hattrie.Trie[int]
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

func TestTheZeroTrieIsEmpty(t *testing.T) {
	var trie hattrie.Trie[string]
	_, found := trie.Get("")
	require.False(t, found)
	require.False(t, trie.Delete("a"))
	require.Zero(t, trie.Len())
	for range trie.Prefix("") {
		t.Error("an entry")
	}
	require.True(t, trie.Set("", "empty"))
	v, found := trie.Get("")
	require.True(t, found)
	require.Equal(t, "empty", v)
}

func TestKeysHaveALimit(t *testing.T) {
	var trie hattrie.Trie[int]
	longest := strings.Repeat("k", hattrie.MaxKey)
	require.True(t, trie.Set(longest, 1))
	require.Panics(t, func() { trie.Set(longest+"k", 1) })
	_, found := trie.Get(longest + "k")
	require.False(t, found)
	require.False(t, trie.Delete(longest+"k"))
	require.Equal(t, map[string]int{longest: 1}, maps.Collect(trie.Prefix(longest)))
	require.Empty(t, maps.Collect(trie.Prefix(longest+"k")))
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
	var trie hattrie.Trie[value]
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
	var set hattrie.Trie[struct{}]
	require.True(t, set.Set("a", struct{}{}))
	require.False(t, set.Set("a", struct{}{}))
	_, found := set.Get("a")
	require.True(t, found)
}

// TestDeletedMemoryIsReused fills a trie and empties it several times over, always with other keys.
func TestDeletedMemoryIsReused(t *testing.T) {
	t.Parallel()
	eachType(t, func(t *testing.T, empty func() mapping) {
		const n = 10_000
		trie := empty()
		key := func(round, i int) string {
			return fmt.Sprintf("com.%d.host-%d", (i*7919+round)%n, round)
		}
		most := 0
		for round := range 3 {
			for i := range n {
				trie.Set(key(round, i), "value")
			}
			full, reserved := trie.Memory()
			if round == 0 {
				most = reserved
			}
			require.LessOrEqual(t, reserved, most*5/4, "round %d", round)
			for i := range n - n/100 {
				trie.Delete(key(round, i))
			}
			few, _ := trie.Memory()
			require.Equal(t, n/100, trie.Len())
			require.Less(t, few, full/20, "1 %% of the entries")
			for i := n - n/100; i < n; i++ {
				require.True(t, trie.Delete(key(round, i)))
			}
			used, reserved := trie.Memory()
			require.Zero(t, used)
			require.LessOrEqual(t, reserved, most/5, "one chunk may be kept")
		}
	})
}

// TestSetWithinBoundsTheMemory adds keys of all kinds to a bounded trie, and deletes others when it
// is full.
func TestSetWithinBoundsTheMemory(t *testing.T) {
	t.Parallel()
	eachType(t, func(t *testing.T, empty func() mapping) {
		for _, most := range []int{256 << 10, 1 << 20} {
			m := empty()
			r := rand.New(rand.NewPCG(uint64(most), 1))
			deleted, fullest := 0, 0
			for step := range 40_000 {
				key := families[r.IntN(len(families))].key(r) + fmt.Sprint(step)
				for !m.setWithin(most, key, "v") {
					require.NotZero(t, m.Len(), "there is nothing left to delete")
					n := 0
					for key := range m.From("", families[r.IntN(len(families))].key(r)) {
						m.Delete(key)
						deleted++
						if n++; n == 64 {
							break
						}
					}
				}
				used, reserved := m.Memory()
				require.LessOrEqual(t, reserved, most)
				fullest = max(fullest, used)
			}
			require.Positive(t, deleted)
			require.Greater(t, fullest, most/3, "long keys waste much, but not most")
		}
	})
}

func TestReadsAllocateNothing(t *testing.T) {
	var trie hattrie.Trie[[16]byte]
	for i := range 5000 {
		trie.Set(fmt.Sprint(i), [16]byte{1})
	}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, _ = trie.Get("4999")
		_, _ = trie.Get("absent")
		trie.Set("77", [16]byte{2})
	}))
}

// TestTrieReadByMany has the race detector look at readers of one trie.
func TestTrieReadByMany(t *testing.T) {
	var trie hattrie.Trie[int]
	for i := range 3000 {
		trie.Set(fmt.Sprint(i), i)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 3000 {
				if v, found := trie.Get(fmt.Sprint(i)); !found || v != i {
					t.Errorf("%d has %d, %v", i, v, found)
				}
			}
			n := 0
			for range trie.Prefix("2") {
				n++
			}
			if n != 1111 {
				t.Errorf("%d keys begin with 2", n)
			}
		})
	}
	wg.Wait()
}

// FuzzTrieAgainstMap reads operations from the input: an opcode, a length and a key, over and over.
func FuzzTrieAgainstMap(f *testing.F) {
	f.Add([]byte("\x00\x03abc\x01\x03abc\x00\x00\x02\x02ab\x00\xff"))
	f.Add([]byte(strings.Repeat("\x00\x02aa\x00\x03aaa\x00\x01\x00\x01\x02aa", 40)))
	f.Fuzz(func(t *testing.T, in []byte) {
		same := func(s string) string { return s }
		trie, want := as[string]{new(hattrie.Trie[string]), same, same}, map[string]string{}
		r := rand.New(rand.NewPCG(1, 1))
		repeat, budget := 1, 3000
		for len(in) >= 2 && budget > 0 {
			op, n := in[0], min(int(in[1]), len(in)-2)
			key := strings.Repeat(string(in[2:2+n]), repeat)
			key = key[:min(len(key), hattrie.MaxKey-3)]
			in = in[2+n:]
			switch op % 4 {
			case 0, 1:
				// Many keys with a common beginning make leaves burst.
				for i := range int(op) * 3 {
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
