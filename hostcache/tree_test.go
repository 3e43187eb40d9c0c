package hostcache

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A census counts what can be reached from the root of a tree.
type census struct {
	tree  *tree
	keys  []string // in the order of the walk down, not of the keys
	nodes int      // bytes of blocks
	heads int
	body  int
	longs map[uint32]bool
}

// checkTree asks a tree whether it is what it says: every key lies where a search would look for it,
// in order, and each byte of memory that counts as used belongs to something that can be reached.
func checkTree(t *testing.T, tree *tree) {
	t.Helper()
	c := census{tree: tree, longs: map[uint32]bool{}}
	if r := getRef(tree.root[:]); r != 0 {
		c.visit(t, r, nil)
	}
	require.Len(t, c.keys, tree.count)
	require.Equal(t, tree.nodes.used, c.nodes, "bytes of nodes")
	require.Equal(t, tree.heads.used, c.heads, "bytes of heads")
	require.Equal(t, tree.bodies.used, c.body, "bytes of bodies")
	long := 0
	for number := range c.longs {
		long += len(tree.longs.keys[number]) + longOverhead
	}
	require.Equal(t, tree.longs.bytes, long, "bytes of long keys")
	require.Equal(t, len(tree.longs.keys), len(c.longs)+len(tree.longs.free))
	for _, key := range c.keys {
		if tree.get([]byte(key)) == nil {
			t.Fatalf("%.40q can be reached, but not found", key)
		}
	}
	checkBlocks(t, &tree.nodes)
	checkBlocks(t, &tree.heads)
	checkBlocks(t, &tree.bodies)
}

func (c *census) visit(t *testing.T, r ref, path []byte) {
	if r.isLeaf() {
		c.leaf(t, r, path)
		return
	}
	n := c.tree.node(r)
	c.nodes += size(n.block)
	path = slices.Concat(path, n.prefix())
	if n.value() != nil {
		c.keys = append(c.keys, string(path))
	}
	for b, i := 0, 0; b < 256; b, i = n.next(b+1), i+1 {
		child := getRef(n.slot(i))
		switch {
		case child.isNode():
			require.Equal(t, b+1, n.next(b+1), "a node has one byte")
			c.visit(t, child, append(path[:len(path):len(path)], byte(b)))
		case child != 0:
			c.visit(t, child, path)
			l := c.tree.leaf(child)
			for _, rec := range l.records(nil) {
				key := c.tree.key(l, int(rec))
				if len(key) == 0 || int(key[0]) < b || int(key[0]) >= n.next(b+1) {
					t.Fatalf("below a node, %.40q is in the leaf of bytes %d to %d", key, b, n.next(b+1))
				}
			}
		}
	}
}

func (c *census) leaf(t *testing.T, r ref, path []byte) {
	l := c.tree.leaf(r)
	require.Positive(t, l.count(), "a leaf without records is removed")
	c.heads += size(l.head)
	c.body += size(l.body)
	require.Equal(t, size(l.body), l.room())
	for _, rec := range l.records(nil) {
		if l.body[rec] == longKey {
			number, _ := l.long(int(rec))
			require.False(t, c.longs[number], "two records share a long key")
			c.longs[number] = true
		}
		c.keys = append(c.keys, string(path)+string(c.tree.key(l, int(rec))))
	}
}

// checkBlocks walks through each chunk block by block: no two neighbours are free, each block knows
// whether the one before it is, and the sizes add up.
func checkBlocks(t *testing.T, a *arena) {
	t.Helper()
	used, reserved, listed := 0, 0, map[uint32]bool{}
	for _, head := range a.bins {
		for addr := head; addr != 0; addr = le.Uint32(a.at(addr)[nextAt:]) {
			listed[addr] = true
		}
	}
	for number, chunk := range a.chunks {
		reserved += len(chunk)
		before := uint32(0)
		for at := 0; at < len(chunk); {
			h := le.Uint32(chunk[at:])
			free := h & blockFree
			switch {
			case h>>2 == 0:
				t.Fatal("a block of no size")
			case h>>1&1 != before:
				t.Fatal("a block does not know whether the one before it is free")
			case free == 1 && before == 1:
				t.Fatal("free neighbours are not joined")
			case (free == 1) != listed[uint32(number<<chunkShift+at/unit)]:
				t.Fatal("the lists have other blocks than the free ones")
			}
			at += int(h>>2) * unit
			if free == 0 && at < len(chunk) {
				used += int(h>>2) * unit
			}
			before = free
		}
	}
	require.Equal(t, a.used, used)
	require.Equal(t, a.reserved, reserved)
}

