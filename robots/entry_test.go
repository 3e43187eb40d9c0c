package robots

import (
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

const (
	page  = "https://h.test/a"
	where = "https://h.test/robots.txt"
	noAs  = "user-agent: *\ndisallow: /a\n"
)

const day = 24 * time.Hour

var long = strings.Repeat("#\n", robotstxt.MaxSize/2)

var endless = strings.Repeat("a", maxField)

var noon = time.Date(2024, 6, 1, 12, 0, 0, 0, time.UTC)

// fields makes a header from names and values in turn.
func fields(pairs ...string) http.Header {
	h := make(http.Header)
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// ask requires that a request is needed, and returns it.
func ask(t testing.TB, c *Cache, url string, now time.Time) Request {
	t.Helper()
	answer, err := c.Lookup(url, now)
	require.NoError(t, err)
	require.False(t, answer.Known)
	require.False(t, answer.Rules.Allowed("/"), "what is not known is not allowed")
	require.NotNil(t, answer.Request)
	return *answer.Request
}

// A held is what is known about a host after a response.
type held struct {
	Entry
	rules robotstxt.Rules
}

// tell stores a response, and requires that it is the last one.
func tell(t testing.TB, c *Cache, req Request, resp Response, now time.Time) held {
	t.Helper()
	answer, err := c.Store(req, resp, now)
	require.NoError(t, err)
	require.True(t, answer.Known)
	require.Nil(t, answer.Request)
	again, err := c.Lookup(req.For, now)
	require.NoError(t, err)
	require.Equal(t, answer, again, "what was stored is what is found")
	entry, known := c.Entry(req.For)
	require.True(t, known)
	return held{entry, answer.Rules}
}

// whole is a response with a whole body.
func whole(status int, header http.Header, body string) Response {
	return Response{Status: status, Header: header, Body: []byte(body), Whole: true}
}

// unflown leaves out the number of the flight.
func unflown(req Request) Request {
	req.Flight = 0
	return req
}

func (h held) allows(paths ...string) bool {
	for _, path := range paths {
		if !h.rules.Allowed(path) {
			return false
		}
	}
	return true
}

// What one answer means for an unknown host (RFC 9309, 2.3.1).
func TestFirstAnswers(t *testing.T) {
	for _, tt := range []struct {
		name        string
		resp        Response
		a, b        bool // whether /a and /b are allowed
		unreachable bool
		age         time.Duration
	}{
		{"a file", whole(200, nil, noAs), false, true, false, day},
		{"part of a file, as asked", whole(206, nil, noAs), false, true, false, day},
		{"half a file", Response{Status: 200, Body: []byte(noAs)}, false, false, true, 5 * time.Minute},
		{"no file, half the page that says so", Response{Status: 404, Body: []byte("<ht")}, true, true, false,
			day},
		{"the first 500 KiB", Response{Status: 200, Body: []byte(noAs + long)}, false, true, false, day},
		{"an empty file", whole(200, nil, ""), true, true, false, day},
		{"no file", whole(404, nil, noAs), true, true, false, day},
		{"gone", whole(410, fields("Cache-Control", "max-age=600"), ""), true, true, false,
			10 * time.Minute},
		{"forbidden", whole(403, nil, ""), true, true, false, day},
		{"a proxy that wants a password", whole(407, nil, ""), false, false, true, 5 * time.Minute},
		{"too many requests", whole(429, nil, ""), false, false, true, 5 * time.Minute},
		{"server error", whole(500, nil, noAs), false, false, true, 5 * time.Minute},
		{"overload", whole(503, fields("Retry-After", "7200"), ""), false, false, true,
			2 * time.Hour},
		{"overload till a date", whole(503, fields("Retry-After", "Sat, 01 Jun 2024 15:00:00 GMT"), ""), false, false, true, 3 * time.Hour},
		{"overload forever", whole(503, fields("Retry-After", "99999999999999999999"), ""), false,
			false, true, day},
		{"overload, over already", whole(503, fields("Retry-After", "Sat, 01 Jun 2024 11:00:00 GMT"), ""), false, false, true, 5 * time.Minute},
		{"no answer", Response{}, false, false, true, 5 * time.Minute},
		{"no status of HTTP", whole(999, nil, ""), false, false, true, 5 * time.Minute},
		{"unasked 304", whole(304, nil, ""), false, false, true, 5 * time.Minute},
		{"redirect to nowhere", whole(301, nil, ""), true, true, false, day},
		{"redirect to no URL", whole(301, fields("Location", "http://%zz/"), ""), true, true, false,
			day},
		{"redirect out of the web", whole(302, fields("Location", "file:///etc/passwd"), ""), true,
			true, false, day},
		{"redirect to an endless URL", whole(301, fields("Location", "/"+endless), ""), true, true,
			false, day},
		{"age in an endless field", whole(404, fields("Cache-Control", "max-age=600,"+endless), ""), true,
			true, false, day},
		{"choices", whole(300, fields("Location", "/b"), ""), true, true, false, day},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := NewCache(Options{Agent: "foo"})
			got := tell(t, c, ask(t, c, page, noon), tt.resp, noon)
			require.Equal(t, tt.a, got.allows("/a"))
			require.Equal(t, tt.b, got.allows("/b"))
			require.Equal(t, tt.unreachable, got.Failures > 0)
			require.Equal(t, tt.age, got.Expires.Sub(noon))

			before, err := c.Lookup(page, got.Expires.Add(-1))
			require.NoError(t, err)
			require.True(t, before.Known)
			ask(t, c, page, got.Expires)
		})
	}
}

