package main

import (
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch/webtest"
)

// The web of the soak: honest hosts on few addresses, and others that make a crawl grow, wait or
// fail.
const (
	soakHosts   = 40
	soakAddrs   = 20
	soakDelay   = 200 * time.Millisecond
	soakPace    = 2000
	crowdDelay  = 5 * time.Second // the Crawl-delay of the crowd
	crowdHosts  = 300
	farmHosts   = 2000
	farmPages   = 20 // of each host of both farms
	crowdBeside = 2  // host that shares its address with the crowd
	farmBeside  = 3
)

// oddHosts are the suffixes of the names of all other hosts.
var oddHosts = []string{"wide.test", "unreadable.test", "goaway.test", "-crowd.org", ".farm.test"}

// A soakWeb has two farms: the hosts of one share a domain, and each host of the crowd has its own.
// Both are at addresses of honest hosts.
type soakWeb struct {
	*webtest.Web
	witness *witness
	names   []string     // of the hosts with handlers, in order
	goaways atomic.Int64 // sent over HTTP/2
}

func newSoakWeb(t *testing.T) *soakWeb {
	s := &soakWeb{witness: newWitness()}
	handlers := map[string]http.Handler{
		"wide.test": http.HandlerFunc(wide), "unreadable.test": http.HandlerFunc(unreadable),
		"goaway.test": http.HandlerFunc(s.goaway),
	}
	for n := range crowdHosts {
		handlers[crowdName(n)] = http.HandlerFunc(crowd)
	}
	for n := range farmHosts {
		handlers[farmName(n)] = http.HandlerFunc(farm)
	}
	s.names = slices.Sorted(maps.Keys(handlers))
	clock := stage.Clock{Began: time.Now(), Pace: soakPace}
	web, err := webtest.Start(webtest.Options{
		Seed: 32, Hosts: soakHosts, Addrs: soakAddrs, Pages: 30, Now: clock.Now, NoLog: true, LogTSV: s.witness,
		Traits: s.traits, Handlers: handlers, TLS: true,
	})
	require.NoError(t, err)
	s.Web = web
	s.witness.crowdAt = s.addrOf(crowdBeside).String()
	return s
}

func crowdName(n int) string { return fmt.Sprintf("n%d-crowd.org", n) }

func farmName(n int) string { return fmt.Sprintf("n%d.farm.test", n) }

func (s *soakWeb) addrOf(host int) netip.Addr {
	h, _ := s.Host(fmt.Sprintf("h%05d.vweb.test", host))
	return h.Addr
}

// traits puts the hosts of the two farms at the address of an honest host.
func (s *soakWeb) traits(host int) webtest.Traits {
	if host < soakHosts {
		return soakTraits(host)
	}
	for end, beside := range map[string]int{"-crowd.org": crowdBeside, ".farm.test": farmBeside} {
		if strings.HasSuffix(s.names[host-soakHosts], end) {
			return webtest.Traits{Lookup: func(int) ([]netip.Addr, error) {
				return []netip.Addr{s.addrOf(beside)}, nil
			}}
		}
	}
	return webtest.Traits{}
}

func soakTraits(host int) webtest.Traits {
	traits := webtest.Traits{
		Gzip: host%2 == 0, Redirects: 0.1,
		Change: webtest.Change{Mean: 10 * 24 * time.Hour, Sigma: 1, Periodic: host%4 == 0},
	}
	switch host % 8 {
	case 1:
		traits.Sitemap = webtest.Sitemap{Orphans: 5, Index: true}
	case 3:
		traits.Robots.CrawlDelay = time.Second
	case 5:
		traits.Traps = webtest.TrapLoop | webtest.TrapBroken | webtest.TrapBomb
	}
	return traits
}

// links writes links to pages of some hosts. The page determines which.
func links(w io.Writer, r *http.Request, hosts int, name func(int) string) {
	sum := fnv.New32()
	_, _ = io.WriteString(sum, r.Host+r.URL.Path) // it never fails
	at := int(sum.Sum32() >> 1)
	for i := range 60 {
		fmt.Fprintf(w, "<a href=https://%s/%d>", name((at+i*7919)%hosts), (at+i)%farmPages)
	}
}

func crowd(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		fmt.Fprintf(w, "User-agent: *\nCrawl-delay: %g\n", crowdDelay.Seconds())
		return
	}
	w.Header().Set("Content-Type", "text/html")
	links(w, r, crowdHosts, crowdName)
}

func farm(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html")
	links(w, r, farmHosts, farmName)
}

// wide has 50,000 links on each page, and no two pages share one.
func wide(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html")
	for n := range 50_000 {
		fmt.Fprintf(w, "<a href=%s/%d>", strings.TrimSuffix(r.URL.Path, "/"), n)
	}
}

func unreadable(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Encoding", "gzip")
	_, _ = io.WriteString(w, "not gzip at all")
}

// goaway ends every third connection with a GOAWAY, into which HTTP/2 turns this field.
func (s *soakWeb) goaway(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html")
	if r.ProtoMajor == 2 && time.Now().UnixNano()/1000%3 == 0 {
		s.goaways.Add(1)
		w.Header().Set("Connection", "close")
	}
	if r.URL.Path == "/robots.txt" {
		http.NotFound(w, r)
		return
	}
	for n := range 50 {
		fmt.Fprintf(w, "<a href=/%d>", n)
	}
	fmt.Fprint(w, time.Now().UnixNano()) // it always changes, and is visited often
}
