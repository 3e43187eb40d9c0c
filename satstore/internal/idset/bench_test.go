package idset

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// BenchmarkStep merges two runs of a million ids to one segment, the longest possible step.
func BenchmarkStep(b *testing.B) {
	const entries = 1 << 20
	was := segmentEntries
	defer func() { segmentEntries = was }()
	segmentEntries = 2 * entries
	for b.Loop() {
		b.StopTimer()
		x := New(vfs.OS(b.TempDir()))
		for run := range 2 {
			for n := range entries {
				x.Put(hashed(run*entries+n), uint64(n))
			}
			x.Freeze()
			require.NoError(b, x.Flush())
		}
		b.StartTimer()
		more, err := x.Step(nil)
		b.StopTimer()
		require.NoError(b, err)
		require.True(b, more)
		require.EqualValues(b, 2*entries, x.runs[0].count())
		require.NoError(b, x.Close())
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*2*entries), "ns/id")
}