// keyKinds are kinds of keys that meet in one tree, so that each kind is the neighbour of another.
var keyKinds = []func(r *rand.Rand) string{
	func(*rand.Rand) string { return "" },
	func(r *rand.Rand) string { return string(byte(r.IntN(256))) },
	func(r *rand.Rand) string { return strings.Repeat("a", r.IntN(900)) },
	func(r *rand.Rand) string { return strings.Repeat("\xff", r.IntN(600)) },
	func(r *rand.Rand) string { return strings.Repeat("\x00", r.IntN(600)) + "b" },
	func(r *rand.Rand) string { return strings.Repeat("a", 253+r.IntN(5)) + fmt.Sprint(r.IntN(400)) },
	func(r *rand.Rand) string { return strings.Repeat("ab", 255) + fmt.Sprint(r.IntN(2000)) },
	func(r *rand.Rand) string { return fmt.Sprintf("com.example%d.www", r.IntN(3000)) },
	func(r *rand.Rand) string { return fmt.Sprintf("com.example%d", r.IntN(300)) },
	func(r *rand.Rand) string { return strings.Repeat("q", 2000) + fmt.Sprint(r.IntN(50)) },
}

// treeModel is a tree and what it should hold. A value is a byte, over and over.
type treeModel struct {
	tree tree
	want map[string]byte
	r    *rand.Rand
}

func (m *treeModel) put(t *testing.T, key string) {
	b, added := m.tree.put([]byte(key))
	if _, had := m.want[key]; added == had || len(b) != m.tree.width {
		t.Fatalf("put(%.40q) of %d bytes: %v", key, len(b), added)
	}
	m.want[key] = byte(m.r.Uint32())
	copy(b, bytes.Repeat([]byte{m.want[key]}, m.tree.width))
}

func (m *treeModel) del(t *testing.T, key string) {
	if _, had := m.want[key]; m.tree.del([]byte(key)) != had {
		t.Fatalf("del(%.40q): %v", key, !had)
	}
	delete(m.want, key)
}

// largestLeaf returns how many records the leaf with the most of them has.
func (m *treeModel) largestLeaf() (records int) {
	var visit func(r ref)
	visit = func(r ref) {
		if r.isLeaf() {
			records = max(records, m.tree.leaf(r).count())
			return
		}
		n := m.tree.node(r)
		for i := range n.children() {
			if child := getRef(n.slot(i)); child != 0 {
				visit(child)
			}
		}
	}
	visit(getRef(m.tree.root[:]))
	return records
}

func (m *treeModel) check(t *testing.T) {
	t.Helper()
	checkTree(t, &m.tree)
	require.Equal(t, len(m.want), m.tree.count)
	for key, v := range m.want {
		b := m.tree.get([]byte(key))
		if len(b) != m.tree.width || bytes.Count(b, []byte{v}) != len(b) {
			t.Fatalf("%.40q has %x, want %x", key, b, v)
		}
	}
}

// TestTreesOfEveryWidthKeepTheirPromises grows and shrinks trees whose values are of every size
// class, and looks through all of their memory in between. Keys are deleted in the order of the map,
// in that of the keys, and at random.
func TestTreesOfEveryWidthKeepTheirPromises(t *testing.T) {
	t.Parallel()
	for _, width := range []int{0, 1, 6, 22, 33, maxInline + metaSize} {
		t.Run(fmt.Sprintf("width=%d", width), func(t *testing.T) {
			m := treeModel{newTree(width), map[string]byte{}, rand.New(rand.NewPCG(uint64(width), 1))}
			for round := range 3 {
				for range 1500 {
					key := keyKinds[m.r.IntN(len(keyKinds))](m.r)
					m.put(t, key)
					if m.r.IntN(4) == 0 {
						m.del(t, keyKinds[m.r.IntN(len(keyKinds))](m.r))
					}
				}
				m.check(t)
				keys := slices.Collect(maps.Keys(m.want))
				if round > 0 {
					slices.Sort(keys)
				}
				if round == 2 {
					slices.Reverse(keys)
				}
				for i, key := range keys {
					m.del(t, key)
					if i == len(keys)*9/10 {
						m.check(t)
						m.put(t, key) // and back again
						m.del(t, key)
					}
				}
				checkTree(t, &m.tree)
				require.Zero(t, m.tree.bytes(), "an empty tree takes nothing")
			}
		})
	}
}

