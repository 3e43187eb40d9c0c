package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/crawl"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
	"github.com/spinneret-go/spinneret/fetch/webtest"
)

// A jam is a crawl that fetches nothing while its seeder continues.
type jam struct {
	addrs   int   // of all hosts
	waiting int   // crawl.Options.Waiting
	window  int   // crawl.WorkerOptions.Window
	stream  int64 // jet.Options.MaxBytes
	seeds   int
}

// run adds the seeds, and returns when all are accepted or the seeder only waits. It reports which,
// and by how many bytes the live heap of the process has grown.
func (j jam) run(t *testing.T) (roomForAll bool, grown int64) {
	t.Helper()
	_, urls := lone(t, t.TempDir(), 0)
	tr := serveTrial(t, func(port int) (site, error) {
		return webtest.Start(webtest.Options{Hosts: 7, Addrs: j.addrs, Pages: 1, Port: port})
	})
	bus, err := jet.Connect(t.Context(), jet.Options{URL: urls, MaxBytes: j.stream})
	require.NoError(t, err)
	t.Cleanup(bus.Close)
	tr.urls = urls
	// After its first response an address gets no request for an hour: the slowest possible consumer.
	tr.crawl, err = crawl.Create(t.Context(), bus, crawl.Options{
		Parts: 1, Delay: time.Hour, Loopback: true,
		HostPages: j.seeds, Waiting: j.waiting,
	})
	require.NoError(t, err)
	// Frequent garbage collection keeps the reported heap up to date.
	start(t, []string{"env", "GOGC=10"},
		append(tr.runArgs(t, "a"), "-window", fmt.Sprint(j.window))...)
	for len(tr.owned(t, "a")) < 3 {
		time.Sleep(20 * time.Millisecond)
	}
	// Storing the first response takes some memory once, independent of the number of URLs.
	for host := range tr.web.Hosts() {
		require.NoError(t, tr.crawl.Seed(t.Context(), []string{host.URL()}))
	}
	// An address whose first request fails, as on a busy machine, gets no other one in the test.
	for seen, inRow := 0, 0; seen < j.addrs && inRow < 500; inRow++ {
		time.Sleep(20 * time.Millisecond)
		if n := len(tr.web.Log()); n > seen {
			seen, inRow = n, 0
		}
	}
	time.Sleep(2 * time.Second) // some reports and collections
	before := tr.heap(t)

	seeds := make([]string, j.seeds)
	for i := range seeds {
		seeds[i] = fmt.Sprintf("http://h%05d.vweb.test/%032d", i%7, i)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seeded := make(chan error, 1)
	go func() { seeded <- tr.crawl.Seed(ctx, seeds) }()
	// Three seconds without a message span several checkpoints: seeds that are not accepted by then
	// never will be. The process reports its heap in that time.
	for sent, inRow := uint64(0), 0; inRow < 30; inRow++ {
		select {
		case err := <-seeded:
			require.NoError(t, err)
			for tr.lag(t) > 0 {
				time.Sleep(20 * time.Millisecond)
			}
			// Each host has two URLs in the window; the others are postponed.
			late := func() int64 {
				return tr.fates(t)["postponed (the host or its address has enough queued)"]
			}
			for late() < int64(j.seeds-2*7) {
				time.Sleep(20 * time.Millisecond)
			}
			time.Sleep(2 * time.Second) // some reports
			return true, tr.heap(t) - before
		case <-time.After(100 * time.Millisecond):
		}
		end, err := bus.End(t.Context(), message.Dest{To: message.Dedupe})
		require.NoError(t, err)
		if end > sent { // 0 once all are removed
			sent, inRow = end, 0
		}
	}
	grown = tr.heap(t) - before
	cancel()
	require.ErrorIs(t, <-seeded, context.Canceled)
	require.Zero(t, tr.fates(t)["queue_full"], "seeds wait instead of being dropped")
	return false, grown
}

// lag counts the messages that dedupe and hosts have not applied yet.
func (tr *trial) lag(t *testing.T) (n uint64) {
	t.Helper()
	parts, _, _, err := tr.crawl.Look(t.Context())
	require.NoError(t, err)
	for _, p := range parts {
		if p.To != message.Fetch {
			n += p.Lag()
		}
	}
	return n
}

// heap returns the live heap that the process reports.
func (tr *trial) heap(t *testing.T) (n int64) {
	t.Helper()
	_, members, _, err := tr.crawl.Look(t.Context())
	require.NoError(t, err)
	for _, m := range members {
		n = max(n, int64(m.Heap))
	}
	return n
}

// TestASlowConsumerDoesNotGrowMemory adds many times more URLs than fit to a crawl that fetches
// nothing. The options bound the memory of the process: some hundred bytes for each URL that may
// wait, and for each URL in its pipes. With the largest bounds it uses a multiple of that, which
// shows that smaller bounds take effect.
func TestASlowConsumerDoesNotGrowMemory(t *testing.T) {
	t.Parallel()
	const (
		waiting, window = 2000, 2000
		inPipes         = 2 * 64 * 64 // URLs, between the three modules
		perURL          = 512
		keys            = 1 << 20 // of dedupe, which are never removed
		bound           = (waiting+window+inPipes)*perURL + keys
		seeds           = 100_000
	)
	for name, addrs := range map[string]int{
		"pages wait for the delays of addresses": 7,
		"pages wait for robots.txt":              1,
	} {
		room, grown := jam{addrs, waiting, window, 8 << 20, seeds}.run(t)
		t.Logf("%s: %d bytes (limit %d)", name, grown, bound)
		require.False(t, room, name)
		require.LessOrEqual(t, grown, int64(bound), name)
	}
	room, grown := jam{7, 1 << 20, 0, 1 << 30, seeds}.run(t)
	t.Logf("without bounds: %d bytes", grown)
	require.True(t, room)
	require.Greater(t, grown, int64(2*bound))
}
