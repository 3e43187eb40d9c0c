package hattrie

import (
	"bytes"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// TestArenaAgainstMap allocates, shrinks and frees blocks of all sizes, filled with a byte that
// identifies them.
func TestArenaAgainstMap(t *testing.T) {
	type block struct {
		addr uint32
		n    int
		fill byte
	}
	for seed := range uint64(4) {
		a := arena{limit: math.MaxInt}
		r := rand.New(rand.NewPCG(seed, 0))
		var live []block
		bytesOf := func(b block) []byte { return a.at(b.addr)[4:b.n] }
		check := func(b block) {
			if bytes.Count(bytesOf(b), []byte{b.fill}) != b.n-4 {
				t.Fatalf("seed %d: block %d of %d bytes was overwritten", seed, b.addr, b.n)
			}
		}
		for step := range 6000 {
			limit := 5
			if step%2000 < 1000 {
				limit = 7 // it grows
			}
			if len(live) == 0 || r.IntN(10) < limit {
				b := block{n: 5 + r.IntN(1<<(3+r.IntN(13))), fill: byte(r.Uint32())}
				b.addr = a.alloc(b.n)
				require.NotZero(t, b.addr)
				require.GreaterOrEqual(t, sizeOf(a.at(b.addr)), b.n)
				copy(bytesOf(b), bytes.Repeat([]byte{b.fill}, b.n))
				live = append(live, b)
				continue
			}
			i := r.IntN(len(live))
			check(live[i])
			if live[i].n > 100 && r.IntN(2) == 0 {
				live[i].n -= r.IntN(live[i].n - 5)
				a.shrink(live[i].addr, live[i].n)
				check(live[i])
				continue
			}
			a.free(live[i].addr)
			live[i] = live[len(live)-1]
			live = live[:len(live)-1]
		}
		checkBlocks(t, &a)
		for _, b := range live {
			check(b)
			a.free(b.addr)
		}
		checkBlocks(t, &a)
		require.Zero(t, a.used)
		kept := 0
		for _, chunk := range a.chunks {
			if chunk != nil {
				kept++
			}
		}
		require.LessOrEqual(t, kept, 1, "an empty arena keeps one chunk")
	}
}

// checkBlocks checks each chunk block by block: no two neighbors are free, each block knows whether
// the previous one is, and the sizes add up.
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
				t.Fatal("free neighbours are not merged")
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

// TestFullArenasPanic allocates more blocks and more values than there are numbers for.
func TestFullArenasPanic(t *testing.T) {
	a := arena{chunks: make([][]byte, maxChunks), limit: math.MaxInt}
	require.Panics(t, func() { a.alloc(1) })
	a = arena{chunks: make([][]byte, maxChunks-1), limit: math.MaxInt}
	addr := a.alloc(1)
	require.Less(t, addr, uint32(1)<<addrBits)
	require.Equal(t, addr, leafRef(addr, maxLevel).addr())
	a.free(addr)
	full := values[string]{used: math.MaxUint32}
	require.Panics(t, func() { full.alloc() })
}

// TestValuesApartCountWhatTheHeapTakes compares the bytes that are held with those of the heap, for
// sizes just above one of its classes, and with pointers.
func TestValuesApartCountWhatTheHeapTakes(t *testing.T) {
	heldIs[[1400]byte](t)
	heldIs[[2100]byte](t)
	heldIs[[33000]byte](t)
	heldIs[string](t)
	heldIs[[150]*int](t)
}

func heldIs[V any](t *testing.T) {
	t.Helper()
	var before, after runtime.MemStats
	s := newValues[V]()
	s.chunks = make([]chunk[V], 0, 1000)
	runtime.GC()
	runtime.ReadMemStats(&before)
	for len(s.chunks) < 1000 || s.needs() == 0 {
		s.alloc()
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	_, reserved := s.memory()
	reserved -= len(s.chunks) * int(unsafe.Sizeof(chunk[V]{})) // made before
	require.InEpsilon(t, reserved, after.HeapAlloc-before.HeapAlloc, 0.02, "%T", *new(V))
	used, _ := s.memory()
	require.LessOrEqual(t, used, reserved)
	runtime.KeepAlive(s)
}

// TestALimitThatRisesInSmallSteps gives a page more whenever nothing fits. That took one chunk each.
func TestALimitThatRisesInSmallSteps(t *testing.T) {
	a := arena{limit: 256 << 10}
	for a.reserved < 64<<20 {
		if a.alloc(1<<10) == 0 {
			a.limit += minChunk
		}
		require.LessOrEqual(t, a.reserved, a.limit)
	}
	require.Less(t, len(a.chunks), maxChunks/2)
	require.Greater(t, a.reserved, a.limit*9/10)
}

// TestListsHaveBlocksOfTheirSizes checks that the blocks of the list that search returns are large
// enough.
func TestListsHaveBlocksOfTheirSizes(t *testing.T) {
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
