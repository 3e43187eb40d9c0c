package crawl

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch/webtest"
)

// countingBroker starts a broker that counts the requests to its API.
func countingBroker(t *testing.T) (url string, requests func() uint64) {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, StoreDir: t.TempDir(), JetStream: true, NoSigs: true, NoLog: true,
	})
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(20*time.Second))
	return s.ClientURL(), func() uint64 {
		info, err := s.Jsz(nil)
		require.NoError(t, err)
		return info.API.Total
	}
}

// TestMessagesCarryManyItemsAndAnIdleCrawlAsksNothing has four processes and sixteen partitions of
// each module, and counts what the broker counts.
func TestMessagesCarryManyItemsAndAnIdleCrawlAsksNothing(t *testing.T) {
	web := serve(t, webtest.Options{Seed: 3, Hosts: 300, Addrs: 100, Pages: 12})
	url, requests := countingBroker(t)
	o := testOptions()
	o.Parts, o.Delay = 16, -1
	c, err := Create(t.Context(), connect(t, url), o)
	require.NoError(t, err)
	var workers []*Worker
	for _, name := range []string{"a", "b", "c", "d"} {
		workers = append(workers, worker(t, url, web, name, func(o *WorkerOptions) {
			o.Every, o.TTL = 400*time.Millisecond, 8*time.Second
		}))
		run(t, workers[len(workers)-1])
	}
	for _, w := range workers {
		for w.member.Owned() != 12 {
			time.Sleep(10 * time.Millisecond)
		}
	}
	var seeds []string
	for host := range web.Hosts() {
		seeds = append(seeds, host.URL())
	}
	require.NoError(t, c.Seed(t.Context(), seeds))
	require.NoError(t, c.Wait(t.Context(), 20*time.Millisecond))
	var sent, pages int64
	for _, w := range workers {
		sent += w.Bus.Sent()
		pages += w.visits.Load()
	}
	perPage := float64(sent) / float64(pages)
	t.Logf("%d responses, %d messages: %.2f for each", pages, sent, perPage)
	require.LessOrEqual(t, perPage, 1.5)
	time.Sleep(7 * time.Second) // what was done is removed from the stream every five seconds
	const quiet = 4 * time.Second
	before := requests()
	time.Sleep(quiet)
	idle := float64(requests()-before) / quiet.Seconds()
	t.Logf("idle: %.2f requests a second", idle)
	require.LessOrEqual(t, idle, 5.0)
}
