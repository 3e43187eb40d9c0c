package webtest

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	noise  = regexp.MustCompile(`(?s)<!--.*?-->|<script>.*?</script>`)
	anchor = regexp.MustCompile(`(?is)<a\s[^>]*?\bhref\s*=\s*("[^"]*"|'[^']*'|[^\s>"']+)`)
	base   = regexp.MustCompile(`<base href="([^"]*)">`)
)

// references returns the absolute URLs that a page links to, without fragments.
func references(page, body string) (urls []string) {
	body = noise.ReplaceAllString(body, "")
	from, _ := url.Parse(page)
	if b := base.FindStringSubmatch(body); b != nil {
		from, _ = url.Parse(b[1])
	}
	for _, a := range anchor.FindAllStringSubmatch(body, -1) {
		to, err := from.Parse(html.UnescapeString(strings.Trim(a[1], `"'`)))
		if err == nil && to.Scheme == "http" {
			to.Fragment = ""
			urls = append(urls, to.String())
		}
	}
	return urls
}

// crawler is a minimal well-behaved crawler: breadth-first, with literal prefixes as robots.txt
// rules.
type crawler struct {
	t     *testing.T
	web   *Web
	c     *http.Client
	rules map[string]func(path string) bool
	seen  map[string]bool
	queue []string
	pages []string // fetched URLs of pages
	other []string // other fetched URLs
}

func crawl(t *testing.T, w *Web, seeds ...string) *crawler {
	c := &crawler{
		t: t, web: w, c: client(t, w),
		rules: make(map[string]func(string) bool), seen: make(map[string]bool),
	}
	c.add(seeds)
	for len(c.queue) > 0 {
		next := c.queue[0]
		c.queue = c.queue[1:]
		c.visit(next)
	}
	slices.Sort(c.pages)
	return c
}

func (c *crawler) add(urls []string) {
	for _, u := range urls {
		if !c.seen[u] {
			c.seen[u] = true
			c.queue = append(c.queue, u)
		}
	}
}

func (c *crawler) visit(raw string) {
	u, err := url.Parse(raw)
	require.NoError(c.t, err)
	if h, ok := c.web.Host(u.Host); !ok || c.web.hosts[h.Index].traits.Refuse {
		return
	}
	if !c.allowed(u) {
		return
	}
	r := get(c.t, c.c, raw)
	for r.status == http.StatusTooManyRequests {
		r = get(c.t, c.c, raw)
	}
	if r.status == http.StatusOK && c.web.IsPage(raw) {
		c.pages = append(c.pages, raw)
	} else {
		c.other = append(c.other, raw)
	}
	if location := r.header.Get("Location"); location != "" {
		to, err := u.Parse(location)
		require.NoError(c.t, err)
		c.add([]string{to.String()})
	}
	c.add(references(raw, r.body))
}

// allowed checks the host's robots.txt, which it fetches once. It supports only the part of RFC
// 9309 that the web uses.
func (c *crawler) allowed(u *url.URL) bool {
	if rule, ok := c.rules[u.Host]; ok {
		return rule(u.RequestURI())
	}
	at := "http://" + u.Host + "/robots.txt"
	var r response
	for range 6 {
		r = get(c.t, c.c, at)
		location := r.header.Get("Location")
		if location == "" {
			break
		}
		from, _ := url.Parse(at)
		to, err := from.Parse(location)
		require.NoError(c.t, err)
		at = to.String()
	}
	c.rules[u.Host] = func(path string) bool {
		if r.status != http.StatusOK {
			return r.status < 500
		}
		for line := range strings.SplitSeq(r.body, "\n") {
			prefix, ok := strings.CutPrefix(line, "Disallow: ")
			if ok && strings.HasPrefix(path, prefix) {
				return false
			}
		}
		return true
	}
	return c.rules[u.Host](u.RequestURI())
}

