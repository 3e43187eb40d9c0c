package linklist

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCleanWorkedByHand(t *testing.T) {
	for _, tt := range []struct {
		name  string
		links []uint32
		want  []uint32
	}{
		{"none", nil, nil},
		{"sorted", []uint32{1, 2, 7}, []uint32{1, 2, 7}},
		{"not sorted", []uint32{7, 1, 2}, []uint32{7, 1, 2}},
		{"twice in a row", []uint32{1, 1, 2}, []uint32{1, 2}},
		{"twice, apart", []uint32{2, 1, 2}, []uint32{2, 1}},
		{"to itself, first", []uint32{5, 6}, []uint32{6}},
		{"to itself, in between", []uint32{4, 5, 6}, []uint32{4, 6}},
		{"only to itself", []uint32{5}, nil},
		{"the last one within the limit", []uint32{1, 99}, []uint32{1, 99}},
		{"one beyond the limit", []uint32{1, 100}, []uint32{1}},
		{"beyond it and not sorted", []uint32{math.MaxUint32, 3, 1}, []uint32{3, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Cleaner{Limit: 100}
			given := slices.Clone(tt.links)
			clean, above := c.Clean(5, tt.links)
			require.Equal(t, tt.want, append([]uint32(nil), clean...))
			require.Equal(t, given, tt.links, "the caller's slice is not changed")
			require.LessOrEqual(t, above, uint64(100))
			for _, to := range clean {
				require.Less(t, uint64(to), above)
			}
		})
	}
}

func TestLinksToOtherHostsComeFirst(t *testing.T) {
	c := Cleaner{Limit: 100, Host: func(id uint32) uint32 { return id / 10 }}
	for _, links := range [][]uint32{{3, 11, 2, 25, 12, 4}, {3, 11, 3, 2, 1, 25, 12, 4, 11}} {
		given := slices.Clone(links)
		clean, above := c.Clean(1, links)
		require.Equal(t, []uint32{11, 25, 12, 3, 2, 4}, clean)
		require.Equal(t, uint64(26), above)
		require.Equal(t, given, links)
	}
}
