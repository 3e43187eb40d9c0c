package pagerank

import (
	"encoding/binary"
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
		back := make([]uint32, len(tt.ids))
		decode(got[1:], tt.page, back)
		require.Equal(t, tt.ids, back, tt.name)
	}
}

func TestSpanCountsNumbers(t *testing.T) {
	b := []byte{1, 0x80, 1, 0x80, 0x80, 1, 5}
	for numbers, want := range []int{0, 1, 3, 6, 7} {
		require.Equal(t, want, span(b, numbers), "%d numbers", numbers)
	}
	require.Zero(t, span(nil, 0))
}

// FuzzLists reads any list as it was written.
func FuzzLists(f *testing.F) {
	f.Add(uint32(7), []byte{2, 0, 0, 1})
	f.Add(uint32(math.MaxUint32), []byte{0xfd, 0xff, 0xff, 0xff, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, page uint32, b []byte) {
		var ids []uint32
		for ; len(b) >= 4; b = b[4:] {
			ids = append(ids, binary.LittleEndian.Uint32(b))
		}
		slices.Sort(ids)
		if ids = slices.Compact(ids); len(ids) == 0 {
			return
		}
		var s linkStore
		at := s.put(page, ids)
		require.True(t, slices.Equal(ids, s.read(at, page, nil)))
		s.drop(at)
		require.Zero(t, s.size)
	})
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
