package robots

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

func TestHostsAreKeptApart(t *testing.T) {
	c := NewCache(Options{Agent: "foo"})
	file := "user-agent: foo\ndisallow: /a\nuser-agent: *\ndisallow: /b\n"
	got := tell(t, c, ask(t, c, page, noon), whole(200, nil, file), noon)
	require.False(t, got.allows("/a"))
	require.False(t, got.rules.File().Rules("bar").Allowed("/b"), "other agents have their own")
	for _, url := range []string{
		"http://h.test/a", "https://h.test:8443/a", "https://www.h.test/a", "https://h.test./",
	} {
		ask(t, c, url, noon)
	}
	for _, url := range []string{
		"https://h.test", "https://h.test?x", "HTTPS://u@H.test:443/x", "https://h.test:/",
	} {
		answer, err := c.Lookup(url, noon)
		require.NoError(t, err)
		require.Equal(t, got.rules, answer.Rules, url)
		rules, known := c.Get(url, noon)
		require.True(t, known)
		require.Equal(t, got.rules, rules, url)
	}
}

// TestWhatHasNoRobots passes URLs without a robots.txt to all methods. None may panic or allow
// anything.
func TestWhatHasNoRobots(t *testing.T) {
	const url = "mailto:a@h.test"
	c := NewCache(Options{})
	_, err := c.Lookup(url, noon)
	require.ErrorIs(t, err, robotstxt.ErrLocate)
	_, err = c.Store(Request{}, Response{}, noon)
	require.ErrorIs(t, err, robotstxt.ErrLocate)
	rules, known := c.Get(url, noon)
	require.False(t, known || rules.Allowed(url))
	_, known = c.Entry(url)
	require.False(t, known)
	_, found := c.InFlight(url)
	require.False(t, found)
	c.Abandon(Request{})
	allowed, err := c.Allowed(t.Context(), url)
	require.ErrorIs(t, err, robotstxt.ErrLocate)
	require.False(t, allowed)
	require.Zero(t, c.Stats())
}

func TestOneFlightPerHost(t *testing.T) {
	c := NewCache(Options{Patience: time.Minute})
	req := ask(t, c, page, noon)
	inFlight := func(now time.Time) bool {
		answer, err := c.Lookup(page, now)
		require.NoError(t, err)
		require.False(t, answer.Known)
		return answer.Request == nil
	}
	require.True(t, inFlight(noon))
	require.True(t, inFlight(noon.Add(time.Minute-1)))
	out, found := c.InFlight(page)
	require.True(t, found)
	require.Equal(t, req, out)

	other := req
	other.Flight++
	c.Abandon(other)
	require.True(t, inFlight(noon), "another request than the one that is out")
	c.Abandon(req)
	_, found = c.InFlight(page)
	require.False(t, found)
	require.False(t, inFlight(noon), "given back")

	require.False(t, inFlight(noon.Add(time.Minute)), "lost")
	require.True(t, inFlight(noon.Add(time.Minute)))
	req, _ = c.InFlight(page)
	require.True(t, tell(t, c, req, Response{Status: 404}, noon).allows("/a"))
	c.Abandon(req)
	_, known := c.Get(page, noon)
	require.True(t, known, "too late")
}

// TestALateResponse to a request that counted as lost is better than nothing, but must overwrite
// neither a later response nor a request in flight.
func TestALateResponse(t *testing.T) {
	c := NewCache(Options{Patience: time.Minute})
	lost := ask(t, c, page, noon)
	again := ask(t, c, page, noon.Add(time.Minute))
	require.Equal(t, unflown(lost), unflown(again))

	answer, err := c.Store(lost, whole(404, nil, ""), noon.Add(61*time.Second))
	require.NoError(t, err)
	require.True(t, answer.Rules.Allowed("/a"))
	out, _ := c.InFlight(page)
	require.Equal(t, again, out, "the second request is still awaited")
	tell(t, c, again, whole(200, nil, noAs), noon.Add(62*time.Second))
	for _, late := range []Request{lost, again, {For: where, URL: where}, {For: where, URL: where, Flight: 99}} {
		answer, err = c.Store(late, whole(404, nil, ""), noon.Add(63*time.Second))
		require.NoError(t, err)
		require.True(t, answer.Known)
		require.False(t, answer.Rules.Allowed("/a"), "%+v", late)
	}
	third := ask(t, c, page, noon.Add(2*day))
	for _, late := range []Request{lost, again} {
		answer, err = c.Store(late, whole(404, nil, ""), noon.Add(2*day))
		require.NoError(t, err)
		require.Equal(t, Answer{}, answer, "it is older than what has expired")
	}
	tell(t, c, third, whole(200, nil, noAs), noon.Add(2*day))
	never := Request{For: "https://never.test/robots.txt", URL: "https://never.test/robots.txt"}
	answer, err = c.Store(never, whole(404, nil, ""), noon)
	require.NoError(t, err)
	require.Equal(t, Answer{}, answer, "it was not requested")
}