// How long an answer is believed (RFC 9309, 2.4; RFC 9111, 5.2.2 and 5.3).
func TestAges(t *testing.T) {
	for _, tt := range []struct {
		header http.Header
		want   time.Duration
	}{
		{nil, day},
		{fields("Cache-Control", "max-age=3600"), time.Hour},
		{fields("Cache-Control", "public, MAX-AGE=\"3600\""), time.Hour},
		{fields("Cache-Control", "max-age=3600, max-age=7200"), time.Hour},
		{fields("Cache-Control", "public", "Cache-Control", "max-age=3600"), time.Hour},
		{fields("Cache-Control", "max-age=3600", "Age", "600"), 50 * time.Minute},
		{fields("Cache-Control", "max-age=3600", "Age", "9999"), 5 * time.Minute},
		{fields("Cache-Control", "max-age=31536000"), day},
		{fields("Cache-Control", "max-age=99999999999999999999"), day},
		{fields("Cache-Control", "max-age=0"), 5 * time.Minute},
		// RFC 9111 (4.2.1) advises to consider a response with an invalid lifetime stale.
		{fields("Cache-Control", "max-age=-1"), 5 * time.Minute},
		{fields("Cache-Control", "max-age=soon"), 5 * time.Minute},
		{fields("Cache-Control", "no-cache"), 5 * time.Minute},
		{fields("Cache-Control", "max-age=3600, no-store"), 5 * time.Minute},
		{fields("Cache-Control", "s-maxage=60"), day},
		{fields("Expires", "Sat, 01 Jun 2024 14:00:00 GMT"), 2 * time.Hour},
		{fields("Expires", "Sat, 01 Jun 2024 10:00:00 GMT"), 5 * time.Minute},
		{fields("Expires", "0"), 5 * time.Minute},
		{fields("Expires", "Sat, 01 Jun 2024 14:00:00 GMT", "Cache-Control", "max-age=3600"), time.Hour},
		{fields("Age", "600"), day},
	} {
		o := Options{}.withDefaults()
		require.Equal(t, tt.want, o.ttl(tt.header, noon), "%v", tt.header)
	}
	o := Options{MinTTL: time.Minute, MaxTTL: 2 * time.Minute}.withDefaults()
	require.Equal(t, 2*time.Minute, o.ttl(nil, noon))
	require.Equal(t, time.Minute, o.ttl(fields("Cache-Control", "max-age=1"), noon))
}

