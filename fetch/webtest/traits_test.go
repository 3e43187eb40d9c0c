package webtest

import (
	"compress/gzip"
	"io"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRobotsModes(t *testing.T) {
	const rules = "User-agent: *\nDisallow: /private/\nDisallow: /x\nCrawl-delay: 1.5\n"
	for _, tt := range []struct {
		name     string
		mode     RobotsMode
		status   int
		body     string // how it begins
		location string
	}{
		{"rules", RobotsRules, 200, rules, ""},
		{"missing", RobotsMissing, 404, "", ""},
		{"forbidden", RobotsForbidden, 403, "", ""},
		{"server error", RobotsError, 500, "", ""},
		{"redirect to a path", RobotsRedirect, 302, "", "/robots-rules.txt"},
		{"redirect to a host", RobotsRedirectHost, 302, "",
			"http://h00001.vweb.test/robots-rules.txt"},
		{"redirect to itself", RobotsLoop, 302, "", "/robots.txt"},
		{"huge", RobotsHuge, 200, rules, ""},
		{"empty", RobotsEmpty, 200, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := start(t, Options{Hosts: 2, Traits: func(int) Traits {
				return Traits{Robots: Robots{tt.mode, 1500 * time.Millisecond, []string{"/x"}}}
			}})
			c := client(t, w)
			r := get(t, c, first+"robots.txt")
			require.Equal(t, tt.status, r.status)
			require.Equal(t, tt.location, r.header.Get("Location"))
			require.True(t, strings.HasPrefix(r.body, tt.body), "%.100s", r.body)
			require.Equal(t, rules, get(t, c, first+"robots-rules.txt").body)
			if tt.mode == RobotsHuge {
				require.Greater(t, len(r.body), hugeRobots-1)
			}
		})
	}
}

func TestRobotsDecideWhatIsReachable(t *testing.T) {
	closed := 0
	for mode, want := range map[RobotsMode]string{
		RobotsRules: "rules", RobotsMissing: "all", RobotsForbidden: "all", RobotsError: "none",
		RobotsRedirect: "rules", RobotsLoop: "all", RobotsTimeout: "none", RobotsHuge: "rules",
		RobotsEmpty: "all",
	} {
		w := start(t, Options{Hosts: 1, Pages: 200, Traits: func(int) Traits {
			return Traits{Robots: Robots{Mode: mode}}
		}})
		switch got := w.Reachable(); want {
		case "all":
			require.Len(t, got, 200, mode)
		case "none":
			require.Empty(t, got, mode)
		default:
			closed = 200 - len(got)
			require.NotContains(t, strings.Join(got, "\n"), privateDir, mode)
		}
	}
	require.Greater(t, closed, 0, "some pages are below /private/")
}

func TestRobotsElsewhereAreUnreachableWithTheirHost(t *testing.T) {
	w := start(t, Options{Hosts: 2, Traits: func(h int) Traits {
		return Traits{Refuse: h == 1, Robots: Robots{Mode: RobotsRedirectHost}}
	}})
	require.Empty(t, w.Reachable())
}

// Where nobody listens, robots.txt is unreachable, and so nothing is allowed, whatever it would say.
func TestNothingIsAllowedOnARefusingHost(t *testing.T) {
	for _, mode := range []RobotsMode{RobotsRules, RobotsMissing, RobotsRedirectHost} {
		w := start(t, Options{Hosts: 2, Traits: func(host int) Traits { return Traits{Robots: Robots{Mode: mode}, Refuse: host == 0} }})
		require.False(t, w.Allows(first), mode)
	}
}

func TestLatencyHasItsDistribution(t *testing.T) {
	w := start(t, Options{Hosts: 1, Traits: func(int) Traits {
		return Traits{Latency: Latency{Median: time.Second, Sigma: 0.5, Slow: time.Hour,
			SlowShare: 0.05}}
	}})
	h := &w.hosts[0]
	var waits []time.Duration
	slow := 0
	for i := range 20000 {
		target := "/" + string(appendInt(nil, i))
		d := w.latency(h, target)
		require.Equal(t, d, w.latency(h, target), "the same URL has the same latency each time")
		if waits = append(waits, d); d == time.Hour {
			slow++
		}
	}
	slices.Sort(waits)
	require.InDelta(t, 0.05, float64(slow)/20000, 0.005)
	at := func(q float64) float64 { return waits[int(q*20000*0.95)].Seconds() }
	require.InDelta(t, 1, at(0.5), 0.03)
	require.InDelta(t, math.Exp(0.5), at(0.8413), 0.06, "one sigma above the median")

	h.traits.Latency = Latency{Median: time.Minute}
	require.Equal(t, time.Minute, w.latency(h, "/"), "without sigma, the latency is constant")
	h.traits.Latency = Latency{}
	require.Zero(t, w.latency(h, "/"))
}

