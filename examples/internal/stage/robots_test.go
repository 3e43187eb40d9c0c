package stage

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

const robotsFile = "http://a.example/robots.txt"

func page(path string) Item { return Item{URL: "http://a.example" + path} }

// asked parks an item and returns the resulting request.
func asked(t *testing.T, r *Robots, it Item, now time.Time) robots.Request {
	t.Helper()
	ruling := r.Rule(it, now)
	require.Equal(t, Ask, ruling.Step)
	return ruling.Request
}

func reply(status int, body string) robots.Response {
	return robots.Response{Status: status, Header: http.Header{}, Body: []byte(body), Whole: true}
}

func TestRobotsParksItemsUntilTheResponse(t *testing.T) {
	r, now := newRobots(), time.Now()
	req := asked(t, r, page("/1"), now)
	require.Equal(t, robotsFile, req.URL)
	require.Equal(t, Ruling{Step: Wait}, r.Rule(page("/2"), now.Add(48*time.Hour)), "however long it takes")
	require.Equal(t, Ask, r.Rule(Item{URL: "https://a.example/"}, now).Step, "another scheme is another server")

	require.Equal(t, Answered{
		Released: []Item{page("/1"), page("/2")}, Delay: 7 * time.Second,
		Sitemaps: []string{"http://b.example/s.xml", "http://a.example/t.xml"},
	}, r.Answer(req, reply(200, "User-agent: spider\nDisallow: /2\nCrawl-delay: 7\n"+
		"Sitemap: http://b.example/s.xml\nSitemap: /t.xml"), now))
	require.Equal(t, Ruling{Step: Go}, r.Rule(page("/1"), now))
	require.Equal(t, Ruling{
		Step: Stop, Fate: Disallowed, Why: "line 2 of http://a.example/robots.txt: /2",
	}, r.Rule(page("/2"), now))
}

func TestRobotsFollowsRedirects(t *testing.T) {
	r, now := newRobots(), time.Now()
	req := asked(t, r, page("/1"), now)
	moved := reply(301, "")
	moved.Header.Set("Location", "http://b.example/r.txt")
	s := r.Answer(req, moved, now)
	require.True(t, s.More)
	require.Empty(t, s.Released)
	require.Equal(t, "http://b.example/r.txt", s.Next.URL)
	s = r.Answer(s.Next, reply(200, "User-agent: *\nDisallow: /1"), now)
	require.False(t, s.More)
	require.Len(t, s.Released, 1)
	require.Equal(t, Disallowed, r.Rule(page("/1"), now).Fate)
}

func TestRobotsRequestsTheFileAgainAfterADay(t *testing.T) {
	r, now := newRobots(), time.Now()
	r.Answer(asked(t, r, page("/1"), now), reply(404, ""), now)
	require.Equal(t, Go, r.Rule(page("/1"), now.Add(24*time.Hour-1)).Step)
	req := asked(t, r, page("/1"), now.Add(24*time.Hour))
	require.Equal(t, Wait, r.Rule(page("/2"), now.Add(24*time.Hour)).Step)
	s := r.Answer(req, reply(200, "User-agent: *\nDisallow: /"), now.Add(24*time.Hour))
	require.Len(t, s.Released, 2)
	require.Equal(t, Disallowed, r.Rule(page("/1"), now.Add(24*time.Hour)).Fate)
}

func TestRobotsByStatus(t *testing.T) {
	for status, want := range map[int]Fate{
		200: Disallowed, 403: "", 404: "",
		429: RobotsUnreachable, 500: RobotsUnreachable, 503: RobotsUnreachable,
	} {
		r, now := newRobots(), time.Now()
		r.Answer(asked(t, r, page("/"), now), reply(status, "User-agent: *\nDisallow: /"), now)
		require.Equal(t, want, r.Rule(page("/"), now).Fate, "status %d", status)
	}
}

func TestSilentServer(t *testing.T) {
	r, now := newRobots(), time.Now()
	released := r.Silent(asked(t, r, page("/1"), now), Refused, "connection refused", now)
	require.Equal(t, []Item{page("/1")}, released)
	require.Equal(t, Ruling{Step: Stop, Fate: Refused, Why: "connection refused"}, r.Rule(page("/2"), now))
	later := now.Add(time.Hour)
	r.Answer(asked(t, r, page("/3"), later), reply(500, ""), later)
	require.Equal(t, RobotsUnreachable, r.Rule(page("/2"), later).Fate, "the failure was replaced by a response")
}

// TestIncompleteFileAllowsNothing: nor does one that could not be decoded. Text beyond the
// limit of robots.txt is ignored anyway.
func TestIncompleteFileAllowsNothing(t *testing.T) {
	for _, why := range []fetch.Kind{fetch.Whole, fetch.CutLength, fetch.CutTime, fetch.CutSlow,
		fetch.CutRatio, fetch.CutDisconnect, fetch.CutCoding} {
		resp := &fetch.Response{Status: 200, Body: []byte("User-agent: *\nDisallow: /1\n"), Truncated: why}
		require.Equal(t, why == fetch.Whole, RobotsResponse(resp).File().Rules("spider").Allowed("/2"), why)
		resp.Body = append(resp.Body, make([]byte, robotstxt.MaxSize)...)
		require.True(t, RobotsResponse(resp).File().Rules("spider").Allowed("/2"), why)
		require.False(t, RobotsResponse(resp).File().Rules("spider").Allowed("/1"), why)
	}
}

func TestRobotsWithoutAFileAllowNothing(t *testing.T) {
	require.Equal(t, Stop, newRobots().Rule(Item{URL: "gopher://a.example/"}, time.Now()).Step)
}

func newRobots() *Robots {
	return NewRobots("spider", robots.NewCache(robots.Options{Agent: "spider", Patience: -1}))
}
