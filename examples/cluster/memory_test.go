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

// A jam is a crawl whose fetches stand still while its seeder goes on.
type jam struct {
	addrs   int   // of all hosts
	waiting int   // crawl.Options.Waiting
	window  int   // crawl.WorkerOptions.Window
	stream  int64 // jet.Options.MaxBytes
	seeds   int
}

// run brings the seeds, and returns when all have found room or the seeder does nothing but wait.
// It reports which, and by how many bytes the process has grown, garbage aside.
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
	// After its first answer an address is left alone for an hour: no consumer could be slower.
	tr.crawl, err = crawl.Create(t.Context(), bus, crawl.Options{
		DedupeParts: 1, HostsParts: 1, FetchParts: 1, Delay: time.Hour, Loopback: true,
		HostPages: j.seeds, Waiting: j.waiting,
	})
	require.NoError(t, err)
	// It collects its garbage often, so that what it reports is up to date.
	start(t, []string{"env", "GOGC=10"},
		append(tr.runArgs(t, "a"), "-window", fmt.Sprint(j.window))...)
	for len(tr.owned(t, "a")) < 3 {
		time.Sleep(20 * time.Millisecond)
	}
	// To keep the first answer takes some memory once, which is no matter of how many URLs there are.
	for host := range tr.web.Hosts() {
		require.NoError(t, tr.crawl.Seed(t.Context(), []string{host.URL()}))
	}
	for len(tr.web.Log()) < j.addrs {
		time.Sleep(20 * time.Millisecond)
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
	// Three seconds without a message span several checkpoints: seeds that find no room in all that
	// time will find none. The process reports its size meanwhile.
	for sent, inRow := uint64(0), 0; inRow < 30; inRow++ {
		select {
		case err := <-seeded:
			require.NoError(t, err)
			for tr.lag(t) > 0 {
				time.Sleep(20 * time.Millisecond)
			}
			// Each host has two in the window, and the others are postponed.
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
		level, err := bus.Level(t.Context(), message.Dedupe, 0)
		require.NoError(t, err)
		if level.Last != sent {
			sent, inRow = level.Last, 0
		}
	}
	grown = tr.heap(t) - before
	require.NotZero(t, tr.crawl.SeedWaits())
	cancel()
	require.ErrorIs(t, <-seeded, context.Canceled)
	require.Zero(t, metFull(tr.fates(t)), "seeds wait, they are not dropped")
	return false, grown
}

// lag counts the messages that dedupe and hosts have still to take.
func (tr *trial) lag(t *testing.T) (n uint64) {
	t.Helper()
	parts, err := tr.crawl.Look(t.Context())
	require.NoError(t, err)
	for _, p := range parts {
		if p.Module != message.Fetch {
			n += p.Lag()
		}
	}
	return n
}

// heap returns what the process says of its memory.
func (tr *trial) heap(t *testing.T) (n int64) {
	t.Helper()
	members, err := tr.crawl.Members(t.Context())
	require.NoError(t, err)
	for _, m := range members {
		n = max(n, int64(m.Heap))
	}
	return n
}

// TestASlowConsumerDoesNotGrowMemory brings ten times more URLs than have room to a crawl in which
// nothing is fetched. What the process needs follows from the options: some hundred bytes for each
// URL that may wait, and for those on their way through it, which the pipes bound. Where the options
// let in the most that may be, it needs a multiple: the bound is none that holds anyway.
func TestASlowConsumerDoesNotGrowMemory(t *testing.T) {
	t.Parallel()
	const (
		waiting, window = 2000, 2000
		inPipes         = 2 * 2 * 32 * 64 // URLs, between the three modules
		perURL          = 512
		keys            = 1 << 20 // of dedupe, which are there for ever
		bound           = (waiting+window+inPipes)*perURL + keys
		seeds           = 100_000
	)
	for name, addrs := range map[string]int{
		"pages wait for the delays of addresses": 7,
		"pages wait for robots.txt":              1,
	} {
		room, grown := jam{addrs, waiting, window, 1 << 20, seeds}.run(t)
		t.Logf("%s: %d bytes, at most %d might", name, grown, bound)
		require.False(t, room, name)
		require.LessOrEqual(t, grown, int64(bound), name)
	}
	room, grown := jam{7, 1 << 20, 0, 1 << 30, seeds}.run(t)
	t.Logf("without bounds: %d bytes", grown)
	require.True(t, room)
	require.Greater(t, grown, int64(2*bound))
}