func TestRevalidation(t *testing.T) {
	c := NewCache(Options{})
	now := noon
	req := ask(t, c, page, now)
	require.Equal(t, Request{For: where, URL: where}, unflown(req))
	header := fields("ETag", `"v1"`, "Last-Modified", "Sat, 01 Jun 2024 00:00:00 GMT")
	first := tell(t, c, req, whole(200, header, noAs), now)

	now = first.Expires
	req = ask(t, c, page, now)
	require.Equal(t, Request{For: where, URL: where, ETag: `"v1"`,
		LastModified: "Sat, 01 Jun 2024 00:00:00 GMT"}, unflown(req))
	header = fields("ETag", `"v2"`, "Cache-Control", "max-age=3600")
	second := tell(t, c, req, whole(304, header, ""), now)
	require.Same(t, first.rules.File(), second.rules.File())
	require.Equal(t, now.Add(time.Hour), second.Expires)

	now = second.Expires
	req = ask(t, c, page, now)
	require.Equal(t, `"v2"`, req.ETag)
	require.Equal(t, "Sat, 01 Jun 2024 00:00:00 GMT", req.LastModified, "kept if not said anew")
	third := tell(t, c, req, whole(200, nil, ""), now)
	require.True(t, third.allows("/a"))
	req = ask(t, c, page, third.Expires)
	require.Equal(t, Request{For: where, URL: where}, unflown(req), "no validators of an old file")

	now = third.Expires
	header = fields("ETag", endless+"a", "Last-Modified", endless)
	fourth := tell(t, c, req, whole(200, header, ""), now)
	req = ask(t, c, page, fourth.Expires)
	require.Empty(t, req.ETag, "too long to be kept")
	require.Len(t, req.LastModified, maxField)
}

func TestRedirects(t *testing.T) {
	c := NewCache(Options{})
	now := noon
	hops := []string{"/1", "https://other.test/2?x=y#z", "//third.test/3", "http://h.test/4", "5"}
	urls := []string{where, "https://h.test/1", "https://other.test/2?x=y", "https://third.test/3",
		"http://h.test/4", "http://h.test/5"}
	follow := func() Request {
		req := ask(t, c, page, now)
		for i, location := range hops {
			require.Equal(t, Request{For: where, URL: urls[i], Hop: i}, unflown(req), "no validators on the way")
			answer, err := c.Store(req, Response{[]int{301, 302, 303, 307, 308}[i],
				fields("Location", location), []byte("user-agent: *\ndisallow: /"), true, ""}, now)
			require.NoError(t, err)
			require.NotNil(t, answer.Request, location)
			require.Equal(t, req.Flight, answer.Request.Flight)
			req = *answer.Request
			other, err := c.Lookup(page, now)
			require.NoError(t, err)
			require.Equal(t, Answer{}, other, "one chain of requests at a time")
		}
		return req
	}

	req := follow()
	require.Equal(t, urls[5], req.URL)
	got := tell(t, c, req, whole(200, fields("ETag", `"x"`), noAs), now)
	require.False(t, got.allows("/a"))
	ask(t, c, "https://other.test/a", now) // its own rules are unknown

	now = got.Expires
	req = follow()
	require.Equal(t, `"x"`, req.ETag, "validators go to the URL that the file came from")
	got = tell(t, c, req, Response{Status: 304}, now)
	require.False(t, got.allows("/a"))

	now = got.Expires
	req = follow()
	require.Equal(t, `"x"`, req.ETag, "a 304 that names none confirms the one that was sent")
	got = tell(t, c, req, whole(301, fields("Location", "/6"), ""), now)
	require.True(t, got.allows("/a"), "a sixth redirect means that there is no file")
	require.Zero(t, got.Failures)

	now = got.Expires
	got = tell(t, c, follow(), Response{Status: 404}, now)
	require.True(t, got.allows("/a"))
}

