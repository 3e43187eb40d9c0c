package robots

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	page  = "https://h.test/a"
	where = "https://h.test/robots.txt"
	noAs  = "user-agent: *\ndisallow: /a\n"
)

const day = 24 * time.Hour

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
func ask(t *testing.T, c *Cache, url string, now time.Time) Request {
	t.Helper()
	answer, err := c.Lookup(url, now)
	require.NoError(t, err)
	require.Equal(t, Needed, answer.State)
	return answer.Request
}

// tell stores an answer, and requires that it is the last one.
func tell(t *testing.T, c *Cache, req Request, resp Response, now time.Time) Answer {
	t.Helper()
	answer, err := c.Store(req, resp, now)
	require.NoError(t, err)
	require.Equal(t, Fresh, answer.State)
	again, err := c.Lookup(req.For, now)
	require.NoError(t, err)
	require.Equal(t, answer, again, "what was stored is what is found")
	return answer
}

func (a Answer) allows(paths ...string) bool {
	for _, path := range paths {
		if !a.Rules.Allowed(path) {
			return false
		}
	}
	return true
}

// What one answer means for a host of which nothing was known (RFC 9309, 2.3.1).
func TestFirstAnswers(t *testing.T) {
	for _, tt := range []struct {
		name        string
		resp        Response
		a, b        bool // whether /a and /b are allowed
		unreachable bool
		age         time.Duration
	}{
		{"a file", Response{200, nil, []byte(noAs)}, false, true, false, day},
		{"part of a file, as asked", Response{206, nil, []byte(noAs)}, false, true, false,
			day},
		{"an empty file", Response{200, nil, nil}, true, true, false, day},
		{"no file", Response{404, nil, []byte(noAs)}, true, true, false, day},
		{"gone", Response{410, fields("Cache-Control", "max-age=600"), nil}, true, true, false,
			10 * time.Minute},
		{"forbidden", Response{403, nil, nil}, true, true, false, day},
		{"too many requests", Response{429, nil, nil}, false, false, true, 5 * time.Minute},
		{"server error", Response{500, nil, []byte(noAs)}, false, false, true, 5 * time.Minute},
		{"overload", Response{503, fields("Retry-After", "7200"), nil}, false, false, true,
			2 * time.Hour},
		{"overload till a date", Response{503, fields("Retry-After", "Sat, 01 Jun 2024 15:00:00 GMT"),
			nil}, false, false, true, 3 * time.Hour},
		{"overload for ever", Response{503, fields("Retry-After", "99999999999999999999"), nil}, false,
			false, true, day},
		{"overload, over already", Response{503, fields("Retry-After", "Sat, 01 Jun 2024 11:00:00 GMT"),
			nil}, false, false, true, 5 * time.Minute},
		{"no answer", Response{}, false, false, true, 5 * time.Minute},
		{"no status of HTTP", Response{999, nil, nil}, false, false, true, 5 * time.Minute},
		{"unasked 304", Response{304, nil, nil}, false, false, true, 5 * time.Minute},
		{"redirect to nowhere", Response{301, nil, nil}, true, true, false, day},
		{"redirect to no URL", Response{301, fields("Location", "http://%zz/"), nil}, true, true, false,
			day},
		{"redirect out of the web", Response{302, fields("Location", "file:///etc/passwd"), nil}, true,
			true, false, day},
		{"redirect to an endless URL", Response{301, fields("Location", "/"+endless), nil}, true, true,
			false, day},
		{"choices", Response{300, fields("Location", "/b"), nil}, true, true, false, day},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := NewCache(Options{Agent: "foo"})
			got := tell(t, c, ask(t, c, page, noon), tt.resp, noon)
			require.Equal(t, tt.a, got.allows("/a"))
			require.Equal(t, tt.b, got.allows("/b"))
			require.Equal(t, tt.unreachable, got.Unreachable)
			require.Equal(t, tt.age, got.Until.Sub(noon))

			before, err := c.Lookup(page, got.Until.Add(-1))
			require.NoError(t, err)
			require.Equal(t, Fresh, before.State)
			ask(t, c, page, got.Until)
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
		{fields("Cache-Control", "max-age=-1"), day},
		{fields("Cache-Control", "max-age=soon"), day},
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
		require.Equal(t, tt.want, o.age(tt.header, noon), "%v", tt.header)
	}
	o := Options{MinAge: time.Minute, MaxAge: 2 * time.Minute}.withDefaults()
	require.Equal(t, 2*time.Minute, o.age(nil, noon))
	require.Equal(t, time.Minute, o.age(fields("Cache-Control", "max-age=1"), noon))
}