// TestALateRedirect advances the request that has superseded it, once.
func TestALateRedirect(t *testing.T) {
	c := NewCache(Options{Patience: time.Minute})
	now := noon.Add(time.Minute)
	lost := ask(t, c, page, noon)
	again := ask(t, c, page, now)
	redirect := whole(301, fields("Location", "/r"), "")
	answer, err := c.Store(lost, redirect, now)
	require.NoError(t, err)
	require.Equal(t, again.Flight, answer.Request.Flight)
	require.Equal(t, 1, answer.Request.Hop)
	for _, stored := range []Request{lost, again} {
		twice, err := c.Store(stored, redirect, now)
		require.NoError(t, err)
		require.Equal(t, Answer{}, twice)
	}
	require.True(t, tell(t, c, *answer.Request, whole(404, nil, ""), now).allows("/a"))
}

// TestAClockThatWasAhead: a request that was given then must not be waited for until its time.
func TestAClockThatWasAhead(t *testing.T) {
	c := NewCache(Options{})
	ask(t, c, page, noon.Add(10*365*day))
	ask(t, c, page, noon)
}

func TestEndlessPatience(t *testing.T) {
	c := NewCache(Options{Patience: -1})
	req := ask(t, c, page, noon)
	later := noon.Add(100 * 365 * day)
	answer, err := c.Lookup(page, later)
	require.NoError(t, err)
	require.Equal(t, Answer{}, answer)
	require.True(t, tell(t, c, req, Response{Status: 404}, later).allows("/a"))
}

func TestCacheKeepsItsBound(t *testing.T) {
	const bound = 256 << 10
	typical := "user-agent: *\n" + strings.Repeat("disallow: /something/\n", 30)
	c := NewCache(Options{MaxBytes: bound})
	url := func(i int) string { return fmt.Sprintf("https://h%d.test/", i) }
	for i := range 500 {
		now := noon.Add(time.Duration(i) * time.Second)
		tell(t, c, ask(t, c, url(i), now), whole(200, nil, typical), now)
		_, known := c.Get(url(0), now)
		require.True(t, known, "what is used stays")
		require.LessOrEqual(t, c.Stats().Bytes, bound)
	}
	require.Greater(t, c.Stats().Hosts, 50)
	require.Less(t, c.Stats().Hosts, 200)
	ask(t, c, url(1), noon)

	small := NewCache(Options{MaxBytes: 1})
	tell(t, small, ask(t, small, page, noon), Response{Status: 404}, noon)
	tell(t, small, ask(t, small, url(1), noon), Response{Status: 404}, noon)
	require.Equal(t, 1, small.Stats().Hosts, "the last answer is always there")
	unlimited := NewCache(Options{MaxBytes: -1})
	for i := range 10 {
		tell(t, unlimited, ask(t, unlimited, url(i), noon), whole(200, nil, long), noon)
	}
	require.Equal(t, 10, unlimited.Stats().Hosts)
}

