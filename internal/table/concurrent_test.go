package table

import (
	"encoding/binary"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// TestConcurrency reads while runs are added, merged and removed. The key of each number is always
// there once it was written, with a value that never becomes smaller.
func TestConcurrency(t *testing.T) {
	const numbers = 64
	o := Options{
		Key: 8, Value: 8, Block: 64, FilterBits: 10, FullBits: 8, Segment: 20, Steps: 5, Memory: 2000,
	}
	table, err := Open(vfs.NewMem(), o, State{})
	require.NoError(t, err)
	var round atomic.Uint64
	write := func(n uint64) {
		var all pairs
		for key := range uint64(numbers) {
			all = append(all, Pair{
				binary.BigEndian.AppendUint64(nil, key), binary.BigEndian.AppendUint64(nil, n),
			})
		}
		require.NoError(t, table.Write(&all))
		round.Store(n)
	}
	write(1)
	done := make(chan struct{})
	go func() { // the owner's writer
		defer close(done)
		for n := range uint64(60) {
			write(2 + n)
		}
	}()
	for steps := 0; ; steps++ {
		_, err := table.Step()
		require.NoError(t, err)
		if steps%10 == 0 {
			table.Saved(table.State())
		}
		least, found := round.Load(), make([]uint64, numbers)
		keys := make([][]byte, numbers)
		for i := range keys {
			keys[i] = binary.BigEndian.AppendUint64(nil, uint64(i))
		}
		require.NoError(t, table.Find(keys, func(i int, value []byte) {
			found[i] = binary.BigEndian.Uint64(value)
		}))
		for _, n := range found {
			require.GreaterOrEqual(t, n, least)
		}
		seen := 0
		require.NoError(t, scan(table, nil, func(_, value []byte) {
			require.GreaterOrEqual(t, binary.BigEndian.Uint64(value), least)
			seen++
		}))
		require.Equal(t, numbers, seen)
		select {
		case <-done:
			table.Close()
			return
		default:
		}
	}
}
