package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/internal/memnet"
)

// A health says how a host of a randomWeb answers.
type health int

const (
	well     health = iota
	flaky           // now and then it answers 503 with a Retry-After
	away            // 503 with a day's Retry-After, but for the robots.txt
	hidden          // its robots.txt is a 503
	dead            // it refuses connections
	mute            // it does not answer them
	nameless        // its name servers do not answer
)

// A randomHost is one host of a randomWeb. Its pages form a tree, in which every page of the site
// has a link.
type randomHost struct {
	name    string
	tenant  string // itself, or all hosts of its site at one address: their owner can have any number
	addr    netip.Addr
	health  health
	pages   int
	made    int // pages that do not exist, to which other sites link
	latency time.Duration
	delay   time.Duration // its Crawl-delay
	mapped  bool          // it has a sitemap with all pages
}

// A webRequest is one that a server got.
type webRequest struct {
	host, url  string
	began, end time.Time
	status     int
}

// A randomWeb has few or many hosts, of any size and health, that link to each other. It knows which
// links a crawler has got and when, and which requests it has made.
type randomWeb struct {
	hosts []*randomHost
	names map[string]*randomHost
	seeds []string

	tenants map[string]*randomHost // the slowest host of each

	mu        sync.Mutex
	announced map[string]time.Time // URLs that may be fetched, by when a crawler learned them
	log       []webRequest
	requests  map[string]int // by host
}

// newRandomWeb returns the web of a seed.
func newRandomWeb(seed uint64) *randomWeb {
	r := rand.New(rand.NewPCG(seed, 49))
	w := &randomWeb{names: map[string]*randomHost{}, announced: map[string]time.Time{}, requests: map[string]int{}}
	count := 4 + r.IntN([]int{12, 80}[r.IntN(2)])
	farm := r.IntN(3) * r.IntN(count) / 4 // hosts of one site at one address
	sick, slow, big := r.IntN(3), r.IntN(4), 1+r.IntN(4)
	for n := range count {
		h := &randomHost{
			name: fmt.Sprintf("h%d.test", n), addr: apart(fmt.Sprintf("h%d.", n)), pages: 1 + r.IntN(90),
			mapped: r.IntN(6) == 0,
		}
		switch {
		case n >= count-farm:
			h.name, h.addr = fmt.Sprintf("n%d.farm.test", n), apart("h9000.")
		case n > 0 && r.IntN(8) == 0:
			h.addr = w.hosts[r.IntN(n)].addr // a neighbor
		}
		if r.IntN(count) < big {
			h.pages = 150 + r.IntN(300)
		}
		if n > 0 && r.IntN(8) < sick {
			h.health = 1 + health(r.IntN(int(nameless)))
		}
		if r.IntN(8) < slow {
			h.latency = time.Duration(r.IntN(8000)) * time.Millisecond
			h.delay = time.Duration(r.IntN(3)) * 20 * time.Second
		}
		if r.IntN(4) == 0 {
			h.made = r.IntN(200)
		}
		w.hosts = append(w.hosts, h)
		w.names[h.name] = h
		if n == 0 || r.IntN(2) == 0 {
			w.seeds = append(w.seeds, "http://"+h.name+"/")
		}
	}
	w.tenants = map[string]*randomHost{}
	for _, h := range w.hosts {
		if h.tenant = h.name; strings.HasSuffix(h.name, ".farm.test") {
			h.tenant = "farm.test"
		}
		if slowest := w.tenants[h.tenant]; slowest == nil || h.latency > slowest.latency {
			w.tenants[h.tenant] = h
		}
	}
	w.hosts[0].health, w.hosts[0].pages = well, max(w.hosts[0].pages, count) // it leads to all others
	w.announce(w.seeds...)
	return w
}

// announce says that a crawler knows of URLs from now on.
func (w *randomWeb) announce(urls ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, url := range urls {
		if _, known := w.announced[url]; !known && !strings.Contains(url, "/edit/") {
			w.announced[url] = time.Now()
		}
	}
}

// page returns the URL of a page of a host. The first one is at its root.
func (h *randomHost) page(n int) string {
	if n == 0 {
		return "http://" + h.name + "/"
	}
	return fmt.Sprintf("http://%s/p/%d", h.name, n)
}

// pace returns the time between two requests to a host.
func (h *randomHost) pace(delay time.Duration) time.Duration {
	return h.latency + max(delay, h.delay, 5*h.latency)
}

// slowest returns the longest latency at an address.
func (w *randomWeb) slowest(addr netip.Addr) (latency time.Duration) {
	for _, h := range w.hosts {
		if h.addr == addr {
			latency = max(latency, h.latency)
		}
	}
	return latency
}

// hostOf returns the host of a URL.
func (w *randomWeb) hostOf(url string) *randomHost {
	name, _, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	return w.names[name]
}

