package stage

import (
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
)

func TestHostTable(t *testing.T) {
	now, nowhere := time.Unix(1_000_000, 0), netip.Addr{}
	const room = 1000
	b := NewHostTable(10*time.Second, (room-1)*10*time.Second, 2, 16_000)
	b.Advance(now, now)
	for n := range room {
		require.Zero(t, b.Take("a.test", nowhere, false).RetryAt, n)
	}
	first := b.Take("a.test", nowhere, false).RetryAt
	second := b.Take("a.test", nowhere, false).RetryAt
	require.Equal(t, now.Unix()+5*room+15, first-1, "when the host is done with half of its pages in flight")
	require.Equal(t, first+10, second, "and one delay later")
	b.Leave("a.test", nowhere)
	require.Zero(t, b.Take("a.test", nowhere, false).RetryAt)

	for range 2 {
		require.Zero(t, b.Take("b.test", nowhere, true))
	}
	require.Positive(t, b.Take("b.test", nowhere, true).RetryAt, "the pages in flight may be none")
	b.Settle("b.test", false, false)
	require.Zero(t, b.Take("b.test", nowhere, true), "one was none")
	b.Settle("b.test", true, true)
	b.Settle("b.test", false, true)
	require.Zero(t, b.Take("b.test", nowhere, true))
	b.Settle("b.test", true, true)
	require.True(t, b.Take("b.test", nowhere, true).Full)
	for range triesShare * 2 {
		require.Zero(t, b.Take("broken.test", nowhere, true))
		b.Settle("broken.test", false, true)
	}
	require.True(t, b.Take("broken.test", nowhere, true).Full, "too many requests for no page")
	require.False(t, b.Take("b.test", nowhere, false).Full, "visited pages do not count again")
	for n := range 4 {
		require.False(t, b.IsCrowded("http://b.test/"), n)
		b.Discovered(Item{URL: "http://b.test/"}, true)
	}
	require.True(t, b.IsCrowded("http://b.test/x"), "twice the limit of pages")
	require.False(t, b.IsCrowded("http://a.test/"))
	require.Equal(t, 3, b.Count())

	require.InDelta(t, 1, b.UpdateLoad("c", 0, time.Hour), 0)
	require.InDelta(t, 1/hostShare, b.UpdateLoad("c", time.Hour, 10*time.Second), 0.01,
		"more visits than fit into the host's time")
	require.InDelta(t, 1, b.UpdateLoad("c", 10*time.Second, 0), 0)
	b.Recall("d", true, 10*time.Second, now.Unix()+5)
	pages, load := b.Of("d")
	require.Equal(t, 1, pages)
	require.InDelta(t, 8640, load, 1)
}

// TestSharesOfAddressesAndDomains: neither has more pages in flight than its share.
func TestSharesOfAddressesAndDomains(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	b := NewHostTable(10*time.Second, 9990*time.Second, 0, 16_000)
	b.Advance(now, now)
	at, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	const room = addrRooms * 1000
	for n := range room {
		require.Zero(t, b.Take(fmt.Sprintf("h%d.test", n), at, false).RetryAt)
	}
	require.Positive(t, b.Take("one.test", at, false).RetryAt)
	require.Zero(t, b.Take("one.test", other, false).RetryAt)
	require.Positive(t, b.Move("one.test", other, at), "there is no room there")
	b.Leave("h0.test", at)
	require.Zero(t, b.Move("one.test", other, at))
	b.Leave("one.test", at)
	for n := range room - 1 {
		b.Leave(fmt.Sprintf("h%d.test", n+1), at)
	}
	require.Empty(t, b.addrs)
	require.Empty(t, b.domains)
	require.Empty(t, b.places)

	for n := range 16_000 / domainShare {
		require.Zero(t, b.Take(fmt.Sprintf("h%d.farm.test", n), netip.Addr{}, false).RetryAt)
	}
	require.Positive(t, b.Take("one.farm.test", netip.Addr{}, false).RetryAt)
	require.Zero(t, b.Take("one.test", netip.Addr{}, false).RetryAt)
	for n := range 16_000 / domainShare {
		b.Leave(fmt.Sprintf("h%d.farm.test", n), netip.Addr{})
	}
	require.Len(t, b.domains, 1)
}

