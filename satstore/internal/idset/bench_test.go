package idset

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// BenchmarkStep merges two runs of a million ids to one segment, in steps.
func BenchmarkStep(b *testing.B) {
	const entries = 1 << 20
	was := options
	defer func() { options = was }()
	options.Segment, options.Steps = 2*entries, 64<<10
	for b.Loop() {
		b.StopTimer()
		x, err := Open(vfs.OS(b.TempDir()), State{})
		require.NoError(b, err)
		for run := range 2 {
			for n := range entries {
				x.Put(hashed(run*entries+n), uint64(n))
			}
			x.Freeze()
			require.NoError(b, x.Flush())
		}
		b.StartTimer()
		for more := true; more; {
			more, err = x.Step()
			require.NoError(b, err)
		}
		b.StopTimer()
		x.Close()
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*2*entries), "ns/id")
}
