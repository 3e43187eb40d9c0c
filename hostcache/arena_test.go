package hostcache

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestArenaAgainstMap allocates and frees blocks of all sizes, filled with a pattern that says
// whose they are.
func TestArenaAgainstMap(t *testing.T) {
	for seed := range uint64(4) {
		var a arena
		r := rand.New(rand.NewPCG(seed, 0))
		type block struct {
			addr uint32
			n    int
			fill byte
		}
		var live []block
		bytesOf := func(b block) []byte { return a.at(b.addr)[4:b.n] }
		for step := range 6000 {
			if grow := step%2000 < 1000; len(live) == 0 || r.IntN(10) < 4+b2i(grow)*2 {
				b := block{n: 5 + r.IntN(1<<(3+r.IntN(13))), fill: byte(r.Uint32())}
				b.addr = a.alloc(b.n)
				require.NotZero(t, b.addr)
				require.GreaterOrEqual(t, size(a.at(b.addr)), b.n)
				copy(bytesOf(b), bytes.Repeat([]byte{b.fill}, b.n))
				live = append(live, b)
			} else {
				i := r.IntN(len(live))
				b := live[i]
				if bytes.Count(bytesOf(b), []byte{b.fill}) != b.n-4 {
					t.Fatalf("block %d of %d bytes was overwritten", b.addr, b.n)
				}
				a.free(b.addr)
				live[i] = live[len(live)-1]
				live = live[:len(live)-1]
			}
			require.LessOrEqual(t, a.used, a.reserved)
		}
		for _, b := range live {
			a.free(b.addr)
		}
		checkEmpty(t, &a)
	}
}

// checkEmpty asks that all memory is joined again, and that one chunk at most is kept.
func checkEmpty(t *testing.T, a *arena) {
	t.Helper()
	require.Zero(t, a.used)
	kept, lists := 0, 0
	for _, c := range a.chunks {
		kept += b2i(c != nil)
	}
	for _, head := range a.bins {
		lists += b2i(head != 0)
	}
	require.LessOrEqual(t, kept, 1)
	require.Equal(t, kept, lists)
}

// TestNumbersDoNotWrap asks for more blocks and more values than there are numbers for.
func TestNumbersDoNotWrap(t *testing.T) {
	a := arena{chunks: make([][]byte, maxChunks)}
	require.Panics(t, func() { a.alloc(1) })
	a = arena{chunks: make([][]byte, maxChunks-1)}
	addr := a.alloc(1)
	require.Less(t, addr, uint32(1)<<addrBits)
	a.free(addr)
	s := store[string]{used: math.MaxUint32}
	require.Panics(t, func() { s.alloc() })
}

// TestEveryClassHasItsSizes holds what search promises: the blocks of its list are big enough.
func TestEveryClassHasItsSizes(t *testing.T) {
	last := 0
	for n := uint32(1); n < chunkUnits; n++ {
		c := class(n)
		if c != last && c != last+1 || c >= classes {
			t.Fatalf("%d units are in class %d, after %d", n, c, last)
		}
		last = c
	}
	var a arena
	for n := uint32(2); n < chunkUnits/2; n++ {
		c := class(n)
		a.inUse[c/64] = 1 << (c % 64)
		if found := a.search(n); found >= 0 && found == class(n-1) {
			t.Fatalf("a list with blocks of %d units for %d", n-1, n)
		}
		a.inUse[c/64] = 0
	}
}

// TestLeavesKeepTheirRecords looks into the leaves that random keys make.
func TestLeavesKeepTheirRecords(t *testing.T) {
	tree := newTree(3)
	r := rand.New(rand.NewPCG(1, 0))
	for range 20_000 {
		key := make([]byte, r.IntN(6))
		for i := range key {
			key[i] = byte(r.IntN(5))
		}
		tree.put(key)
	}
	total := 0
	var visit func(r ref)
	visit = func(r ref) {
		if !r.isLeaf() {
			n := tree.node(r)
			total += b2i(n.value() != nil)
			require.Zero(t, n.next(0), "the first child begins at 0")
			for c, i := 0, 0; c < 256; c, i = n.next(c+1), i+1 {
				r := getRef(n.slot(i))
				require.Equal(t, i, n.index(byte(c)))
				require.Equal(t, c, n.begin(byte(n.next(c+1)-1)))
				if r.isNode() {
					require.Equal(t, c+1, n.next(c+1), "a node has one byte")
				}
				if r != 0 {
					visit(r)
				}
			}
			return
		}
		l := tree.leaf(r)
		require.Positive(t, l.count(), "a leaf without records is removed")
		require.LessOrEqual(t, l.end(), size(l.body))
		require.LessOrEqual(t, headSize(l.level), size(l.head))
		require.Len(t, l.records(nil), l.count())
		require.Equal(t, firstRecord, l.bound(0))
		for bucket := range l.buckets() {
			for rec := l.bound(bucket); rec < l.bound(bucket+1); rec += l.recSize(rec) {
				hash := tree.hash(tree.key(l, rec))
				require.Equal(t, bucket, bucketOf(hash, l.level))
				require.Zero(t, bitsOf(hash)&^l.filter(bucket), "the filter misses a record")
			}
		}
		rec := l.tailBegin()
		for i := range l.tail() {
			require.Equal(t, rec, l.place(i))
			require.Equal(t, tagOf(tree.hash(tree.key(l, rec))), l.head[leafTags+i])
			rec += l.recSize(rec)
		}
		require.Equal(t, l.end(), rec)
		total += l.count()
	}
	visit(getRef(tree.root[:]))
	require.Equal(t, tree.count, total)
}

// TestFloodsDoNotHitOneBucket holds that a leaf's buckets stay short for keys that have all but one
// byte in common, and that two trees put them into different ones.
func TestFloodsDoNotHitOneBucket(t *testing.T) {
	a, b := newTree(0), newTree(0)
	same := 0
	for c := range 256 {
		key := append(bytes.Repeat([]byte{'x'}, 40), byte(c))
		a.put(key)
		b.put(key)
		same += b2i(bucketOf(a.hash(key), 6) == bucketOf(b.hash(key), 6))
	}
	require.Less(t, same, 30, "4 of 256 are to be expected")
	l := a.leaf(getRef(a.root[:]))
	for bucket := range l.buckets() {
		require.Less(t, l.bound(bucket+1)-l.bound(bucket), 25*42, "25 of 256 keys in a bucket")
	}
}

func TestAfter(t *testing.T) {
	for _, tt := range []struct{ name, prefix, next string }{
		{"last byte", "ab", "ac"},
		{"all ones at the end", "a\xff\xff", "b"},
		{"zero", "\x00", "\x01"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			next, over := after([]byte(tt.prefix))
			require.Equal(t, tt.next, string(next))
			require.False(t, over)
		})
	}
	for _, prefix := range []string{"", "\xff\xff"} {
		_, over := after([]byte(prefix))
		require.True(t, over, "%q", prefix)
	}
}
