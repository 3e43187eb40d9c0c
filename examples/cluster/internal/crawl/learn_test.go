package crawl

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/engine"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/scheduler"
)

// owner returns a partition of fetch of the owner of an epoch, with an empty scheduler.
func owner(t *testing.T, states *jet.Table, epoch uint64) *fetcher {
	t.Helper()
	claim := engine.Claim{
		Module: message.Fetch, Epoch: epoch, Guard: func() error { return nil },
	}
	keeper, err := engine.Keep(t.Context(), states, claim)
	require.NoError(t, err)
	return &fetcher{
		Worker: &Worker{Crawl: &Crawl{States: states}}, claim: claim, keeper: keeper,
		queue:   scheduler.New[task](scheduler.Options{MaxQueue: -1}),
		started: time.Now(),
	}
}

// TestALargeSchedulerIsSavedInChunks has a scheduler with so many unusual hosts that they take
// several chunks. The next owner reads all of them, chunks that the root no longer names are
// reported, and a small state is saved in the root again.
func TestALargeSchedulerIsSavedInChunks(t *testing.T) {
	s, err := jet.StartServer(jet.ServerOptions{Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	bus, err := jet.Connect(t.Context(), jet.Options{URL: s.URL()})
	require.NoError(t, err)
	t.Cleanup(bus.Close)
	states, err := bus.MakeTable(t.Context(), "states")
	require.NoError(t, err)

	const hosts = 6000
	f := owner(t, states, 1)
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	for i := range hosts {
		entry := scheduler.Entry{Host: fmt.Sprintf("h%04d.test", i), RetryAfter: until}
		require.NoError(t, f.queue.Restore(entry, f.started))
	}
	var m memory
	old, err := m.learn(t.Context(), f)
	require.NoError(t, err)
	require.Empty(t, old)
	require.Nil(t, m.whole, "it is in chunks")
	require.Greater(t, len(f.keeper.Root.Chunks), 1)
	for _, c := range f.keeper.Root.Chunks {
		require.Less(t, c.Size, 2*learnChunk)
	}
	require.GreaterOrEqual(t, m.due, learnSeldom)
	first := f.keeper.Root.Chunks
	require.NoError(t, f.keeper.Store(t.Context()))

	// It is not time yet, even if other things are saved.
	old, err = m.learn(t.Context(), f)
	require.NoError(t, err)
	require.Empty(t, old)
	require.Equal(t, first, f.keeper.Root.Chunks)

	// Many failures in a row make it earlier. The old chunks are unused once the root is stored.
	m.recent = make([]scheduler.Entry, maxRecent)
	old, err = m.learn(t.Context(), f)
	require.NoError(t, err)
	require.Equal(t, first, old)
	require.Empty(t, m.recent)
	require.NoError(t, f.keeper.Store(t.Context()))
	f.keeper.Drop(t.Context(), old)

	next := owner(t, states, 2)
	require.NoError(t, next.remember(t.Context(), extra{}))
	known := map[string]time.Time{}
	for e := range next.queue.All(time.Now()) {
		if e.Host != "" {
			known[e.Host] = e.RetryAfter
		}
	}
	require.Len(t, known, hosts)
	for host, at := range known {
		require.WithinDuration(t, until, at, time.Millisecond, host)
	}

	// A small scheduler is saved in the root.
	small := owner(t, states, 3)
	require.NoError(t, small.queue.Restore(scheduler.Entry{Host: "a.test", RetryAfter: until}, small.started))
	m = memory{}
	old, err = m.learn(t.Context(), small)
	require.NoError(t, err)
	require.NotEmpty(t, old, "the chunks of the last owner")
	require.Empty(t, small.keeper.Root.Chunks)
	n := 0
	for _, err := range stage.Entries[scheduler.Entry](m.whole) {
		require.NoError(t, err)
		n++
	}
	require.Positive(t, n)
}