// Nobody can mend what only says that something failed.
func TestFailuresHaveAReason(t *testing.T) {
	for _, tt := range []struct {
		resp   Response
		reason string
	}{
		{Response{Reason: "dial tcp: no such host"}, "dial tcp: no such host"},
		{Response{}, "no response"},
		{Response{Status: 503}, "status 503 Service Unavailable"},
		{Response{Status: 599}, "status 599"},
		{Response{Status: 200, Body: []byte(noAs)}, "the file is incomplete"},
		{Response{Status: 200, Body: []byte(noAs), Reason: "unexpected EOF"}, "unexpected EOF"},
		{Response{Reason: strings.Repeat("x", maxReason-1) + "\u00fc" + long}, strings.Repeat("x", maxReason-1)},
		{ReadResponse(nil, io.ErrUnexpectedEOF), "unexpected EOF"},
	} {
		c := NewCache(Options{})
		tell(t, c, ask(t, c, page, noon), tt.resp, noon)
		entry, _ := c.Entry(page)
		require.Equal(t, tt.reason, entry.Reason)
		requireSaved(t, c)

		tell(t, c, ask(t, c, page, entry.Expires), whole(200, nil, noAs), entry.Expires)
		entry, _ = c.Entry(page)
		require.Empty(t, entry.Reason, "the host is in reach again")
	}
}

// RFC 9309, 2.3.1.4 and 2.4: the last copy holds while the host is out of reach.
func TestOutOfReach(t *testing.T) {
	c := NewCache(Options{})
	now := noon
	got := tell(t, c, ask(t, c, page, now), whole(200, fields("ETag", `"x"`), noAs), now)
	for i, want := range []time.Duration{
		5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 40 * time.Minute, time.Hour, time.Hour,
	} {
		now = got.Expires
		req := ask(t, c, page, now)
		require.Equal(t, `"x"`, req.ETag)
		got = tell(t, c, req, Response{Status: []int{0, 503, 429}[i%3]}, now)
		require.Positive(t, got.Failures)
		require.False(t, got.allows("/a"))
		require.True(t, got.allows("/b"))
		require.Equal(t, want, got.Expires.Sub(now))
	}
	now = now.Add(400 * day)
	got = tell(t, c, ask(t, c, page, now), Response{}, now)
	require.True(t, got.allows("/b"), "however long")

	now = got.Expires
	got = tell(t, c, ask(t, c, page, now), Response{Status: 304}, now)
	require.Zero(t, got.Failures)
	require.Equal(t, day, got.Expires.Sub(now))

	now = got.Expires
	got = tell(t, c, ask(t, c, page, now), Response{}, now)
	require.Equal(t, 5*time.Minute, got.Expires.Sub(now), "the count of failures starts again")

	now = got.Expires
	tell(t, c, ask(t, c, page, now), Response{Status: 404}, now)
	got = tell(t, c, ask(t, c, page, now.Add(25*time.Hour)), Response{}, now.Add(25*time.Hour))
	require.False(t, got.allows("/b"), "a file that was withdrawn is no copy, nor is its absence")
}

// The entry comes from a cache with other options: the count may be higher than these permit.
func TestRetryAfterManyFailures(t *testing.T) {
	for _, tt := range []struct{ retry, most, want time.Duration }{
		{0, 0, time.Hour},
		{0, math.MaxInt64, math.MaxInt64},
		{math.MaxInt64, math.MaxInt64, math.MaxInt64},
		{time.Hour, time.Minute, time.Minute},
	} {
		for _, failures := range []int{25, 60, 1000} {
			c := NewCache(Options{Retry: tt.retry, MaxRetry: tt.most})
			require.NoError(t, c.Restore(Entry{URL: where, Failures: failures, FailedSince: noon, Expires: noon}))
			got := tell(t, c, ask(t, c, page, noon), Response{}, noon)
			require.Equal(t, tt.want, got.Expires.Sub(noon), "%+v, %d failures", tt, failures)
		}
	}
}

// TestUnreachableForever: without a copy, nothing is ever allowed.
func TestUnreachableForever(t *testing.T) {
	c := NewCache(Options{})
	for _, after := range []time.Duration{0, 30 * day, 1000 * day} {
		now := noon.Add(after)
		got := tell(t, c, ask(t, c, page, now), Response{}, now)
		require.False(t, got.allows("/a"))
		require.Positive(t, got.Failures)
	}
}

