package crawl

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch/webtest"
)

// TestHostsWithRotatingAddressesAreVisitedPolitely has names whose address is another one at each
// lookup, so that each host uses the addresses of several partitions in several processes. By the
// server's log, no request may come too early, on the host or on the address.
func TestHostsWithRotatingAddressesAreVisitedPolitely(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 8, Hosts: 10, Addrs: 5, Pages: 40})
	url, c := begin(t, web, func(o *Options) { o.Parts, o.Delay, o.RulesTTL = 4, 50*time.Millisecond, 700*time.Millisecond })
	var addrs []netip.Addr
	for host := range web.Hosts() {
		addrs = append(addrs, host.Addr)
	}
	var mu sync.Mutex
	asked := map[string]int{}
	lookup := func(_ context.Context, host string) ([]netip.Addr, time.Duration, error) {
		mu.Lock()
		defer mu.Unlock()
		asked[host]++
		own, _ := web.Host(host)
		return []netip.Addr{addrs[(own.Index+asked[host])%len(addrs)]}, 0, nil
	}
	seed(t, c, web)
	for _, name := range []string{"a", "b", "c"} {
		run(t, worker(t, url, web, name, func(o *WorkerOptions) { o.Lookup, o.TTL = lookup, 4*time.Second }))
	}
	require.NoError(t, c.Wait(t.Context(), 20*time.Millisecond))
	used := map[string]map[netip.Addr]bool{}
	fetched := map[string]bool{}
	for _, r := range web.Log() {
		if used[r.Host] == nil {
			used[r.Host] = map[netip.Addr]bool{}
		}
		used[r.Host][r.Addr] = true
		fetched[r.URL()] = true
	}
	rotated := 0
	for _, all := range used {
		if len(all) > 1 {
			rotated++
		}
	}
	require.Greater(t, rotated, 3, "hosts have used several addresses")
	for _, page := range web.Reachable() {
		require.True(t, fetched[page], page)
	}
	require.Empty(t, webtest.Violations(web.Log(),
		func(string) time.Duration { return c.Delay }, func(netip.Addr) time.Duration { return c.Delay }))
}