// TestLostRequestsKeepTheBound: requests that are never answered use memory as well.
func TestLostRequestsKeepTheBound(t *testing.T) {
	const bound = 1 << 20
	c := NewCache(Options{MaxBytes: bound})
	before := liveBytes()
	given, refused := 0, 0
	look := func(i int, now time.Time) {
		answer, err := c.Lookup(fmt.Sprintf("https://h%d.test/", i), now)
		switch {
		case err != nil:
			require.ErrorIs(t, err, ErrFull)
			require.Equal(t, Answer{}, answer)
			refused++
		case answer.Request != nil:
			given++
		}
	}
	for i := range 20_000 {
		look(i, noon)
	}
	require.LessOrEqual(t, c.Stats().Bytes, bound)
	require.Less(t, liveBytes()-before, int64(bound))
	require.Greater(t, given, 300)
	require.Equal(t, 20_000, given+refused)
	first, _ := c.InFlight("https://h0.test/")
	tell(t, c, first, whole(200, nil, noAs), noon)

	// Once they count as lost, they make room.
	given, refused = 0, 0
	for i := range 20_000 {
		look(30_000+i, noon.Add(time.Hour))
	}
	require.Greater(t, given, 300)
	require.LessOrEqual(t, c.Stats().Bytes, bound)
	runtime.KeepAlive(c)
}

// TestABigFileDoesNotStopTheOthers: it exceeds the bound, but is evicted for new requests.
// TestARedirectStartsTheWaitAnew: a request that follows from another one is not lost earlier than
// those that were given before it.
func TestARedirectStartsTheWaitAnew(t *testing.T) {
	c := NewCache(Options{Patience: time.Hour, MaxBytes: 3 * 3000})
	first := ask(t, c, "https://a.test/", noon)
	ask(t, c, "https://b.test/", noon.Add(time.Minute))
	_, err := c.Store(first, whole(301, fields("Location", "/r"), ""), noon.Add(59*time.Minute))
	require.NoError(t, err)
	ask(t, c, "https://c.test/", noon.Add(61*time.Minute))
	ask(t, c, "https://d.test/", noon.Add(62*time.Minute)) // only b may go, which is lost
	_, found := c.InFlight("https://a.test/")
	require.True(t, found)
	_, found = c.InFlight("https://b.test/")
	require.False(t, found)
}

func TestABigFileDoesNotStopTheOthers(t *testing.T) {
	c := NewCache(Options{MaxBytes: 64 << 10})
	tell(t, c, ask(t, c, page, noon), whole(200, nil, long), noon)
	for i := range 10 {
		ask(t, c, fmt.Sprintf("https://h%d.test/", i), noon)
	}
	require.LessOrEqual(t, c.Stats().Bytes, 64<<10)
}

func liveBytes() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestCostIsNoLie: the bound applies to an estimate, which must not be below the real use.
func TestCostIsNoLie(t *testing.T) {
	for name, body := range map[string]string{
		"nothing": "",
		"typical": "user-agent: *\n" + strings.Repeat("disallow: /abcdef\n", 20),
		"big":     "user-agent: *\n" + strings.Repeat("disallow: /*abcdef\n", 5000),
	} {
		n := 1 + 400_000/(len(body)+1000)
		before := liveBytes()
		c := NewCache(Options{MaxBytes: -1})
		for i := range n {
			url := fmt.Sprintf("https://h%d.test/", i)
			tell(t, c, ask(t, c, url, noon), whole(200, fields("ETag", "x"), body), noon)
		}
		live := liveBytes() - before
		require.Less(t, live, int64(c.Stats().Bytes), name)
		require.Greater(t, live, int64(c.Stats().Bytes/4), name)
		runtime.KeepAlive(c)
	}
}

// TestLookupsDoNotAllocate if the rules are known and the host is written plainly.
func TestLookupsDoNotAllocate(t *testing.T) {
	c := NewCache(Options{})
	tell(t, c, ask(t, c, page, noon), whole(200, nil, noAs), noon)
	require.Zero(t, testing.AllocsPerRun(10, func() {
		c.Get(page, noon)
		_, _ = c.Lookup(page, noon)
	}))
}