// TestFarmLeavesRoomForItsNeighbors: of thousands of hosts of one domain at an address, few are in
// flight at a time, and postponed pages do not delay others.
func TestFarmLeavesRoomForItsNeighbors(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	b := NewHostTable(10*time.Second, 9990*time.Second, 0, 1_000_000)
	b.Advance(now, now)
	at := netip.MustParseAddr("192.0.2.1")
	in := 0
	for n := range 5000 {
		for range 1000 {
			if b.Take(fmt.Sprintf("h%d.farm.test", n), at, false).RetryAt == 0 {
				in++
			}
		}
	}
	require.Equal(t, addrRooms*1000/2, in, "half of the room is for others")
	require.LessOrEqual(t, len(b.places[place{"farm.test", at}].pages), placeHosts)
	for n := range 300 {
		require.Zero(t, b.Take("neighbor.test", at, false).RetryAt, n)
	}
	b.Leave("h0.farm.test", at)
	full := NewHostTable(10*time.Second, 9990*time.Second, 0, 1_000_000)
	full.Advance(now, now)
	for n := range placeHosts {
		require.Zero(t, full.Take(fmt.Sprintf("h%d.farm.test", n), at, false).RetryAt)
	}
	require.Positive(t, full.Take("one.farm.test", at, false).RetryAt, "too many hosts of a domain")
	require.Zero(t, full.Take("h1.farm.test", at, false).RetryAt)
	require.Zero(t, full.Take("www.neighbor.test", at, false).RetryAt)
	require.Zero(t, full.Take("one.farm.test", netip.Addr{}, false).RetryAt, "its address is not known yet")
	require.Positive(t, full.Move("one.farm.test", netip.Addr{}, at))
	full.Leave("h0.farm.test", at)
	require.Zero(t, full.Move("one.farm.test", netip.Addr{}, at))
}

func TestTheLongestCrawlDelayOfAHostApplies(t *testing.T) {
	var d CrawlDelays
	require.Zero(t, d.Set("a.test", "http://a.test/robots.txt", 0))
	require.Equal(t, time.Minute, d.Set("a.test", "http://a.test/robots.txt", time.Minute))
	require.Equal(t, time.Minute, d.Set("a.test", "https://a.test/robots.txt", time.Second))
	require.Equal(t, time.Second, d.Set("a.test", "http://a.test/robots.txt", 0))
	require.Zero(t, d.Set("a.test", "https://a.test/robots.txt", 0))
	require.Empty(t, d.hosts)
}

func TestLastAddr(t *testing.T) {
	b := NewHostTable(time.Second, time.Second, 0, 100)
	require.False(t, b.LastAddr("a.test").IsValid())
	addr, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	b.Take("a.test", addr, true)
	require.Equal(t, addr, b.LastAddr("a.test"))
	require.Zero(t, b.Move("a.test", addr, other))
	b.Leave("a.test", other)
	require.Equal(t, other, b.LastAddr("a.test"))
}