func TestEveryPageIsReachableByLinks(t *testing.T) {
	w := start(t, Options{Hosts: 17, Pages: 40, treeOnly: true,
		Traits: func(int) Traits { return Traits{Robots: Robots{Mode: RobotsEmpty}} }})
	var all []string
	for h := range w.Hosts() {
		all = slices.AppendSeq(all, h.Pages())
	}
	slices.Sort(all)
	require.Len(t, slices.Compact(slices.Clone(all)), 17*40)
	require.Equal(t, all, w.Reachable())
	require.Equal(t, all, crawl(t, w, "http://h00000.vweb.test/").pages)
}

func TestCrawlerGetsExactlyWhatIsReachable(t *testing.T) {
	for seed := range uint64(3) {
		w := start(t, Options{Seed: seed, Hosts: 24, Pages: 30, Traits: oddTraits})
		root := "http://h00000.vweb.test/"
		c := crawl(t, w, root)
		want := w.Reachable(root)
		require.Equal(t, want, c.pages)
		require.Less(t, len(want), 23*30, "some pages must be unreachable")
		require.Greater(t, len(want), 12*30)
		for _, u := range c.other {
			require.Regexp(t, `/r/\d+$|/trap/(away|away/private|chain/\d+)$|/private/away.html$`, u, "only redirects and traps")
		}
	}
}

// oddTraits gives each host a different behavior that affects what is reachable.
func oddTraits(h int) Traits {
	tr := Traits{Gzip: h%2 == 0}
	switch h {
	case 1, 2, 3, 4, 5, 6: // all modes whose responses end
		tr.Robots.Mode = []RobotsMode{RobotsMissing, RobotsForbidden, RobotsError, RobotsRedirect,
			RobotsRedirectHost, RobotsLoop}[h-1]
		tr.Robots.Disallow = []string{"/p1", "/item?id=2"}
	case 7:
		tr.Robots = Robots{Disallow: []string{"/item", "/p2"}}
	case 8:
		tr.Refuse = true
	case 9:
		tr.Redirects = 0.5
	case 10:
		tr.Throttle = Throttle{Every: 3, RetryAfter: time.Second}
	case 11:
		tr.Traps = TrapAway | TrapChain
	case 12:
		tr.Pages = 3
	case 13:
		tr.Robots.Mode = RobotsHuge
	case 14:
		tr.Robots.Mode = RobotsEmpty
	case 15:
		tr.Change = Change{Mean: time.Microsecond}
	}
	return tr
}

func TestReachableFromElsewhere(t *testing.T) {
	w := start(t, Options{Hosts: 2, Pages: 30, treeOnly: true})
	second, _ := w.Host("h00001.vweb.test")
	for _, u := range w.Reachable(second.URL()) {
		require.True(t, strings.HasPrefix(u, second.URL()), "no link of the tree leads back")
	}
	require.Empty(t, w.Reachable("http://nobody.test/", "http://h00000.vweb.test/nothing", ":"))
	require.Equal(t, w.Reachable(), w.Reachable("http://h00000.vweb.test/", second.URL()))
}

func TestReachableThroughTrapsAndThrottles(t *testing.T) {
	closing := Traits{Traps: TrapAway, Robots: Robots{Disallow: []string{"/trap/"}}}
	for _, tt := range []struct {
		name   string
		second Traits // of the host that only the trap of the first host links to
		first  Traits
		want   int // hosts whose front page is reachable
	}{
		{"no trap, so no link", Traits{}, Traits{}, 1},
		{"the trap leads away", Traits{}, Traits{Traps: TrapAway}, 2},
		{"robots.txt excludes the trap", Traits{}, closing, 1},
		{"the second host refuses connections", Traits{Refuse: true}, Traits{Traps: TrapAway}, 1},
		{"all requests throttled", Traits{Throttle: Throttle{Every: 1}}, Traits{Traps: TrapAway}, 1},
		{"every other request is throttled", Traits{Throttle: Throttle{Every: 2}},
			Traits{Traps: TrapAway}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// Links in the tree of hosts only lead down, so the last host has no other outgoing
			// link.
			w := start(t, Options{Hosts: 6, Pages: 1, treeOnly: true,
				Traits: func(h int) Traits {
					switch h {
					case 4:
						return tt.first
					case 5:
						return tt.second
					}
					return Traits{}
				}})
			require.Len(t, w.Reachable("http://h00004.vweb.test/"), tt.want)
		})
	}
}
