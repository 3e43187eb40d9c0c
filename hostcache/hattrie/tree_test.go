package hattrie

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
)

// A census counts what can be reached from the root of a tree.
type census struct {
	t    *testing.T
	tree *tree
	keys []string // in the order of the walk, which is not that of the keys
	used int      // bytes of blocks
}

// checkTree verifies that every key lies where a search looks for it, and that each byte of memory
// that counts as used belongs to something that can be reached.
func checkTree(t *testing.T, tree *tree) {
	t.Helper()
	c := census{t: t, tree: tree}
	if r := getRef(tree.root[:]); r != 0 {
		c.visit(r, nil)
	}
	require.Len(t, c.keys, tree.count)
	require.Equal(t, tree.arena.used, c.used)
	for _, key := range c.keys {
		if tree.get([]byte(key)) == nil {
			t.Fatalf("%.40q can be reached, but not found", key)
		}
	}
	checkBlocks(t, &tree.arena)
}

func (c *census) visit(r ref, path []byte) {
	if r.isLeaf() {
		c.leaf(c.tree.leaf(r), path)
		return
	}
	n := c.tree.node(r)
	c.used += sizeOf(n)
	path = slices.Concat(path, n.prefix())
	for b, i := -1, 0; b < 256; b, i = n.next(b+1), i+1 {
		end := n.next(b + 1)
		for at := max(b, 0); at < end; at++ {
			require.Equal(c.t, i, n.index([]byte{byte(at)}))
			require.Equal(c.t, b, n.begin(at))
		}
		if end == 256 {
			require.Equal(c.t, i+1, n.children())
		}
		switch child := getRef(n.slot(i)); {
		case child.isNode():
			require.Equal(c.t, b+1, end, "a node has one byte")
			c.visit(child, append(path[:len(path):len(path)], byte(b)))
		case child != 0:
			first := len(c.keys)
			c.visit(child, path)
			for _, key := range c.keys[first:] {
				rest := key[len(path):]
				if rest == "" && b >= 0 || rest != "" && (int(rest[0]) < b || int(rest[0]) >= end) {
					c.t.Fatalf("%.40q is in the leaf of bytes %d to %d", rest, b, end)
				}
			}
		}
	}
}

func (c *census) leaf(l leaf, path []byte) {
	require.Positive(c.t, l.count(), "a leaf without records is removed")
	require.LessOrEqual(c.t, l.end(), sizeOf(l.block))
	require.Len(c.t, l.records(nil), l.count())
	require.Equal(c.t, l.first(), l.bound(0))
	c.used += sizeOf(l.block)
	for bucket := range l.buckets() {
		for rec := l.bound(bucket); rec < l.bound(bucket+1); rec = l.next(rec) {
			hash := c.tree.hash(l.key(rec))
			require.Equal(c.t, bucket, bucketOf(hash, l.level))
			require.Zero(c.t, bitsOf(hash)&^l.filter(bucket), "the filter misses a record")
		}
	}
	rec := l.tailBegin()
	for i := range l.tail() {
		require.Equal(c.t, rec, l.place(i))
		require.Equal(c.t, tagOf(c.tree.hash(l.key(rec))), l.block[leafTags+i])
		rec = l.next(rec)
	}
	require.Equal(c.t, l.end(), rec)
	for _, rec := range l.records(nil) {
		c.keys = append(c.keys, string(path)+string(l.key(int(rec))))
	}
}

// keyKinds are kinds of keys that meet in one tree, so that each kind is the neighbour of another.
var keyKinds = []func(r *rand.Rand) string{
	func(*rand.Rand) string { return "" },
	func(r *rand.Rand) string { return string([]byte{byte(r.IntN(256))}) },
	func(r *rand.Rand) string { return strings.Repeat("a", r.IntN(900)) },
	func(r *rand.Rand) string { return strings.Repeat("\xff", r.IntN(600)) },
	func(r *rand.Rand) string { return strings.Repeat("\x00", r.IntN(600)) + "b" },
	func(r *rand.Rand) string { return strings.Repeat("a", 253+r.IntN(5)) + fmt.Sprint(r.IntN(400)) },
	func(r *rand.Rand) string { return strings.Repeat("ab", 255) + fmt.Sprint(r.IntN(2000)) },
	func(r *rand.Rand) string { return fmt.Sprintf("com.example%d.www", r.IntN(3000)) },
	func(r *rand.Rand) string { return fmt.Sprintf("com.example%d", r.IntN(300)) },
	func(r *rand.Rand) string { return strings.Repeat("q", MaxKey-3) + fmt.Sprint(r.IntN(50)) },
}