func TestRevalidation(t *testing.T) {
	c := NewCache(Options{})
	now := noon
	req := ask(t, c, page, now)
	require.Equal(t, Request{For: where, URL: where}, req)
	header := fields("ETag", `"v1"`, "Last-Modified", "Sat, 01 Jun 2024 00:00:00 GMT")
	first := tell(t, c, req, Response{200, header, []byte(noAs)}, now)

	now = first.Until
	req = ask(t, c, page, now)
	require.Equal(t, Request{where, where, 0, `"v1"`, "Sat, 01 Jun 2024 00:00:00 GMT"}, req)
	header = fields("ETag", `"v2"`, "Cache-Control", "max-age=3600")
	second := tell(t, c, req, Response{304, header, nil}, now)
	require.Same(t, first.File, second.File)
	require.Equal(t, now.Add(time.Hour), second.Until)

	now = second.Until
	req = ask(t, c, page, now)
	require.Equal(t, `"v2"`, req.ETag)
	require.Equal(t, "Sat, 01 Jun 2024 00:00:00 GMT", req.LastModified, "kept if not said anew")
	third := tell(t, c, req, Response{200, nil, nil}, now)
	require.True(t, third.allows("/a"))
	req = ask(t, c, page, third.Until)
	require.Equal(t, Request{For: where, URL: where}, req, "no validators of an old file")

	now = third.Until
	header = fields("ETag", endless+"a", "Last-Modified", endless)
	fourth := tell(t, c, req, Response{200, header, nil}, now)
	req = ask(t, c, page, fourth.Until)
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
			require.Equal(t, Request{For: where, URL: urls[i], Hop: i}, req, "no validators on the way")
			answer, err := c.Store(req, Response{[]int{301, 302, 303, 307, 308}[i],
				fields("Location", location), []byte("user-agent: *\ndisallow: /")}, now)
			require.NoError(t, err)
			require.Equal(t, Needed, answer.State, location)
			req = answer.Request
			other, err := c.Lookup(page, now)
			require.NoError(t, err)
			require.Equal(t, InFlight, other.State, "one chain of requests at a time")
		}
		return req
	}

	req := follow()
	require.Equal(t, urls[5], req.URL)
	got := tell(t, c, req, Response{200, fields("ETag", `"x"`), []byte(noAs)}, now)
	require.False(t, got.allows("/a"))
	ask(t, c, "https://other.test/a", now) // whose own rules nobody has seen

	now = got.Until
	req = follow()
	require.Equal(t, `"x"`, req.ETag, "validators go to the URL that the file came from")
	got = tell(t, c, req, Response{Status: 304}, now)
	require.False(t, got.allows("/a"))

	now = got.Until
	req = follow()
	require.Equal(t, `"x"`, req.ETag, "a 304 that names none confirms the one that was sent")
	got = tell(t, c, req, Response{301, fields("Location", "/6"), nil}, now)
	require.True(t, got.allows("/a"), "a sixth redirect means that there is no file")
	require.False(t, got.Unreachable)

	now = got.Until
	got = tell(t, c, follow(), Response{Status: 404}, now)
	require.True(t, got.allows("/a"))
}

// RFC 9309, 2.3.1.4 and 2.4: the last copy holds while the host is out of reach.
func TestOutOfReach(t *testing.T) {
	c := NewCache(Options{})
	now := noon
	got := tell(t, c, ask(t, c, page, now), Response{200, fields("ETag", `"x"`), []byte(noAs)}, now)
	for i, want := range []time.Duration{
		5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 40 * time.Minute, time.Hour, time.Hour,
	} {
		now = got.Until
		req := ask(t, c, page, now)
		require.Equal(t, `"x"`, req.ETag)
		got = tell(t, c, req, Response{Status: []int{0, 503, 429}[i%3]}, now)
		require.True(t, got.Unreachable)
		require.False(t, got.allows("/a"))
		require.True(t, got.allows("/b"))
		require.Equal(t, want, got.Until.Sub(now))
	}
	now = now.Add(400 * day)
	got = tell(t, c, ask(t, c, page, now), Response{}, now)
	require.True(t, got.allows("/b"), "however long")

	now = got.Until
	got = tell(t, c, ask(t, c, page, now), Response{Status: 304}, now)
	require.False(t, got.Unreachable)
	require.Equal(t, day, got.Until.Sub(now))

	now = got.Until
	got = tell(t, c, ask(t, c, page, now), Response{}, now)
	require.Equal(t, 5*time.Minute, got.Until.Sub(now), "the count of failures starts again")

	now = got.Until
	tell(t, c, ask(t, c, page, now), Response{Status: 404}, now)
	got = tell(t, c, ask(t, c, page, now.Add(25*time.Hour)), Response{}, now.Add(25*time.Hour))
	require.False(t, got.allows("/b"), "a file that was withdrawn is no copy, nor is its absence")
}

// What is restored has failed under other options: the count may be higher than these lead to.
func TestRetryAfterManyFailures(t *testing.T) {
	for _, tt := range []struct{ retry, most, want time.Duration }{
		{0, 0, time.Hour},
		{0, math.MaxInt64, math.MaxInt64},
		{math.MaxInt64, math.MaxInt64, math.MaxInt64},
		{time.Hour, time.Minute, time.Minute},
	} {
		for _, failures := range []int{25, 60, 1000} {
			c := NewCache(Options{Retry: tt.retry, MaxRetry: tt.most})
			require.NoError(t, c.Restore(Entry{URL: where, Failures: failures, FailedSince: noon}))
			got := tell(t, c, ask(t, c, page, noon), Response{}, noon)
			require.Equal(t, tt.want, got.Until.Sub(noon), "%+v, %d failures", tt, failures)
		}
	}
}

func TestGiveUp(t *testing.T) {
	for _, tt := range []struct {
		giveUp, after time.Duration
		want          bool
	}{
		{0, 1000 * day, false},
		{-1, 1000 * day, false},
		{30 * day, 30*day - 1, false},
		{30 * day, 30 * day, true},
	} {
		c := NewCache(Options{GiveUp: tt.giveUp})
		tell(t, c, ask(t, c, page, noon), Response{}, noon)
		now := noon.Add(tt.after)
		got := tell(t, c, ask(t, c, page, now), Response{}, now)
		require.Equal(t, tt.want, got.allows("/a"), "%+v", tt)
		require.True(t, got.Unreachable)
	}
}

func TestDenyForbidden(t *testing.T) {
	for _, status := range []int{401, 403, 404} {
		c := NewCache(Options{DenyForbidden: true})
		got := tell(t, c, ask(t, c, page, noon), Response{Status: status}, noon)
		require.Equal(t, status == 404, got.allows("/a"), status)
		require.False(t, got.Unreachable)
	}
}
