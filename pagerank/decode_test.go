package pagerank

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestListsWorkedByHand(t *testing.T) {
	for _, tt := range []struct {
		name string
		page uint32
		ids  []uint32
		want []byte
	}{
		{"none", 7, nil, []byte{0, 0}},
		{"the next page", 7, []uint32{8}, []byte{1, 2}},
		{"the page before", 7, []uint32{6}, []byte{1, 1}},
		{"three in a row, filled up", 7, []uint32{8, 9, 10}, []byte{3, 2, 0, 0}},
		{"far back, then near", 1000, []uint32{0, 128}, []byte{2, 0xcf, 0x0f, 0x7f}},
		{"a gap of two bytes", 0, []uint32{1, 130}, []byte{2, 2, 0x80, 0x01}},
		{"from one end to the other", math.MaxUint32, []uint32{0, math.MaxUint32 - 1},
			[]byte{2, 0xfd, 0xff, 0xff, 0xff, 0x1f, 0xfd, 0xff, 0xff, 0xff, 0x0f, 0}},
	} {
		got := encode(nil, tt.page, tt.ids)
		require.Equal(t, tt.want, got, tt.name)
		if len(tt.ids) == 0 {
			continue
		}
		back := make([]uint32, len(tt.ids))
		require.True(t, decode(got[1:], tt.page, back, math.MaxUint32), tt.name)
		require.Equal(t, tt.ids, back, tt.name)
	}
}

func TestBrokenListsAreRefused(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing": {}, "no end": {0x80}, "no second one": {2},
		"before the first id":     {0x80 | 21, 1, 0},
		"beyond all ids":          {0xff, 0xff, 0xff, 0xff, 0xff, 1, 0},
		"a gap without an end":    {2, 0x80, 0x80},
		"a gap beyond 32 bits":    {2, 0x80, 0x80, 0x80, 0x80, 0x20},
		"the second one too high": {2, 0xff, 1},
	} {
		require.False(t, decode(b, 10, make([]uint32, 2), 100), name)
	}
	require.True(t, decode([]byte{2, 88}, 10, make([]uint32, 2), 100), "11 and 100")
	require.False(t, decode([]byte{2, 89}, 10, make([]uint32, 2), 100), "101")
}

func TestSpanCountsNumbers(t *testing.T) {
	b := []byte{1, 0x80, 1, 0x80, 0x80, 1, 5}
	for numbers, want := range []int{0, 1, 3, 6, 7, -1} {
		require.Equal(t, want, span(b, numbers), "%d numbers", numbers)
	}
	require.Zero(t, span(nil, 0))
}

// FuzzLists decodes any bytes: what is taken is a list that rises and encodes to something that
// decodes to the same.
func FuzzLists(f *testing.F) {
	f.Add(uint32(7), uint8(3), []byte{2, 0, 0})
	f.Add(uint32(1000), uint8(2), []byte{0xcf, 0x0f, 0x7f})
	f.Add(uint32(math.MaxUint32), uint8(1), []byte{0xfd, 0xff, 0xff, 0xff, 0x1f})
	f.Fuzz(func(t *testing.T, page uint32, count uint8, b []byte) {
		ids := make([]uint32, int(count)+1)
		last := uint32(math.MaxUint32 - 5)
		if !decode(b, page, ids, last) {
			t.Skip()
		}
		require.True(t, slices.IsSorted(ids))
		require.Len(t, slices.Compact(slices.Clone(ids)), len(ids))
		require.LessOrEqual(t, ids[len(ids)-1], last)
		again := encode(nil, page, ids)
		_, n := binary.Uvarint(again)
		back := make([]uint32, len(ids))
		require.True(t, decode(again[n:], page, back, last))
		require.Equal(t, ids, back)
	})
}

// A forgetfulSpill takes all and gives back other bytes.
type forgetfulSpill struct {
	give func(i int64) byte
}

func (s *forgetfulSpill) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }
func (s *forgetfulSpill) ReadAt(p []byte, off int64) (int, error) {
	for i := range p {
		p[i] = s.give(off + int64(i))
	}
	return len(p), nil
}

// TestASpillThatLiesBreaksNothing reads lists of all kinds of bytes that were never written.
func TestASpillThatLiesBreaksNothing(t *testing.T) {
	noise := rand.New(rand.NewPCG(2, 35))
	for name, give := range map[string]func(int64) byte{
		"zeros": func(int64) byte { return 0 }, "ones": func(int64) byte { return 0xff },
		"small": func(int64) byte { return 3 }, "any": func(int64) byte { return byte(noise.Uint32()) },
		"a long list": func(i int64) byte { return byte(0x7f - i%2*0x7f) },
	} {
		r := rand.New(rand.NewPCG(1, 35))
		f := New(Options{Threshold: 0.1, Spill: &forgetfulSpill{give: give}})
		for i := range 1200 {
			f.Fetched(uint32(i)%1000, rising(r, 150)) // 3 blocks of links
		}
		for id, score := range f.All() {
			require.False(t, math.IsNaN(score), "%s: %d", name, id)
			require.Less(t, id, uint32(150*33), "%s: a link to an id that was never met", name)
		}
		if name == "ones" {
			require.Error(t, f.Stats().Err)
		}
	}
}

func TestTheFirstErrorOfASpillIsTold(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	var s linkStore
	s.fail(first)
	s.fail(second)
	require.Equal(t, first, s.err)
	require.Zero(t, s.put(1, []uint32{2}), "nothing is kept from then on")
}

func TestLinksTakeLessThanTheBoundThatIsStated(t *testing.T) {
	// Pages link to five neighbours and to three pages anywhere below n, as the web does.
	const n = 200_000
	r := rand.New(rand.NewPCG(1, 36))
	var s linkStore
	for page := range uint32(20_000) {
		list := []uint32{page + 1, page + 2, page + 3, page + 10, page + 50}
		for range 3 {
			list = append(list, r.Uint32N(n))
		}
		slices.Sort(list)
		s.put(page, slices.Compact(list))
	}
	perLink := float64(s.end) / float64(s.size)
	require.Less(t, perLink, 2.4)
	require.Greater(t, perLink, 3*math.Log2(n/3)/8/8, "three links of eight are random")
}