// treeModel is a tree and what it should hold. A value is one byte, repeated.
type treeModel struct {
	t    *testing.T
	tree tree
	want map[string]byte
	r    *rand.Rand
}

func newModel(t *testing.T, width int) *treeModel {
	return &treeModel{
		t: t, tree: tree{width: width, seed: maphash.MakeSeed()}, want: map[string]byte{},
		r: rand.New(rand.NewPCG(uint64(width), 1)),
	}
}

func (m *treeModel) put(key string) {
	b, added := m.tree.put([]byte(key), math.MaxInt)
	if _, had := m.want[key]; added == had || len(b) != m.tree.width {
		m.t.Fatalf("put(%.40q) of %d bytes: %v", key, len(b), added)
	}
	m.want[key] = byte(m.r.Uint32())
	copy(b, bytes.Repeat([]byte{m.want[key]}, m.tree.width))
}

func (m *treeModel) del(key string) {
	if _, had := m.want[key]; m.tree.del([]byte(key)) != had {
		m.t.Fatalf("del(%.40q): %v", key, !had)
	}
	delete(m.want, key)
}

func (m *treeModel) check() {
	m.t.Helper()
	checkTree(m.t, &m.tree)
	require.Equal(m.t, len(m.want), m.tree.count)
	for key, v := range m.want {
		b := m.tree.get([]byte(key))
		if len(b) != m.tree.width || bytes.Count(b, []byte{v}) != len(b) {
			m.t.Fatalf("%.40q has %x, want %x", key, b, v)
		}
	}
}

// TestTreesOfEveryWidthKeepTheirPromises grows and shrinks trees with values of every size, and
// looks through all of their memory in between. Keys are deleted in random order and in order.
func TestTreesOfEveryWidthKeepTheirPromises(t *testing.T) {
	t.Parallel()
	for _, width := range []int{0, 1, 6, 22, 33, maxInline} {
		t.Run(fmt.Sprintf("width=%d", width), func(t *testing.T) {
			m := newModel(t, width)
			for round := range 3 {
				for range 1500 {
					m.put(keyKinds[m.r.IntN(len(keyKinds))](m.r))
					if m.r.IntN(4) == 0 {
						m.del(keyKinds[m.r.IntN(len(keyKinds))](m.r))
					}
				}
				m.check()
				keys := slices.Sorted(maps.Keys(m.want))
				if round == 0 {
					m.r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
				}
				if round == 2 {
					slices.Reverse(keys)
				}
				for i, key := range keys {
					before := m.tree.arena.reserved
					m.del(key)
					require.LessOrEqual(t, m.tree.arena.reserved, before, "a del takes no memory")
					if i == len(keys)*9/10 {
						m.check()
						m.put(key)
						m.del(key)
					}
				}
				checkTree(t, &m.tree)
				require.Zero(t, m.tree.arena.used, "an empty tree takes nothing")
			}
		})
	}
}

// TestEveryByteCanBranch fills nodes up to all of their children, from both ends, and takes them
// down again.
func TestEveryByteCanBranch(t *testing.T) {
	t.Parallel()
	for _, down := range []bool{false, true} {
		m := newModel(t, 3)
		at := func(i int) string {
			if down {
				i = 255 - i
			}
			return "p" + string([]byte{byte(i)})
		}
		for i := range 256 {
			m.put(at(i))
			for k := range 40 {
				m.put(at(i) + fmt.Sprint(k*7))
			}
		}
		m.check()
		for i := range 256 {
			for k := range 39 {
				m.del(at(i) + fmt.Sprint(k*7))
			}
		}
		m.check()
		require.Equal(t, 512, m.tree.count)
		require.Less(t, m.tree.arena.used, 512*40, "what is left fits into few leaves")
	}
}

// TestPrefixesOfAnyLength has full leaves of keys with much in common, which are then split there.
func TestPrefixesOfAnyLength(t *testing.T) {
	t.Parallel()
	for _, length := range []int{0, 1, 254, 255, 256, 257, 510, 511, 512, 513, 3000, MaxKey - 4} {
		m := newModel(t, 3)
		prefix := strings.Repeat("prefix", length)[:length]
		m.put(prefix)
		for i := range maxEntries + 10 {
			m.put(prefix + fmt.Sprint(i))
		}
		m.check()
		m.put(prefix[:length/2] + "oth")
		m.put(prefix + "oth")
		m.check()
		m.del(prefix)
		for i := range maxEntries + 10 {
			m.del(prefix + fmt.Sprint(i))
		}
		m.check()
		require.Less(t, m.tree.arena.used, 3*MaxKey)
	}
}

