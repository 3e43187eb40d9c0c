package crawl

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/engine"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
	"github.com/spinneret-go/spinneret/scheduler"
)

// owner returns a partition of fetch of the owner of an epoch, with an empty scheduler.
func owner(t *testing.T, bus *jet.Bus, states *jet.Table, epoch uint64) *fetcher {
	t.Helper()
	claim := engine.Claim{
		Dest: message.Dest{To: message.Fetch}, Epoch: epoch, Guard: func() error { return nil },
	}
	keeper, err := engine.Keep(t.Context(), bus, states, claim)
	require.NoError(t, err)
	return &fetcher{
		Worker: &Worker{Crawl: &Crawl{States: states}}, claim: claim, keeper: keeper,
		queue:   scheduler.New[task](scheduler.Options{MaxQueue: -1}),
		started: time.Now(),
	}
}

// save stores the root of a partition.
func save(t *testing.T, bus *jet.Bus, f *fetcher) {
	t.Helper()
	post := engine.NewPost(bus, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go post.Run(ctx)
	require.NoError(t, <-post.Commit(f.keeper, &f.out, true))
}

// TestALargeSchedulerIsSavedInChunks has a scheduler with so many unusual hosts that they take
// several chunks. The next owner reads all of them, chunks that the root no longer names are
// reported, and a small state takes one chunk.
func TestALargeSchedulerIsSavedInChunks(t *testing.T) {
	bus := connect(t, startBroker(t))
	require.NoError(t, bus.CreateStream(t.Context()))
	states, err := bus.MakeTable(t.Context(), "states")
	require.NoError(t, err)

	const hosts = 6000
	f := owner(t, bus, states, 1)
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	for i := range hosts {
		entry := scheduler.Entry{Host: fmt.Sprintf("h%04d.test", i), RetryAfter: until}
		require.NoError(t, f.queue.Restore(entry, f.started))
	}
	var m memory
	old, err := m.learn(t.Context(), f)
	require.NoError(t, err)
	require.Empty(t, old)
	require.Greater(t, len(f.keeper.Root.Chunks), 1)
	for _, c := range f.keeper.Root.Chunks {
		require.Less(t, c.Size, 2*learnChunk)
	}
	require.GreaterOrEqual(t, m.due, learnEvery)
	first := f.keeper.Root.Chunks
	save(t, bus, f)

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
	save(t, bus, f)
	f.keeper.Drop(t.Context(), old)

	next := owner(t, bus, states, 2)
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

	// A small scheduler takes one chunk.
	small := owner(t, bus, states, 3)
	require.NoError(t, small.queue.Restore(scheduler.Entry{Host: "a.test", RetryAfter: until}, small.started))
	m = memory{}
	old, err = m.learn(t.Context(), small)
	require.NoError(t, err)
	require.NotEmpty(t, old, "the chunks of the last owner")
	require.Len(t, small.keeper.Root.Chunks, 1)
}