// TestMemoryOfCrowdedHosts: each takes the same memory, as a farm of names has many such hosts.
func TestMemoryOfCrowdedHosts(t *testing.T) {
	const hosts = 2000
	b := NewHostTable(time.Second, time.Minute, 1, 1000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for n := range hosts {
		host := fmt.Sprintf("h%d.test", n)
		for range knownShare {
			require.False(t, b.IsCrowded("http://"+host+"/"))
			b.Discovered(Item{URL: "http://" + host + "/"}, true)
		}
		require.True(t, b.IsCrowded("http://"+host+"/"))
	}
	runtime.ReadMemStats(&after)
	require.Less(t, (after.TotalAlloc-before.TotalAlloc)/hosts, uint64(5000), "bytes for each host")
	require.Zero(t, testing.AllocsPerRun(100, func() { b.IsCrowded("http://h1.test/") }))
}

// TestAwaits: a crawl waits for pages that can be visited, and for no others.
func TestAwaits(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	b := NewHostTable(time.Second, time.Minute, 2, 100)
	b.Wait = time.Minute
	b.Advance(now, now)
	var visited State
	visited.Failures = 1
	postponed := State{Failures: 1, Postponed: true}
	require.False(t, b.Awaits(now))
	b.Await("a.test", visited)
	require.False(t, b.Awaits(now), "its next visit is for a later day")
	b.Found(Item{URL: "http://a.test/"}, true)
	require.True(t, b.Awaits(now))
	b.Visited("a.test", 0, now.Add(time.Hour))
	require.False(t, b.Awaits(now), "the host pauses for longer than the crawl waits")
	require.True(t, b.Awaits(now.Add(59*time.Minute)))
	b.Visited("a.test", 0, time.Time{})
	b.Arrived("a.test", State{})
	require.False(t, b.Awaits(now))

	b.Await("b.test", postponed)
	require.True(t, b.Awaits(now), "a revisit that was due")
	b.Arrived("b.test", postponed)
	require.False(t, b.Awaits(now))
}

// TestNamedHostsAreEarned: the pages of one owner do not fill the table, neither with names below his domain nor
// with those of owners who do not exist, and bar nobody else's.
func TestNamedHostsAreEarned(t *testing.T) {
	for _, name := range []string{"http://q%d.evil.com/", "http://q%d.org/"} {
		b := NewHostTable(time.Second, Horizon, 0, 1000)
		const page = "http://www.evil.com/"
		b.Discovered(Item{URL: page}, true)
		find := func(from, to int) (taken int) {
			for n := from; n < to; n++ {
				if url := fmt.Sprintf(name, n); b.TakesHost(url, page) {
					b.Discovered(Item{URL: url, From: page}, true)
					taken++
				}
			}
			return taken
		}
		require.Equal(t, freeHosts, find(0, 2*freeHosts))
		require.True(t, b.TakesHost(fmt.Sprintf(name, 0), page), "it is known")
		require.True(t, b.TakesHost("http://other.evil.com/", "http://honest.org/"))
		for n := range 10 {
			host := weburl.Host(fmt.Sprintf(name, n))
			b.Take(host, netip.Addr{}, true)
			b.Settle(host, true, true)
		}
		require.Equal(t, 10*hostsEarned, find(2*freeHosts, 3*freeHosts))
	}
}

// TestManyLinksNameOneHost: they count once, although none of its pages is committed yet.
func TestManyLinksNameOneHost(t *testing.T) {
	b := NewHostTable(time.Second, Horizon, 0, 1000)
	const page = "http://www.uni.edu/"
	for n := range 2 * freeHosts {
		require.True(t, b.TakesHost(fmt.Sprintf("http://library.uni.edu/%d", n), page), n)
	}
	for n := 1; n < 2*freeHosts; n++ {
		require.Equal(t, n < freeHosts, b.TakesHost(fmt.Sprintf("http://q%d.uni.edu/", n), page), n)
		if n%10 == 0 {
			b.Committed()
		}
	}
}

// TestFrontPagesOfPorts: strangers cannot have each port of a host asked.
func TestFrontPagesOfPorts(t *testing.T) {
	b := NewHostTable(time.Second, Horizon, 80, 1000)
	taken := 0
	for port := range 1000 {
		if url := fmt.Sprintf("http://a.test:%d/", 20_000+port); b.TakesStrange(url) {
			b.Discovered(Item{URL: url, Strange: true}, true)
			b.Committed()
			taken++
		}
	}
	require.Equal(t, b.Strangers, taken)
	for _, url := range []string{"http://a.test/", "https://a.test/", "http://[2001:db8::1]/"} {
		require.True(t, b.TakesStrange(url), url)
	}
}

// TestPagesOfAHostBelowItsLimit: an override lowers the limit of a host, also that for strangers' links, and
// when it is read again.
func TestPagesOfAHostBelowItsLimit(t *testing.T) {
	overrides := new(Overrides)
	require.NoError(t, overrides.Reload(strings.NewReader("a.test pages=8\nbig.test pages=100000")))
	b := NewHostTable(time.Second, time.Hour, 800, 1000)
	b.Overrides = overrides
	take := func(host string) (taken int) {
		for !b.Take(host, netip.Addr{}, true).Full {
			b.Settle(host, true, true)
			b.Leave(host, netip.Addr{})
			taken++
		}
		b.Leave(host, netip.Addr{})
		return taken
	}
	require.Equal(t, 8, take("www.a.test"))
	require.Equal(t, 800, take("big.test"))
	require.Equal(t, 800, take("b.test"))
	require.True(t, b.TakesStrange("http://a.test/1"))
	require.False(t, b.TakesStrange("http://a.test/2"))
	require.NoError(t, overrides.Reload(strings.NewReader("c.test pages=4")))
	require.Equal(t, 4, take("c.test"))
	for n := range 9 {
		require.Equal(t, n >= 2*4, b.IsCrowded("http://c.test/"))
		b.Discovered(Item{URL: fmt.Sprint("http://c.test/", n)}, true)
	}
}

// TestNoTurnIsFarAway, however many pages of a host are found: its delay may become shorter meanwhile.
func TestNoTurnIsFarAway(t *testing.T) {
	b := NewHostTable(time.Hour, time.Minute, 0, 1000)
	now := time.Unix(1e9, 0)
	b.Advance(now, now)
	for range 1000 {
		b.Found(Item{URL: "http://a.test/x"}, true)
	}
	require.Equal(t, now.Add(24*time.Hour), b.Turn("http://a.test/"))
}