// TestDelOfAbsentKeysChangesNothing asks for keys beside, above and below those that are there.
func TestDelOfAbsentKeysChangesNothing(t *testing.T) {
	m := newModel(t, 2)
	for i := range 4000 {
		m.put(strings.Repeat("deep", 70) + fmt.Sprint(i))
	}
	before := m.tree.arena.used
	for n := range 281 {
		m.del(strings.Repeat("deep", 71)[:n])
	}
	for key := range m.want {
		m.del(key + "x")
		m.del(key + "\x00")
		require.Nil(t, m.tree.get([]byte("x"+key)))
	}
	require.Equal(t, before, m.tree.arena.used)
	m.check()
}

// TestFloodsDoNotHitOneBucket holds that buckets stay short for keys that have all but one byte in
// common, and that two trees put them into different ones.
func TestFloodsDoNotHitOneBucket(t *testing.T) {
	a, b := newModel(t, 0), newModel(t, 0)
	same := 0
	for c := range 256 {
		key := strings.Repeat("x", 40) + string([]byte{byte(c)})
		a.put(key)
		b.put(key)
		if bucketOf(a.tree.hash([]byte(key)), 6) == bucketOf(b.tree.hash([]byte(key)), 6) {
			same++
		}
	}
	require.Less(t, same, 30, "4 of 256 are to be expected")
	l := a.tree.leaf(getRef(a.tree.root[:]))
	for bucket := range l.buckets() {
		require.Less(t, l.bound(bucket+1)-l.bound(bucket), 25*42, "25 of 256 keys in a bucket")
	}
}

// TestNoPutTakesMoreThanItMay puts keys of all kinds, each time with just so much memory that a
// try with 8 KiB less fails.
func TestNoPutTakesMoreThanItMay(t *testing.T) {
	t.Parallel()
	for _, width := range []int{0, 22, maxInline} {
		m := newModel(t, width)
		refused := 0
		for step := range 10_000 {
			key := keyKinds[m.r.IntN(len(keyKinds))](m.r)
			key = key[:min(len(key), MaxKey-4)] + fmt.Sprint(step%5000)
			most := m.tree.arena.reserved
			for {
				b, _ := m.tree.put([]byte(key), most)
				require.LessOrEqual(t, m.tree.arena.reserved, most)
				if b != nil {
					copy(b, bytes.Repeat([]byte{m.want[key]}, width))
					break
				}
				refused++
				most += pageSize
			}
			if _, had := m.want[key]; !had {
				m.want[key] = 0
			}
		}
		require.Positive(t, refused)
		m.check()
	}
}

// TestNearIsTheBeginningOfALeaf compares with the leaf that has the key, or would have it.
func TestNearIsTheBeginningOfALeaf(t *testing.T) {
	var trie Trie[uint32]
	require.Equal(t, "any", trie.Near("any"))
	for i := range 5000 {
		trie.Set(fmt.Sprintf("%d.test", i*7919%5000), 0)
	}
	leaves := map[string]bool{}
	for i := range 5000 {
		key := fmt.Sprintf("%d.test", i)
		near := trie.Near(key)
		_, found := trie.Get(near)
		require.True(t, found)
		require.LessOrEqual(t, near, key)
		require.Equal(t, near, trie.Near(near))
		leaves[near] = true
	}
	require.Greater(t, len(leaves), 10)
	require.Less(t, len(leaves), 500)
}

// TestValuesThatAreGoneTakeNoMemory deletes all values beside the trie. One chunk stays.
func TestValuesThatAreGoneTakeNoMemory(t *testing.T) {
	var trie Trie[*int]
	const n = 5000
	for i := range n {
		trie.Set(fmt.Sprint(i), nil)
	}
	last := weak.Make(&trie.values.chunks[len(trie.values.chunks)-1].values[0])
	for i := range n {
		trie.Delete(fmt.Sprint(i))
	}
	runtime.GC()
	require.Nil(t, last.Value())
	runtime.KeepAlive(&trie)
}
