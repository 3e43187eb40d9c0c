package crawl

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/engine"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/robots/robotstxt"
	"github.com/spinneret-go/spinneret/scheduler"
)

// A sent is an item that a state has sent.
type sent struct {
	to   message.Module
	part int
	it   message.Item
}

// feed applies items and returns what was sent.
func feed(s engine.State, at time.Time, items ...message.Item) (all []sent) {
	for _, it := range items {
		s.Apply(it, at, func(to message.Module, part int, it message.Item) {
			all = append(all, sent{to, part, it})
		})
	}
	return all
}

// reborn returns a state that has loaded the small chunks of another one.
func reborn(t *testing.T, empty engine.State, chunks [][]byte, counts map[string]int64) engine.State {
	t.Helper()
	for _, chunk := range chunks {
		require.NoError(t, empty.Load(chunk))
	}
	maps.Copy(empty.Counts(), counts)
	return empty
}

// history returns random items, many of them for the same few hosts.
func history(r *rand.Rand, o *Options, part, n int) (items []message.Item) {
	host := func() string {
		for {
			if name := fmt.Sprintf("h%d.test", r.IntN(60)); o.hostPart(name) == part {
				return name
			}
		}
	}
	for range n {
		name := host()
		file := "http://" + name + "/robots.txt"
		switch r.IntN(6) {
		case 0:
			items = append(items, message.Item{
				Kind: message.Located, URL: name, Delay: time.Duration(r.IntN(3)) * time.Minute,
				Addr: []netip.Addr{{}, netip.MustParseAddr("192.0.2.1")}[min(r.IntN(4), 1)],
			})
		case 1:
			items = append(items, message.Item{
				Kind: message.Answer, URL: file, For: file, Hops: uint32(r.IntN(7)),
				Status:   uint32([]int{200, 200, 404, 500, 0, 302}[r.IntN(6)]),
				Location: []string{"", "", "http://h" + fmt.Sprint(r.IntN(60)) + ".test/r"}[r.IntN(3)],
				Body:     []byte("User-agent: *\nCrawl-delay: 3\nDisallow: /p1\n"),
			})
		case 2:
			items = append(items, message.Item{
				Kind: message.Rules, URL: file, For: "http://elsewhere.test/robots.txt",
			})
		default:
			url := fmt.Sprintf("http://%s/p%d", name, r.IntN(30))
			items = append(items, message.Item{Kind: message.Page, URL: url})
		}
	}
	return items
}

// TestOwnersAgree requires what exactness depends on: an owner that takes over at any checkpoint,
// from any mix of chunks, sends exactly what the previous one would have sent.
func TestOwnersAgree(t *testing.T) {
	o := Options{Parts: 3, HostPages: 40}.withDefaults()
	for name, empty := range map[string]func() engine.State{
		"hosts":  func() engine.State { return newHosts(&o, 1) },
		"dedupe": func() engine.State { return newSeen(&o) },
	} {
		for seed := range uint64(20) {
			t.Run(fmt.Sprintf("%s/seed=%d", name, seed), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 0))
				at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
				first, other := empty(), empty()
				var chunks [][]byte
				for range 30 {
					items := history(r, &o, 1, 1+r.IntN(20))
					require.Equal(t, feed(first, at, items...), feed(other, at, items...))
					require.Equal(t, first.Open(), other.Open())
					require.Equal(t, first.Counts(), other.Counts())
					at = at.Add(time.Duration(r.IntN(90)) * time.Minute)
					all := r.IntN(6) == 0
					if all {
						chunks = nil
					}
					chunks = append(chunks, first.Changes(all, 1+r.IntN(2000))...)
					if r.IntN(3) == 0 {
						other = reborn(t, empty(), chunks, first.Counts())
					}
				}
				require.NotEmpty(t, first.Counts())
			})
		}
	}
}

// TestLargestStateFitsIntoMessages has a host with a robots.txt and URLs of maximum length. If a
// chunk were too long for the broker, no process could own the partition.
func TestLargestStateFitsIntoMessages(t *testing.T) {
	o := Options{Parts: 1}.withDefaults()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	long := func(i int) message.Item {
		url := fmt.Sprintf("http://a.test/%d/", i)
		return page(url + strings.Repeat("x", weburl.MaxLength-len(url)))
	}
	s := newHosts(&o, 0)
	feed(s, at, long(0), located("a.test", "192.0.2.1"),
		answer("http://a.test/robots.txt", 200, strings.Repeat("#", robotstxt.MaxSize)))
	at = at.Add(rulesTTL) // the rules are fetched again, and pages wait until then
	const waiting = 300
	for i := range waiting {
		feed(s, at, long(i))
	}
	require.Equal(t, waiting+1, s.Open(), "all of them, and the request for the rules")
	chunks := s.Changes(true, 512<<10)
	for _, chunk := range chunks {
		require.Less(t, len(chunk), 1<<20-4096)
	}
	require.Equal(t, s.Open(), reborn(t, newHosts(&o, 0), chunks, s.Counts()).Open())
}

