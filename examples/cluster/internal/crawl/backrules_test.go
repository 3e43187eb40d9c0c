package crawl

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/engine"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// TestPagesThatComeBackGoByFreshRules: no page is fetched by a robots.txt that is more than a day old.
func TestPagesThatComeBackGoByFreshRules(t *testing.T) {
	h := newHostTest()
	h.feed(page("http://a.test/1"), located("a.test", "192.0.2.1"),
		answer("http://a.test/robots.txt", 200, "User-agent: *\nAllow: /"))
	fetched := h.at
	h.at = h.at.Add(23*time.Hour + 59*time.Minute)
	back := page("http://a.test/old")
	back.Again, back.Until = true, fetched // it waited for longer than an earlier robots.txt lived
	var got []sent
	got = append(got, feed(h.hosts, h.at, back)...)
	got = append(got, feed(h.hosts, h.at, located("a.test", "192.0.2.1"))...)
	for _, s := range got {
		if s.it.Kind == message.Page {
			require.LessOrEqual(t, s.it.Until.Sub(fetched), 24*time.Hour)
		}
	}
}

// TestAPageThatWaitedInTheStream: it has waited for three days, behind millions of others or while no process ran. Its
// robots.txt has expired two days ago.
func TestAPageThatWaitedInTheStream(t *testing.T) {
	w := &Worker{Crawl: &Crawl{Options: Options{Delay: -1}.withDefaults()}, opts: WorkerOptions{Window: 10}}
	flt, err := w.filter(Settings{})
	require.NoError(t, err)
	w.settings.Store(&followed{filter: flt, changed: make(chan struct{})})
	f := w.newFetcher(engine.Claim{Dest: message.Dest{To: message.Fetch}, Epoch: 1})
	require.NoError(t, f.window.restore(0, nil))
	defer f.queue.Producer()()
	it := page("http://a.test/private")
	it.Addr = netip.MustParseAddr("192.0.2.1")
	it.Until = time.Now().Add(-48 * time.Hour).UTC().Truncate(time.Second)
	require.NoError(t, f.Take(1, time.Now().Add(-72*time.Hour), []message.Item{it}, nil))
	lease, err := f.queue.Next(t.Context())
	require.NoError(t, err)
	got := lease.Item().item
	require.True(t, time.Now().After(got.Until), "the page would be fetched without a check")
}

// TestPagesThatComeBackAreNotRefused: hosts is full of others when a page comes back. It is planned again,
// whatever the number of retries.
func TestPagesThatComeBackAreNotRefused(t *testing.T) {
	for _, retries := range []int{5, -1} {
		h := newHostTest()
		h.crawl.Waiting, h.crawl.Retries = 2, retries
		h.feed(page("http://b.test/1"), page("http://b.test/2")) // wait for an address
		back := page("http://a.test/old")
		back.Again, back.Until = true, h.at.Add(-time.Minute)
		got := feed(h.hosts, h.at, back)
		require.Len(t, got, 1)
		require.True(t, got[0].it.Due.After(h.at) && got[0].it.Due.Before(h.at.Add(2*ownFault)), "%v", got[0].it.Due)
	}
}