// TestCacheModel compares the cache with a map from host to its last conclusive response, under
// random responses at random times.
func TestCacheModel(t *testing.T) {
	type known struct {
		copied      bool // there is a copy, which forbids /a
		unreachable bool
		until       time.Time
	}
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		c := NewCache(Options{MaxBytes: -1})
		model := make(map[string]known)
		now := noon
		var lost []Request
		for range 200 {
			now = now.Add(time.Duration(rnd.IntN(7200)) * time.Second)
			url := "https://" + []string{"a", "b", "c", "d"}[rnd.IntN(4)] + ".test/"
			m := model[url]
			rules, fresh := c.Get(url, now)
			require.Equal(t, now.Before(m.until), fresh, "seed %d", seed)
			if !fresh {
				req := ask(t, c, url, now)
				if rnd.IntN(5) == 0 { // and is asked again after an hour
					lost = append(lost, req)
					now = now.Add(time.Hour)
					req = ask(t, c, url, now)
				}
				status := []int{200, 200, 404, 500, 429, 0, 304}[rnd.IntN(7)]
				header := fields("ETag", "x", "Cache-Control", "max-age=7200")
				got := tell(t, c, req, whole(status, header, noAs), now)
				m = known{copied: m.copied, until: got.Expires}
				switch {
				case status == 200, status == 404:
					m.copied = status == 200
				case status != 304 || !m.copied:
					m.unreachable = true
				}
				model[url] = m
				require.Equal(t, m.unreachable, got.Failures > 0, "seed %d", seed)
				rules = got.rules
			}
			for _, late := range lost { // which must not matter
				_, err := c.Store(late, whole(404, nil, ""), now)
				require.NoError(t, err)
			}
			require.Equal(t, !m.copied && !m.unreachable, rules.Allowed("/a"), "seed %d", seed)
			require.Equal(t, m.copied || !m.unreachable, rules.Allowed("/b"), "seed %d", seed)
		}
	}
}

// FuzzStore asserts that every response leads to a valid state: the rules are known and expire
// within the bounds, or there is a next request, at most five times. The result can be saved and
// restored.
func FuzzStore(f *testing.F) {
	f.Add(301, "Location", "//other.test/%zz", "Retry-After", "1")
	f.Add(200, "Cache-Control", "max-age=1e9", "Expires", "0")
	f.Add(429, "Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT", "Age", "-1")
	f.Add(200, "ETag", "\xff", "Last-Modified", "\u00e9")
	f.Fuzz(func(t *testing.T, status int, name1, value1, name2, value2 string) {
		c := NewCache(Options{})
		req := ask(t, c, page, noon)
		for hop := 0; ; hop++ {
			answer, err := c.Store(req, whole(status, fields(name1, value1, name2, value2), noAs), noon)
			if err != nil || hop > maxHops {
				t.Fatal(hop, err)
			}
			if answer.Known {
				break
			}
			req = *answer.Request
		}
		entry, _ := c.Entry(page)
		if age := entry.Expires.Sub(noon); age < 5*time.Minute || age > 24*time.Hour {
			t.Errorf("expires after %v", age)
		}
		requireSaved(t, c)
	})
}

