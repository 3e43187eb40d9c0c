package layers

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLayerIsABloomFilter compares layers of odd sizes with a model, a map of bits.
func TestLayerIsABloomFilter(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	for _, size := range []uint64{1, 2, 63, 64, 65, 1000, 4097} {
		for _, functions := range []uint64{1, 3, 10} {
			l := Of(make([]uint64, (size+63)/64), size, functions, 0)
			set := map[uint64]bool{}
			for range 300 {
				key := random.Uint64()
				spots := spotsOf(l, key)
				want := true
				for _, spot := range spots {
					require.Less(t, spot, size)
					want = want && set[spot]
				}
				require.Equal(t, want, l.Test(key), "%d bits, %d functions", size, functions)
				if random.IntN(3) == 0 {
					l.Add(key)
					for _, spot := range spots {
						set[spot] = true
					}
				}
			}
			count := 0
			for _, word := range l.Words() {
				count += bits.OnesCount64(word)
			}
			require.Len(t, set, count)
		}
	}
}

// spotsOf computes positions as described in FORMAT.md of package dedupe.
func spotsOf(l *Layer, key uint64) (spots []uint64) {
	position, step := key*0x9e3779b97f4a7c15, (key^key>>32)*0xd6e8feb86659fd93
	for range l.Functions() {
		spots = append(spots, uint64(l.at(position)))
		position = position*6364136223846793005 + step
	}
	return spots
}