func TestLatencyDelaysResponses(t *testing.T) {
	const wait = 30 * time.Millisecond
	w := start(t, Options{Hosts: 1, Traits: func(int) Traits {
		return Traits{Latency: Latency{Median: wait}}
	}})
	c := client(t, w)
	before := time.Now()
	require.Equal(t, 200, get(t, c, first).status)
	require.GreaterOrEqual(t, time.Since(before), wait)
}

func TestThrottleRejectsEveryNth(t *testing.T) {
	w := start(t, Options{Hosts: 1, Traits: func(int) Traits {
		return Traits{Throttle: Throttle{Every: 3, RetryAfter: 1500 * time.Millisecond}}
	}})
	c := client(t, w)
	var got []int
	for range 7 {
		require.Equal(t, 200, get(t, c, first+"robots.txt").status, "robots.txt is exempt")
		r := get(t, c, first)
		got = append(got, r.status)
		if r.status == 429 {
			require.Equal(t, "2", r.header.Get("Retry-After"), "rounded up")
		}
	}
	require.Equal(t, []int{200, 200, 429, 200, 200, 429, 200}, got)

	w = start(t, Options{Hosts: 1, Traits: func(int) Traits {
		return Traits{Throttle: Throttle{Every: 1, Status: 503}}
	}})
	r := get(t, client(t, w), first)
	require.Equal(t, 503, r.status)
	require.Empty(t, r.header.Get("Retry-After"))
}

func TestGzipIsOfferedNotForced(t *testing.T) {
	w := start(t, Options{Hosts: 1, Traits: func(int) Traits { return Traits{Gzip: true} }})
	c := client(t, w)
	plain := get(t, c, first)
	require.Empty(t, plain.header.Get("Content-Encoding"))
	require.Equal(t, "Accept-Encoding", plain.header.Get("Vary"))
	for accept, want := range map[string]bool{
		"gzip": true, "br, GZIP ; q=0.5": true, "gzip;q=0": false, "gzip;q=0.000": false,
		"gzip;q=1.0": true, "identity": false, "x-gzip": false,
	} {
		r := get(t, c, first, "Accept-Encoding", accept)
		require.Equal(t, want, r.header.Get("Content-Encoding") == "gzip", accept)
		if want {
			z, err := gzip.NewReader(strings.NewReader(r.body))
			require.NoError(t, err)
			body, err := io.ReadAll(z)
			require.NoError(t, err)
			require.Equal(t, plain.body, string(body))
			require.NotEqual(t, plain.header.Get("Etag"), r.header.Get("Etag"))
		}
	}
}

func TestRedirectShare(t *testing.T) {
	w := start(t, Options{Hosts: 1, Pages: 300, Traits: func(int) Traits {
		return Traits{Redirects: 0.25}
	}})
	c := client(t, w)
	through, all := 0, 0
	for page := range w.hosts[0].Pages() {
		for _, to := range references(page, get(t, c, page).body) {
			if all++; strings.HasPrefix(to, first+goDir[1:]) {
				through++
			}
		}
	}
	require.InDelta(t, 0.25, float64(through)/float64(all), 0.05)
	r := get(t, c, first+"r/17")
	require.Equal(t, 301, r.status)
	require.Equal(t, string(w.appendPath(nil, 0, 17)), r.header.Get("Location"))
	for _, bad := range []string{"r/300", "r/-1", "r/x", "r/"} {
		require.Equal(t, 404, get(t, c, first+bad).status, bad)
	}
}

// changing returns a web whose pages change, and its clock.
func changing(t *testing.T, c Change) (*Web, *atomic.Int64) {
	elapsed := new(atomic.Int64)
	w := start(t, Options{Hosts: 1, Traits: func(int) Traits { return Traits{Change: c} },
		Now: func() time.Time { return epoch.Add(time.Duration(elapsed.Load())) }})
	return w, elapsed
}

func TestPagesChangeAsAnnounced(t *testing.T) {
	for _, c := range []Change{
		{Mean: time.Hour},
		{Mean: time.Hour, Periodic: true},
		{Mean: time.Hour / 4, Sigma: 1},
	} {
		w, elapsed := changing(t, c)
		client := client(t, w)
		end := epoch.Add(8 * time.Hour)
		before := get(t, client, first)
		n := 0
		for at := range w.Changes(first, epoch, end) {
			n++
			elapsed.Store(int64(at.Sub(epoch)) - 1)
			require.Equal(t, before.body, get(t, client, first).body, "it must not change early")
			elapsed.Store(int64(at.Sub(epoch)))
			after := get(t, client, first)
			require.NotEqual(t, before.body, after.body)
			require.NotEqual(t, before.header.Get("Etag"), after.header.Get("Etag"))
			require.Equal(t, at.UTC().Format(time.RFC1123)[:25],
				after.header.Get("Last-Modified")[:25])
			require.Equal(t, references(first, before.body), references(first, after.body))
			before = after
		}
		elapsed.Store(int64(8 * time.Hour))
		require.Equal(t, before.body, get(t, client, first).body)
		require.Greater(t, n, 0, "%+v", c)
	}
}

