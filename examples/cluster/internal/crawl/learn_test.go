package crawl

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/engine"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
	"github.com/spinneret-go/spinneret/scheduler"
)

// owner returns a partition of fetch of the owner of an epoch.
func owner(epoch uint64) *fetcher {
	w := &Worker{Crawl: &Crawl{Options: Options{}.withDefaults()}}
	return w.newFetcher(engine.Claim{Dest: message.Dest{To: message.Fetch}, Epoch: epoch})
}

// requireKnown requires that a partition knows that all hosts have asked for patience.
func requireKnown(t *testing.T, f *fetcher, hosts int, until time.Time) {
	t.Helper()
	known := 0
	for e := range f.queue.All(time.Now()) {
		if e.Host != "" {
			known++
			require.WithinDuration(t, until, e.RetryAfter, time.Millisecond, e.Host)
		}
	}
	require.Equal(t, hosts, known)
}

// TestALargeSchedulerIsSavedInChunks has a scheduler with so many unusual hosts that they take
// several chunks, and learns of one more after that. The next owner knows all of them.
func TestALargeSchedulerIsSavedInChunks(t *testing.T) {
	const hosts, size = 6000, 64 << 10
	f := owner(1)
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	for i := range hosts {
		entry := scheduler.Entry{Host: fmt.Sprintf("h%04d.test", i), RetryAfter: until}
		require.NoError(t, f.queue.Restore(entry, f.started))
	}
	require.True(t, f.Rewrite())
	chunks := f.Changes(true, size)
	require.Greater(t, len(chunks), 1)
	for _, c := range chunks {
		require.Less(t, len(c), size)
	}
	require.GreaterOrEqual(t, f.due, learnEvery)
	require.False(t, f.Rewrite(), "it is not time yet")
	require.Empty(t, f.Changes(false, size))

	last := learned("last.test", netip.Addr{}, scheduler.Outcome{Status: http.StatusTooManyRequests, RetryAfter: until})
	f.settle(task{}, visited{requeue: true}, last, nil)
	seq, more := f.Progress()
	data, err := json.Marshal(more)
	require.NoError(t, err)
	next := owner(2)
	for _, c := range chunks {
		require.NoError(t, next.Load(c))
	}
	require.NoError(t, next.Resume(seq, data))
	requireKnown(t, next, hosts+1, until)

	// Many failures in a row make it earlier.
	f.settle(task{}, visited{requeue: true}, make([]scheduler.Entry, maxRecent), nil)
	require.True(t, f.Rewrite())
	f.Changes(true, size)
	require.Empty(t, f.learned)

	// A small scheduler takes one chunk, and so does one that has learned nothing.
	require.Len(t, owner(3).Changes(true, size), 1)
}