// TestEveryByteCanBranch fills nodes up to all of their 256 children, from both ends, and takes
// them down again.
func TestEveryByteCanBranch(t *testing.T) {
	t.Parallel()
	for _, down := range []bool{false, true} {
		m := treeModel{newTree(3), map[string]byte{}, rand.New(rand.NewPCG(1, 1))}
		at := func(i int) byte {
			if down {
				return byte(255 - i)
			}
			return byte(i)
		}
		key := func(i, k int) string { return "p" + string([]byte{at(i)}) + fmt.Sprint(k*7) }
		for i := range 256 {
			m.put(t, "p"+string([]byte{at(i)}))
			for k := range 40 {
				m.put(t, key(i, k))
			}
		}
		m.check(t)
		for i := range 256 {
			for k := range 39 {
				m.del(t, key(i, k))
			}
		}
		m.check(t)
		require.Equal(t, 512, m.tree.count)
		require.Less(t, m.tree.bytes(), 512*40, "what is left fits into few leaves")
	}
}

// TestOneBurstPassesTheWholePrefix has a full leaf of keys with much in common. If a burst took off
// what fits into one node, there would be one for each 256 bytes, and each reads all of every key.
func TestOneBurstPassesTheWholePrefix(t *testing.T) {
	t.Parallel()
	for _, length := range []int{0, 1, 254, 255, 256, 257, 510, 511, 512, 513, 3000} {
		m := treeModel{newTree(3), map[string]byte{}, rand.New(rand.NewPCG(5, 5))}
		prefix := strings.Repeat("prefix", length)[:length]
		m.put(t, prefix)
		for i := range maxEntries - 1 {
			m.put(t, prefix+fmt.Sprint(i))
		}
		root := m.tree.root[:]
		require.Equal(t, maxEntries, m.tree.leaf(getRef(root)).count())
		m.tree.burst(nil, root, m.tree.leaf(getRef(root)))
		m.check(t)
		require.Less(t, m.largestLeaf(), maxEntries*3/4, "%d bytes in common", length)
		m.put(t, strings.Repeat("prefix", length)[:length/2]+"other")
		m.put(t, prefix+"other")
		m.check(t)
	}
}

// TestLongKeysAreNotCopiedFromNodeToNode takes a tree of long keys down. If they went from each node
// of the path to the one above, that would be the square of their length.
func TestLongKeysAreNotCopiedFromNodeToNode(t *testing.T) {
	tree := newTree(0)
	keys := make([][]byte, 1100)
	for i := range keys {
		keys[i] = fmt.Append(bytes.Repeat([]byte("k"), 8<<10), i)
		tree.put(keys[i])
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, key := range keys {
		require.True(t, tree.del(key))
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2<<20))
	checkTree(t, &tree)
	require.Zero(t, tree.bytes())
}

// TestDelOfWhatIsNotThereChangesNothing asks for keys beside, above and below those that are there.
func TestDelOfWhatIsNotThereChangesNothing(t *testing.T) {
	m := treeModel{newTree(2), map[string]byte{}, rand.New(rand.NewPCG(2, 1))}
	for i := range 4000 {
		m.put(t, strings.Repeat("deep", 70)+fmt.Sprint(i))
	}
	before := m.tree.bytes()
	for n := range 281 {
		m.del(t, strings.Repeat("deep", 71)[:n])
	}
	for key := range m.want {
		m.del(t, key+"x")
		m.del(t, key+"\x00")
		require.Nil(t, m.tree.get([]byte("x"+key)))
	}
	require.Equal(t, before, m.tree.bytes())
	m.check(t)
}