// A 304 confirms only the copy that the request named.
func TestConfirmationOfAnotherCopy(t *testing.T) {
	c := NewCache(Options{})
	req := ask(t, c, page, noon)
	newer := Entry{URL: where, Status: 200, Fetched: noon, Expires: noon, Source: where,
		Body: []byte(noAs), ETag: `"v1"`}
	require.NoError(t, c.Restore(newer))
	got := tell(t, c, req, Response{Status: 304}, noon)
	require.Positive(t, got.Failures)
	require.False(t, got.allows("/a"))
	require.True(t, got.allows("/b"), "the copy stays")
}

// A 304 to a request for a copy that a restored one has replaced is no failure, and says nothing.
func TestConfirmationOfAnOlderCopy(t *testing.T) {
	for _, left := range []time.Duration{-time.Second, time.Hour} {
		c := NewCache(Options{})
		tell(t, c, ask(t, c, page, noon), whole(200, fields("ETag", "1"), ""), noon)
		now := noon.Add(day)
		req := ask(t, c, page, now)
		require.Equal(t, "1", req.ETag)
		newer := Entry{URL: where, Status: 200, Fetched: now, Expires: now.Add(left), Source: where,
			Body: []byte(noAs), ETag: "2"}
		require.NoError(t, c.Restore(newer))
		answer, err := c.Store(req, Response{Status: 304}, now)
		require.NoError(t, err)
		require.False(t, answer.Rules.Allowed("/a"))
		require.Zero(t, c.Stats().InFlight)
		entry, _ := c.Entry(page)
		require.Equal(t, newer, entry)
	}
}

// A clock that was wrong for a minute must not keep a file valid for years.
func TestTimesThatNoResponseSets(t *testing.T) {
	c := NewCache(Options{})
	tell(t, c, ask(t, c, page, noon.Add(400*day)), whole(404, nil, ""), noon.Add(400*day))
	ask(t, c, page, noon)
}

// TestANowBeforeTheAnswer: who has read the clock before the response came, and had to wait for it, asks
// for nothing again.
func TestANowBeforeTheAnswer(t *testing.T) {
	for _, resp := range []Response{
		whole(200, nil, noAs), {Status: 404}, {Status: 503}, {Status: 503, Header: fields("Retry-After", "86400")},
	} {
		for _, o := range []Options{{}, {MaxTTL: math.MaxInt64}, {MinTTL: time.Minute, MaxTTL: time.Minute}} {
			c := NewCache(o)
			got := tell(t, c, ask(t, c, page, noon), resp, noon)
			for _, before := range []time.Duration{1, time.Second, time.Minute} {
				answer, err := c.Lookup(page, noon.Add(-before))
				require.NoError(t, err)
				require.Nil(t, answer.Request, "%+v", resp)
				require.Equal(t, got.rules, answer.Rules)
			}
		}
	}
}

// TestFailuresDoNotOverflow: what is saved can be restored, however long the host was down.
func TestFailuresDoNotOverflow(t *testing.T) {
	c := NewCache(Options{})
	down := Entry{URL: where, Failures: maxFailures, FailedSince: noon, Expires: noon, Status: 503, Reason: "status 503 Service Unavailable"}
	require.NoError(t, c.Restore(down))
	tell(t, c, ask(t, c, page, noon), Response{Status: 503}, noon)
	down.Expires = noon.Add(time.Hour)
	entry, _ := c.Entry(page)
	require.Equal(t, down, entry)
	requireSaved(t, c)
}

func TestRedirectsAreKeptAsASCII(t *testing.T) {
	c := NewCache(Options{})
	answer, err := c.Store(ask(t, c, page, noon), whole(301, fields("Location", "/\u00e9?\u00e9 \xff"), ""), noon)
	require.NoError(t, err)
	require.Equal(t, "https://h.test/%C3%A9?%C3%A9%20%FF", answer.Request.URL)
}

func TestRedirectsWithoutCredentials(t *testing.T) {
	c := NewCache(Options{})
	answer, err := c.Store(ask(t, c, page, noon), whole(301, fields("Location", "https://a:b@h.test/"), ""), noon)
	require.NoError(t, err)
	require.Equal(t, "https://h.test/", answer.Request.URL)
}