// BenchmarkLookup finds the rules of one of many hosts, the first step of each check.
func BenchmarkLookup(b *testing.B) {
	for _, hosts := range []int{1e2, 1e4} {
		b.Run(fmt.Sprintf("hosts=%d", hosts), func(b *testing.B) {
			c := NewCache(Options{MaxBytes: -1})
			urls := make([]string, hosts)
			for i := range urls {
				urls[i] = fmt.Sprintf("https://www.host%d.test/some/page.html", i)
				tell(b, c, ask(b, c, urls[i], noon), whole(200, nil, noAs), noon)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				rules, _ := c.Get(urls[i*7919%hosts], noon)
				rules.Allowed(urls[i%hosts])
				i++
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lookups/s")
		})
	}
}

// TestRulesOfOtherAgentsKeepTheBound: a program may compile a File's rules for more crawlers than
// its own, such as for those of AI training.
func TestRulesOfOtherAgentsKeepTheBound(t *testing.T) {
	const limit = 4 << 20
	c := NewCache(Options{Agent: "mybot", MaxBytes: limit})
	body := "user-agent: mybot\ndisallow: /x\nuser-agent: other\n" + strings.Repeat("disallow: /*a%zz\n", 2000)
	before := liveBytes()
	for i := range 200 {
		url := fmt.Sprintf("https://h%d.test/", i)
		answer := tell(t, c, ask(t, c, url, noon), whole(200, nil, body), noon)
		require.True(t, answer.rules.File().Rules("other").Allowed(url))
		_, known := c.Get(url, noon)
		require.True(t, known)
	}
	require.LessOrEqual(t, c.Stats().Bytes, limit)
	require.Less(t, liveBytes()-before, int64(limit))
	runtime.KeepAlive(c)
}

// TestRedirectsKeepTheBound: the targets of redirects are charged before they are known.
func TestRedirectsKeepTheBound(t *testing.T) {
	const bound = 1 << 20
	c := NewCache(Options{MaxBytes: bound})
	before := liveBytes()
	var given []Request
	for i := 0; ; i++ {
		answer, err := c.Lookup(fmt.Sprintf("https://h%d.test/", i), noon)
		if err != nil {
			break
		}
		given = append(given, *answer.Request)
	}
	redirect := whole(302, fields("Location", "/"+strings.Repeat("a", 2000)), "")
	for i := range given {
		answer, err := c.Store(given[i], redirect, noon)
		require.NoError(t, err)
		require.NotNil(t, answer.Request)
	}
	require.LessOrEqual(t, c.Stats().Bytes, bound)
	require.Less(t, liveBytes()-before, int64(bound)+int64(len(given))*int64(unsafe.Sizeof(Request{})))
	runtime.KeepAlive(c)
}

// TestFullCacheKeepsWhatItKnows: a lookup for which there is no room does not cost the host its copy.
func TestFullCacheKeepsWhatItKnows(t *testing.T) {
	c := NewCache(Options{MaxBytes: 8000, Patience: -1})
	tell(t, c, ask(t, c, page, noon), whole(200, nil, "user-agent: *\ndisallow: /a\n"), noon)
	for i := range 2 {
		ask(t, c, fmt.Sprintf("http://h%d.test/", i), noon)
	}
	before, known := c.Entry(page)
	require.True(t, known)
	_, err := c.Lookup(page, noon.Add(25*time.Hour))
	require.ErrorIs(t, err, ErrFull)
	after, known := c.Entry(page)
	require.True(t, known)
	require.Equal(t, before, after)
}

// TestFailingHostsTakeNoRoom: whoever invents hosts with long names, whose servers answer with long
// nonsense, takes no room from the files of others that are in use.
func TestFailingHostsTakeNoRoom(t *testing.T) {
	c, now := NewCache(Options{Agent: "a", MaxBytes: 1 << 20}), time.Now()
	for i := range 2000 {
		a, err := c.Lookup(fmt.Sprintf("http://%s%d.test/", strings.Repeat("a", 230), i), now)
		require.NoError(t, err)
		_, err = c.Store(*a.Request, Response{Reason: strings.Repeat("x", 512)}, now)
		require.NoError(t, err)
	}
	asked := 0
	for range 5 {
		for i := range 10 {
			a, err := c.Lookup(fmt.Sprintf("http://h%d.test/", i), now)
			require.NoError(t, err)
			if a.Request != nil {
				asked++
				_, err = c.Store(*a.Request, Response{Status: 200, Whole: true, Body: []byte("user-agent: *\ndisallow: /x\n")}, now)
				require.NoError(t, err)
			}
		}
	}
	require.Equal(t, 10, asked)
}

// TestLongFilesKeepHalfOfTheCache: many hosts with long files take no room from the files of others.
func TestLongFilesKeepHalfOfTheCache(t *testing.T) {
	c, now := NewCache(Options{Agent: "a", MaxBytes: 4 << 20}), time.Now()
	long, asked := []byte(strings.Repeat("#", 400<<10)+"\n"), 0
	for round := range 5 {
		for i := range 40 {
			url, body := fmt.Sprintf("http://long%d.test/", i), long
			if i%4 == 0 {
				url, body = fmt.Sprintf("http://h%d.test/", i), []byte("user-agent: *\ndisallow: /x\n")
			}
			a, err := c.Lookup(url, now)
			require.NoError(t, err)
			if a.Request != nil {
				if i%4 == 0 {
					asked++
				}
				_, err = c.Store(*a.Request, Response{Status: 200, Whole: true, Body: body}, now)
				require.NoError(t, err)
			}
		}
		require.LessOrEqual(t, c.Stats().Bytes, 4<<20, round)
	}
	require.Equal(t, 10, asked)
}

// TestRareTurnsReachPages: a host whose turns come less often than its rules expire gets to its pages:
// not each turn is used up by robots.txt.
func TestRareTurnsReachPages(t *testing.T) {
	for name, c := range map[string]struct {
		turn           time.Duration
		status         int
		body, validity string
	}{
		"crowded address":    {10 * time.Minute, 200, "user-agent: *\ndisallow: /x\n", "no-cache"},
		"no file there":      {10 * time.Minute, 404, "", "no-cache"},
		"an hour":            {time.Hour + time.Second, 200, "user-agent: *\ncrawl-delay: 3600\n", "max-age=3600"},
		"a day, not a word":  {24*time.Hour + time.Second, 200, "user-agent: *\ncrawl-delay: 86400\n", ""},
		"a day, not changed": {24*time.Hour + time.Second, 304, "user-agent: *\ncrawl-delay: 86400\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			cache, now, pages := NewCache(Options{Agent: "a"}), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 0
			header := http.Header{"Etag": {`"1"`}}
			if c.validity != "" {
				header.Set("Cache-Control", c.validity)
			}
			for turn := range 20 {
				a, err := cache.Lookup("http://h.test/page", now)
				require.NoError(t, err)
				switch {
				case a.Known:
					pages++
				case turn > 0 || c.status != 304:
					_, err = cache.Store(*a.Request, Response{Status: c.status, Header: header, Whole: true, Body: []byte(c.body)}, now)
				default:
					_, err = cache.Store(*a.Request, Response{Status: 200, Header: header, Whole: true, Body: []byte(c.body)}, now)
				}
				require.NoError(t, err)
				now = now.Add(c.turn)
			}
			require.GreaterOrEqual(t, pages, 10)
		})
	}
}