// links returns the links of a page: to its children, to some page of the site, to one that is
// disallowed, and to other sites.
func (w *randomWeb) links(h *randomHost, n int) (links []string) {
	for child := 5*n + 1; child <= 5*n+5 && child < h.pages; child++ {
		links = append(links, h.page(child))
	}
	links = append(links, h.page(n/3), fmt.Sprintf("http://%s/edit/%d", h.name, n))
	if h == w.hosts[0] && n < len(w.hosts) {
		links = append(links, w.hosts[n].page(0))
	}
	r := rand.New(rand.NewPCG(uint64(n), uint64(len(h.name))))
	for range 3 {
		other := w.hosts[r.IntN(len(w.hosts))]
		links = append(links, other.page(r.IntN(other.pages)))
		if other.made > 0 && other != h {
			for range 5 {
				links = append(links, fmt.Sprintf("http://%s/made-up/%d", other.name, r.IntN(other.made)))
			}
		}
	}
	return links
}

// ServeHTTP answers for all hosts.
func (w *randomWeb) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	h, began := w.names[r.Host], time.Now()
	time.Sleep(h.latency)
	status, links := w.answer(to, h, r.URL.Path)
	w.announce(links...)
	w.record(webRequest{h.name, "http://" + r.Host + r.URL.RequestURI(), began, time.Now(), status})
}

func (w *randomWeb) record(r webRequest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, r)
}

// count counts a request to a host, and returns how many it had before.
func (w *randomWeb) count(h *randomHost) (before int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests[h.name]++
	return w.requests[h.name] - 1
}

// answer writes a response, and returns the links in it.
func (w *randomWeb) answer(to http.ResponseWriter, h *randomHost, path string) (status int, links []string) {
	var n int
	_, err := fmt.Sscanf(path, "/p/%d", &n)
	requests := w.count(h)
	switch {
	case path == "/robots.txt" && h.health != hidden:
		fmt.Fprintf(to, "User-agent: *\nDisallow: /edit/\nCrawl-delay: %g\n", h.delay.Seconds())
		if h.mapped {
			fmt.Fprintf(to, "Sitemap: http://%s/map.txt\n", h.name)
		}
		return http.StatusOK, nil
	case h.health == away || h.health == hidden:
		to.Header().Set("Retry-After", "86400")
		to.WriteHeader(http.StatusServiceUnavailable)
		return http.StatusServiceUnavailable, nil
	case h.health == flaky && requests%9 == 5:
		to.Header().Set("Retry-After", "100")
		to.WriteHeader(http.StatusServiceUnavailable)
		return http.StatusServiceUnavailable, nil
	case path == "/map.txt" && h.mapped:
		for n := range h.pages {
			links = append(links, h.page(n))
		}
		fmt.Fprint(to, strings.Join(links, "\n"))
		return http.StatusOK, links
	case path != "/" && (err != nil || n >= h.pages):
		to.WriteHeader(http.StatusNotFound)
		return http.StatusNotFound, nil
	}
	links = w.links(h, n)
	to.Header().Set("Content-Type", "text/html")
	fmt.Fprintf(to, "<title>%d</title>", n)
	for _, link := range links {
		fmt.Fprintf(to, "<a href=%s>x</a>", link)
	}
	return http.StatusOK, links
}

// network starts the web.
func (w *randomWeb) network(t *testing.T) stage.Network {
	t.Helper()
	mem, silent, open := memnet.New(), map[string]bool{}, map[string]bool{}
	for _, h := range w.hosts {
		switch h.health {
		case dead, nameless:
			continue
		case mute:
			silent[h.addr.String()] = true
		}
		open[h.addr.String()] = true
	}
	serveOn(t, mem, w, slices.Collect(maps.Keys(open))...)
	return stage.Network{
		Resolve: func(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
			if h := w.names[host]; h.health != nameless {
				return []netip.Addr{h.addr}, time.Hour, nil
			}
			<-ctx.Done()
			return nil, 0, &net.DNSError{Err: "no answer", Name: host, IsTimeout: true}
		},
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			host, _, _ := net.SplitHostPort(addr)
			if !silent[host] {
				return mem.Dial(ctx, network, addr)
			}
			began := time.Now()
			<-ctx.Done()
			w.record(webRequest{"", "", began, time.Now(), 0})
			return nil, ctx.Err()
		},
	}
}

// sound returns the hosts whose pages can all be fetched, by their names.
func (w *randomWeb) sound() map[string]*randomHost {
	sound := maps.Clone(w.names)
	maps.DeleteFunc(sound, func(_ string, h *randomHost) bool {
		return h.health > flaky || slices.ContainsFunc(w.hosts, func(other *randomHost) bool {
			return other.addr == h.addr && other.health > flaky
		})
	})
	return sound
}