func TestAURLPassesOnce(t *testing.T) {
	o := Options{Parts: 8}.withDefaults()
	s := newSeen(&o)
	page := message.Item{Kind: message.Page, URL: "http://a.test/", Depth: 2}
	require.Equal(t, []sent{{message.Hosts, o.hostPart("a.test"), page}}, feed(s, time.Time{}, page))
	require.Empty(t, feed(s, time.Time{}, page, page))
	require.Equal(t, map[string]int64{countURLs: 1, countDuplicates: 2}, s.Counts())
	require.Error(t, s.Load(make([]byte, 9)))
}

// hostTest is a partition of hosts that has all hosts.
type hostTest struct {
	*hosts
	at time.Time
}

func newHostTest() *hostTest {
	o := Options{Parts: 1}.withDefaults()
	return &hostTest{newHosts(&o, 0), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

// kinds describes what was sent for items.
func (h *hostTest) feed(items ...message.Item) (words []string) {
	for _, s := range feed(h.hosts, h.at, items...) {
		if s.it.Kind == message.Visited {
			continue
		}
		kind := map[message.Kind]string{message.Page: "page", message.Rules: "rules"}[s.it.Kind]
		words = append(words, fmt.Sprintf("%s %s at %s", kind, s.it.URL, s.it.Addr))
	}
	return words
}

func located(host, addr string) message.Item {
	it := message.Item{Kind: message.Located, URL: host, Delay: time.Hour}
	if addr != "" {
		it.Addr = netip.MustParseAddr(addr)
	}
	return it
}

func answer(file string, status int, body string) message.Item {
	return message.Item{
		Kind: message.Answer, URL: file, For: file, Status: uint32(status), Body: []byte(body),
	}
}

func page(url string) message.Item { return message.Item{Kind: message.Page, URL: url} }

func TestAPageWaitsForItsAddressAndItsRules(t *testing.T) {
	h := newHostTest()
	require.Empty(t, h.feed(page("http://a.test/1"), page("http://a.test/2")))
	require.Equal(t, []string{"a.test"}, h.Wants())
	require.Empty(t, h.Wants(), "it is looked up once")
	require.Equal(t, 3, h.Open(), "two pages and the request for the rules")
	require.Equal(t, []string{"rules http://a.test/robots.txt at 192.0.2.1"},
		h.feed(located("a.test", "192.0.2.1")))
	require.Equal(t, []string{"page http://a.test/2 at 192.0.2.1"},
		h.feed(answer("http://a.test/robots.txt", 200, "User-agent: *\nDisallow: /1")))
	require.Zero(t, h.Open())
	require.EqualValues(t, 1, h.Counts()[string(stage.Disallowed)])
	require.Equal(t, []string{"page http://a.test/3 at 192.0.2.1"}, h.feed(page("http://a.test/3")))
}

func TestACrawlDelayTravelsWithThePages(t *testing.T) {
	h := newHostTest()
	h.feed(page("http://a.test/1"), located("a.test", "192.0.2.1"))
	got := feed(h.hosts, h.at, answer("http://a.test/robots.txt", 200, "User-agent: *\nCrawl-delay: 7"))
	require.Len(t, got, 1)
	require.Equal(t, 7*time.Second, got[0].it.Delay)
}

func TestExpiredRulesAndAddressesAreRequestedAgain(t *testing.T) {
	h := newHostTest()
	h.feed(page("http://a.test/1"), located("a.test", "192.0.2.1"),
		answer("http://a.test/robots.txt", 404, ""))
	h.Wants()
	h.at = h.at.Add(30 * time.Minute)
	require.Len(t, h.feed(page("http://a.test/2")), 1)
	h.at = h.at.Add(time.Hour)
	require.Empty(t, h.feed(page("http://a.test/3")), "the address may have changed")
	require.Equal(t, []string{"a.test"}, h.Wants())
	require.Equal(t, []string{"page http://a.test/3 at 192.0.2.9"}, h.feed(located("a.test", "192.0.2.9")))
	h.at = h.at.Add(24 * time.Hour)
	h.feed(located("a.test", "192.0.2.9"))
	require.Empty(t, h.feed(page("http://a.test/4")), "the rules may have changed")
}

func TestUnexpectedAnswersAreIgnored(t *testing.T) {
	h := newHostTest()
	h.feed(page("http://a.test/1"), located("a.test", "192.0.2.1"))
	file := "http://a.test/robots.txt"
	require.Len(t, h.feed(answer(file, 200, "")), 1)
	require.Empty(t, h.feed(answer(file, 200, "User-agent: *\nDisallow: /"), located("a.test", "192.0.2.2")))
	require.Equal(t, []string{"page http://a.test/2 at 192.0.2.1"}, h.feed(page("http://a.test/2")))
}

func TestWithoutAnAddressOrRulesNothingIsFetched(t *testing.T) {
	h := newHostTest()
	h.feed(page("http://a.test/1"))
	require.Empty(t, h.feed(located("a.test", "")))
	require.EqualValues(t, 1, h.Counts()[string(stage.UnknownHost)])
	h.feed(page("http://a.test/2"))
	require.EqualValues(t, 2, h.Counts()[string(stage.UnknownHost)], "it is not looked up again at once")
	h.feed(page("http://b.test/1"), located("b.test", "192.0.2.1"))
	require.Empty(t, h.feed(answer("http://b.test/robots.txt", 503, "")))
	require.EqualValues(t, 1, h.Counts()[string(stage.RobotsUnreachable)])
	h.feed(page("http://c.test/1"))
	silent := located("c.test", "")
	silent.Status = 1
	h.feed(silent)
	require.EqualValues(t, 1, h.Counts()[string(stage.Unresolved)])
	require.Zero(t, h.Open())
}

func TestRedirectsOfRulesAreFollowedFiveTimes(t *testing.T) {
	h := newHostTest()
	h.feed(page("http://a.test/1"), located("a.test", "192.0.2.1"))
	file := "http://a.test/robots.txt"
	const maxFollow = 5 // RFC 9309 §2.3.1.2
	for hop := range uint32(maxFollow) {
		to := fmt.Sprintf("http://a.test/r%d", hop)
		got := feed(h.hosts, h.at, message.Item{
			Kind: message.Answer, URL: file, For: file, Hops: hop, Status: 302, Location: to,
		})
		require.Len(t, got, 1)
		require.Equal(t, message.Item{
			Kind: message.Rules, URL: to, For: file, Hops: hop + 1, Addr: netip.MustParseAddr("192.0.2.1"),
		}, got[0].it)
	}
	require.Equal(t, []string{"page http://a.test/1 at 192.0.2.1"}, h.feed(message.Item{
		Kind: message.Answer, URL: file, For: file, Hops: maxFollow, Status: 302, Location: "http://a.test/x",
	}), "more redirects than that are no rules")
}

func TestRulesAreRedirectedToAnotherPartition(t *testing.T) {
	o := Options{Parts: 2}.withDefaults()
	here, there := "", ""
	for i := 0; here == "" || there == ""; i++ {
		if name := fmt.Sprintf("h%d.test", i); o.hostPart(name) == 0 {
			here = name
		} else {
			there = name
		}
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := newHosts(&o, 0)
	file := "http://" + here + "/robots.txt"
	feed(s, at, page("http://"+here+"/"), located(here, "192.0.2.1"))
	got := feed(s, at, message.Item{
		Kind: message.Answer, URL: file, For: file, Status: 301, Location: "http://" + there + "/r",
	})
	want := message.Item{Kind: message.Rules, URL: "http://" + there + "/r", For: file, Hops: 1}
	require.Equal(t, []sent{{message.Hosts, 1, want}}, got)

	other := newHosts(&o, 1)
	feed(other, at, want)
	got = feed(other, at, located(there, ""))
	require.Equal(t, []sent{{message.Hosts, 0, message.Item{
		Kind: message.Answer, URL: want.URL, For: file,
	}}}, got, "the waiting partition must learn that the host does not exist")
}

func TestAHostHasAPageLimit(t *testing.T) {
	h := newHostTest()
	h.crawl.HostPages = 3
	h.feed(page("http://a.test/1"), located("a.test", "192.0.2.1"), answer("http://a.test/robots.txt", 404, ""))
	var got []string
	for i := range 5 {
		got = append(got, h.feed(page(fmt.Sprintf("http://a.test/x%d", i)))...)
	}
	require.Len(t, got, 2)
	require.EqualValues(t, 3, h.Counts()[string(stage.HostFull)])
}

// TestWaitingPagesAreBounded requires that pages without an answer do not fill the memory, and that
// pages released by an answer make room.
func TestWaitingPagesAreBounded(t *testing.T) {
	h := newHostTest()
	h.crawl.Waiting = 3
	for i := range 5 {
		h.feed(page(fmt.Sprintf("http://a.test/%d", i)))
		require.LessOrEqual(t, h.Open(), 1+3, "the request for the rules waits as well")
	}
	dropped := h.Counts()[string(stage.QueueFull)]
	require.EqualValues(t, 5+1-3, dropped)
	h.feed(located("a.test", "192.0.2.1"))
	got := h.feed(answer("http://a.test/robots.txt", 404, ""))
	require.Len(t, got, 5-int(dropped))
	require.Zero(t, h.Open())
	require.Len(t, h.feed(page("http://a.test/x")), 1)
	require.Equal(t, dropped, h.Counts()[string(stage.QueueFull)])
}

// TestAStateOfManyWaitingPagesIsCutIntoChunks requires that no chunk exceeds the limit of a
// message.
func TestAStateOfManyWaitingPagesIsCutIntoChunks(t *testing.T) {
	h := newHostTest()
	for i := range 2000 {
		h.feed(page(fmt.Sprintf("http://a.test/%0200d", i)))
	}
	chunks := h.Changes(false, 100_000)
	require.Greater(t, len(chunks), 4)
	for _, chunk := range chunks {
		require.Less(t, len(chunk), 100_000)
	}
	again := newHosts(h.crawl, 0)
	for _, chunk := range chunks {
		require.NoError(t, again.Load(chunk))
	}
	require.Equal(t, h.Open(), again.Open())
	require.Equal(t, []string{"a.test"}, again.Wants(), "the answer may have been lost with the owner")
	require.Len(t, feed(again, h.at, located("a.test", "192.0.2.1"),
		answer("http://a.test/robots.txt", 404, "")), 2001)
}

func FuzzLoadHosts(f *testing.F) {
	h := newHostTest()
	h.feed(page("http://a.test/1"), page("http://b.test/1"), located("a.test", "192.0.2.1"),
		answer("http://a.test/robots.txt", 200, "User-agent: *\nDisallow: /1"))
	for _, chunk := range h.Changes(true, 1<<20) {
		f.Add(chunk)
	}
	f.Fuzz(func(t *testing.T, chunk []byte) {
		s := newHosts(h.crawl, 0)
		if s.Load(chunk) != nil {
			return
		}
		again := newHosts(h.crawl, 0)
		for _, chunk := range s.Changes(true, 1<<10) {
			require.NoError(t, again.Load(chunk))
		}
		require.Equal(t, s.Open(), again.Open())
		require.Equal(t, slices.Sorted(maps.Keys(s.hosts)), slices.Sorted(maps.Keys(again.hosts)))
		require.Equal(t, slices.Sorted(maps.Keys(s.servers)), slices.Sorted(maps.Keys(again.servers)))
	})
}

// TestItemsWithoutANameAreIgnored feeds items that no module sends. If anything were stored under
// an empty name, no later owner could read the state.
func TestItemsWithoutANameAreIgnored(t *testing.T) {
	h := newHostTest()
	for _, kind := range []message.Kind{message.Page, message.Rules, message.Answer, message.Located} {
		require.Empty(t, h.feed(message.Item{Kind: kind}, message.Item{Kind: kind, URL: "nowhere:"}))
	}
	require.Empty(t, h.feed(message.Item{Kind: message.Rules, URL: "http://a.test/robots.txt"}))
	reborn(t, newHosts(h.crawl, 0), h.Changes(true, 1<<10), h.Counts())
}

// TestWaitingItemsRetainNothingElse has one item of each of many messages wait. The items of a
// message share its bytes, and finished ones must not stay in memory with a waiting one.
func TestWaitingItemsRetainNothingElse(t *testing.T) {
	const messages = 500
	first := func(i int) message.Item {
		items, err := message.Decode(message.Encode(nil,
			message.Item{Kind: message.Page, URL: fmt.Sprintf("http://a.test/%d", i), Delay: 24 * time.Hour},
			message.Item{Kind: message.Answer, URL: "http://b.test/robots.txt", Body: []byte(strings.Repeat("x", 64<<10))}))
		require.NoError(t, err)
		return items[0]
	}
	f := &fetcher{
		Worker: &Worker{Crawl: &Crawl{}}, slow: map[string]time.Time{}, loads: newLoads(1000 * 24 * time.Hour),
		queue: scheduler.New[task](scheduler.Options{MaxQueue: -1}),
	}
	f.settings.Store(&followed{})
	h := newHostTest()
	for name, keep := range map[string]func(it message.Item){
		"hosts": func(it message.Item) { h.feed(it) },
		"fetch": func(it message.Item) {
			until, err := f.enqueue(task{item: it})
			require.NoError(t, err)
			require.Zero(t, until)
		},
	} {
		before := liveBytes()
		for i := range messages {
			keep(first(i))
		}
		require.Less(t, liveBytes()-before, int64(messages*(64<<10)/2), name)
	}
	require.Equal(t, messages+1, h.Open())
	require.Equal(t, messages, f.queue.Stats().Queued)
}

// liveBytes returns the memory in use.
func liveBytes() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