// TestValidityAfterAnOutage: the time of an outage is no sign that a file does not change.
func TestValidityAfterAnOutage(t *testing.T) {
	c, now := NewCache(Options{Agent: "a"}), time.Now()
	header := http.Header{"Cache-Control": {"max-age=300"}}
	for _, status := range []int{200, 503, 503, 503, 200} {
		a, err := c.Lookup("http://a.test/", now)
		require.NoError(t, err)
		require.NotNil(t, a.Request)
		_, err = c.Store(*a.Request, Response{Status: status, Header: header, Whole: true, Body: []byte("user-agent: *\ndisallow: /x\n")}, now)
		require.NoError(t, err)
		entry, _ := c.Entry("http://a.test/")
		if status == 200 {
			require.Equal(t, 5*time.Minute, entry.Expires.Sub(now))
		}
		now = entry.Expires
	}
}

// TestLongestValidity: rules that are valid for longer than a day are not taken for those of a wrong clock.
func TestLongestValidity(t *testing.T) {
	c, now := NewCache(Options{Agent: "a", MinTTL: 2 * time.Hour}), time.Now()
	a, err := c.Lookup("http://a.test/", now)
	require.NoError(t, err)
	_, err = c.Store(*a.Request, Response{Status: 200, Whole: true, Body: []byte("user-agent: *\ncrawl-delay: 90000\n")}, now)
	require.NoError(t, err)
	a, err = c.Lookup("http://a.test/", now.Add(time.Second))
	require.NoError(t, err)
	require.True(t, a.Known)
}

// TestPausesAreKept: hosts that asked for a day of pause are not asked again because many other hosts do not
// all fit.
func TestPausesAreKept(t *testing.T) {
	c := NewCache(Options{MaxBytes: 1 << 20})
	body := []byte("user-agent: *\n" + strings.Repeat("disallow: /a\n", 50))
	asked, at := 0, noon
	visit := func(host string, resp Response) {
		a, err := c.Lookup("http://"+host+"/", at)
		if err != nil || a.Request == nil {
			return
		}
		if resp.Status == http.StatusServiceUnavailable {
			asked++
		}
		_, err = c.Store(*a.Request, resp, at)
		require.NoError(t, err)
	}
	for range 24 {
		for i := range 30 {
			visit(fmt.Sprintf("p%d.test", i), Response{
				Status: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {"86400"}},
			})
		}
		for i := range 2000 {
			visit(fmt.Sprintf("h%d.test", i), Response{Status: http.StatusOK, Body: body, Whole: true})
		}
		at = at.Add(50 * time.Minute)
	}
	require.Equal(t, 30, asked)
}
