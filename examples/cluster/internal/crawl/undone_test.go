package crawl

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestADelayCanBeUndone has an operator who sets a delay of a host by mistake and removes it. It ends for the pages
// that wait and for those to come. The
// site's own delay remains.
func TestADelayCanBeUndone(t *testing.T) {
	f := owner(1)
	f.settings.Store(&followed{changed: make(chan struct{})})
	set := func(delays map[string]time.Duration) {
		before := f.settings.Swap(&followed{Settings: Settings{Delays: delays}, changed: make(chan struct{})})
		close(before.changed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var obeying sync.WaitGroup
	defer obeying.Wait()
	defer cancel()
	obeying.Go(func() { f.obey(ctx) })
	delays := func(host string) (longest time.Duration) {
		for e := range f.queue.All(time.Now()) {
			if e.Host == host {
				longest = max(longest, e.Delay, e.CrawlDelay)
			}
		}
		return longest
	}
	add := func(url string, asked time.Duration) {
		it := page(url)
		it.Addr, it.Delay = netip.MustParseAddr("127.0.0.1"), asked
		_, err := f.enqueue(task{item: it})
		require.NoError(t, err)
	}
	set(map[string]time.Duration{"wrong.test": time.Hour})
	add("http://wrong.test/1", 0)
	require.Eventually(t, func() bool { return delays("wrong.test") == time.Hour }, time.Second, time.Millisecond)
	set(map[string]time.Duration{"wrong.test": 0})
	require.Eventually(t, func() bool { return delays("wrong.test") == 0 }, time.Second, time.Millisecond,
		"the delay was removed")
	add("http://wrong.test/2", 0)
	require.Zero(t, delays("wrong.test"))

	set(map[string]time.Duration{"site.test": time.Hour})
	add("http://site.test/1", time.Minute)
	set(map[string]time.Duration{"site.test": 0})
	require.Eventually(t, func() bool { return delays("site.test") == time.Minute }, time.Second, time.Millisecond)
}

// TestAPostponedPageIsADayAwayAtMost has a host with a long delay that becomes short.
func TestAPostponedPageIsADayAwayAtMost(t *testing.T) {
	l, now := newLoads(time.Minute), time.Now()
	addr := netip.MustParseAddr("127.0.0.1")
	for range 1000 {
		until := l.take("slow.test", addr, time.Hour, time.Second, time.Time{}, now)
		require.False(t, until.After(now.Add(25*time.Hour)), until.Sub(now))
	}
	for _, host := range []string{"other.test", "third.test"} {
		l.take(host, addr, time.Second, 48*time.Hour, time.Time{}, now)
	}
	require.NotContains(t, l.hosts, "third.test", "a host without work or slots is forgotten")
	l.done("slow.test", addr, now)
	l.done("slow.test", addr, now)
	require.Zero(t, l.take("slow.test", addr, time.Second, time.Second, time.Time{}, now))
}
