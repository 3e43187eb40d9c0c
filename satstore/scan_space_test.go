package satstore

import (
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// TestScansOverlap: space is reused although a Scan is running at every moment, as in a program that
// exports again and again. Each Scan still sees what was there when it began.
func TestScansOverlap(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, vfs.NewMem(), small(Options{Buffer: 64 << 10}))
	const records = 1000
	for i := range records {
		mustAdd(t, s, fmt.Sprint("r", i), 1001, strings.Repeat("d", 100))
	}
	type scan struct {
		next func() (Item, error, bool)
		slot int64
		seen int
	}
	var scans []*scan
	step := func(c *scan, most int) {
		for ; most > 0; most-- {
			item, err, ok := c.next()
			require.NoError(t, err)
			if !ok {
				return
			}
			require.Equal(t, c.slot, slotAt(item.At))
			c.seen++
		}
	}
	begin := func(slot int64) {
		next, stop := iter.Pull2(s.Scan())
		t.Cleanup(stop)
		scans = append(scans, &scan{next: next, slot: slot})
		step(scans[len(scans)-1], 1)
	}
	begin(1001)
	var early, late int64
	for slot := int64(1001); slot < 1200; slot++ {
		for r, err := range s.Due(t.Context(), at(slot)) {
			require.NoError(t, err)
			require.NoError(t, r.Reschedule(at(slot+1), r.Data))
		}
		begin(slot + 1)
		step(scans[0], records+1)
		require.Equal(t, records, scans[0].seen)
		scans = scans[1:]
		if slot == 1040 {
			early = s.Stats().DiskSize
		}
		late = s.Stats().DiskSize
	}
	require.Positive(t, s.Stats().Checkpoints)
	require.Less(t, late, 2*early)
}
