package exact

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func sortedPrints(prints []fingerprint) []fingerprint {
	slices.Sort(prints)
	return prints
}

func printsOf(t *table) (prints []fingerprint) {
	next := t.ascending()
	for f, ok := next(); ok; f, ok = next() {
		prints = append(prints, f)
	}
	return prints
}

// TestTableIsASortedMap fills tables to their limit with fingerprints that are distributed evenly,
// like hashes, or crowded at either end.
func TestTableIsASortedMap(t *testing.T) {
	for _, mask := range []uint64{^uint64(0), 0xff, 0xff << 56} {
		t.Run(fmt.Sprintf("mask=%x", mask), func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 0))
			table := newTable(50_000)
			prints := randomPrints(random, 4*table.limit(), mask|1<<63|1)
			random.Shuffle(len(prints), func(i, j int) {
				prints[i], prints[j] = prints[j], prints[i]
			})
			added := prints[:min(table.limit(), len(prints)/2)]
			for range 2 { // the second time after clear
				for i, f := range added {
					require.False(t, table.has(f))
					table.add(f)
					table.add(f)
					require.True(t, table.has(f))
					require.Equal(t, i+1, table.n)
				}
				for _, f := range prints[len(added):] {
					require.False(t, table.has(f))
				}
				require.False(t, table.has(math.MaxUint64-1))
				require.Equal(t, sortedPrints(slices.Clone(added)), printsOf(table))
				table.clear()
				require.Empty(t, printsOf(table))
			}
		})
	}
}

// TestTableMemory checks that a table stays within its memory, and uses most of it.
func TestTableMemory(t *testing.T) {
	table := newTable(1 << 20)
	require.LessOrEqual(t, 8*len(table.slots), 1<<20)
	require.Greater(t, table.limit()*8, 700_000)
}