func TestConditionalRequests(t *testing.T) {
	w, elapsed := changing(t, Change{Mean: time.Hour})
	c := client(t, w)
	r := get(t, c, first)
	tag, modified := r.header.Get("Etag"), r.header.Get("Last-Modified")
	later := epoch.Add(time.Hour).Format(time.RFC1123)[:26] + "GMT"
	for _, tt := range []struct {
		name   string
		fields []string
		want   int
	}{
		{"this version's tag", []string{"If-None-Match", tag}, 304},
		{"this version's tag, weak", []string{"If-None-Match", "W/" + tag}, 304},
		{"one of several", []string{"If-None-Match", `"x", ` + tag}, 304},
		{"any version", []string{"If-None-Match", "*"}, 304},
		{"another tag", []string{"If-None-Match", `"x"`}, 200},
		{"this version's date", []string{"If-Modified-Since", modified}, 304},
		{"a later date", []string{"If-Modified-Since", later}, 304},
		{"a far earlier date", []string{"If-Modified-Since", "Mon, 01 Jan 2001 00:00:00 GMT"}, 200},
		{"no date", []string{"If-Modified-Since", "yesterday"}, 200},
		{"the tag decides", []string{"If-None-Match", `"x"`, "If-Modified-Since", modified}, 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := get(t, c, first, tt.fields...)
			require.Equal(t, tt.want, r.status)
			require.Equal(t, tag, r.header.Get("Etag"))
			require.Equal(t, tt.want == 304, r.body == "")
		})
	}
	elapsed.Store(int64(100 * time.Hour))
	require.Equal(t, 200, get(t, c, first, "If-None-Match", tag).status)
	require.Equal(t, 200, get(t, c, first, "If-Modified-Since", modified).status)
}

func TestPoissonChangesAreRandomAtTheirRate(t *testing.T) {
	w, _ := changing(t, Change{Mean: time.Hour})
	const hours = 20000
	var gaps []time.Duration
	last := epoch
	for at := range w.Changes(first, epoch, epoch.Add(hours*time.Hour)) {
		require.True(t, at.After(last))
		gaps = append(gaps, at.Sub(last))
		last = at
	}
	require.InDelta(t, hours, len(gaps), 4*math.Sqrt(hours))
	slices.Sort(gaps)
	for _, q := range []float64{0.1, 0.5, 0.9} { // quantiles of the exponential distribution
		require.InDelta(t, -math.Log(1-q), gaps[int(q*float64(len(gaps)))].Hours(), 0.05)
	}
}

func TestPeriodicChangesAreEvenlySpaced(t *testing.T) {
	w, _ := changing(t, Change{Mean: time.Hour, Periodic: true})
	all := slices.Collect(w.Changes(first, epoch, epoch.Add(100*time.Hour)))
	require.Len(t, all, 100)
	for i := range all[1:] {
		require.Equal(t, time.Hour, all[i+1].Sub(all[i]))
	}
	for range w.Changes(first, epoch, epoch.Add(time.Hour)) {
		break // the iterator must stop
	}
	require.Empty(t, slices.Collect(w.Changes("http://nobody.test/", epoch, epoch.Add(time.Hour))))
}

// last examines one window and between walks through all of them; they must agree.
func TestLastChangeAgreesWithTheList(t *testing.T) {
	r := rng(1)
	for range 2000 {
		p := process{mean: time.Duration(1 + r.below(1000)), periodic: r.below(2) == 0,
			key: rng(r.next())}
		at := time.Duration(r.below(100_000) - 50_000)
		want := time.Duration(math.MinInt64)
		for change := range p.between(at-200*p.mean, at) {
			want = change
		}
		require.Equal(t, want, p.last(at), "%+v at %d", p, at)
	}
}

func TestLongLifeDoesNotOverflow(t *testing.T) {
	for _, mean := range []time.Duration{1, time.Hour, math.MaxInt64} {
		w, elapsed := changing(t, Change{Mean: mean, Sigma: 3})
		for _, at := range []int64{math.MinInt64, -1, 0, math.MaxInt64} {
			elapsed.Store(at)
			v := w.version(0, 0)
			require.False(t, v.modified.After(w.start.Add(clampElapsed(time.Duration(at)))))
		}
	}
}

func TestUnchangingPagesAreOlderThanAnyCrawl(t *testing.T) {
	w := start(t, Options{Hosts: 1})
	for p := range 50 {
		v := w.version(0, p)
		require.False(t, v.modified.After(epoch))
		require.Equal(t, v, w.version(0, p))
	}
	require.Empty(t, slices.Collect(w.Changes(first, epoch, epoch.Add(1e6*time.Hour))))
}
