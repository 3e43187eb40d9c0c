package replay

import (
	"cmp"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/archive"
)

// maxHosts and maxHostName bound the memory of a summary, to about twenty megabytes. A longer name is
// that of no host in the DNS.
const maxHosts, maxHostName = 50_000, 255

// hostCount counts the contents of a host.
type hostCount struct {
	Host            string
	Pages, Versions int
	First, Last     time.Time
}

// summary counts the contents of the archive.
type summary struct {
	Hosts                   []hostCount // by name, grouped by domain
	Pages, Versions, Failed int
	Bytes                   int64 // compressed, without the requests
	First, Last             time.Time
	Cut                     bool // not everything was counted
}

// summarizer keeps the last summary. Its methods are safe for concurrent use.
type summarizer struct {
	mu    sync.Mutex
	known *summary
	until time.Time // how long it is used
}

// reuse bounds the time spent on summaries of an archive, which may grow at any time: a summary is
// reused for this many times the duration of its counting.
const reuse = 20

// of returns a summary of the archive, which may be old if counting takes long. Only one is counted
// at a time.
func (s *summarizer) of(a *archive.Archive, limit int) (*summary, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	start := time.Now()
	if s.known != nil && start.Before(s.until) {
		return s.known, nil
	}
	made, err := summarize(a, limit)
	if err != nil {
		return nil, err
	}
	s.known, s.until = made, time.Now().Add(reuse*time.Since(start))
	return made, nil
}

// summarize counts up to limit versions.
func summarize(a *archive.Archive, limit int) (*summary, error) {
	s := &summary{}
	// A map, because the ports of a host are not adjacent in the index.
	hosts := map[string]*hostCount{}
	last := ""
	// The versions of a URL are adjacent, so a URL that differs from the previous one is new.
	for version, err := range a.All() {
		if err != nil {
			return nil, err
		}
		if version.Method != http.MethodGet || version.Range != "" {
			continue // no listing has it
		}
		name := hostOf(version.URL)
		if len(name) > maxHostName {
			name = "" // no web address
		}
		h := hosts[name]
		if s.Versions == limit || h == nil && len(hosts) == maxHosts {
			s.Cut = true
			break
		}
		if h == nil {
			h = &hostCount{Host: strings.Clone(name)} // and not the whole URL
			hosts[h.Host] = h
		}
		fresh := version.URL != last
		last = version.URL
		s.count(h, &version, fresh)
	}
	for _, h := range slices.SortedFunc(maps.Values(hosts), byDomain) {
		s.Hosts = append(s.Hosts, *h)
	}
	return s, nil
}

func (s *summary) count(h *hostCount, version *archive.Version, fresh bool) {
	s.Versions++
	h.Versions++
	s.Bytes += version.Location.Length
	if fresh {
		s.Pages++
		h.Pages++
	}
	if version.Kind == archive.Failed {
		s.Failed++
	}
	s.First, s.Last = widen(s.First, s.Last, version.Time)
	h.First, h.Last = widen(h.First, h.Last, version.Time)
}

// widen extends an interval to include a time.
func widen(first, last, t time.Time) (time.Time, time.Time) {
	if first.IsZero() || t.Before(first) {
		first = t
	}
	if last.IsZero() || t.After(last) {
		last = t
	}
	return first, last
}

// hostOf returns the host of a URL without its port, or "" if it has none.
func hostOf(url string) string {
	_, rest, found := strings.Cut(url, "://")
	if !found {
		return ""
	}
	authority := rest[:len(rest)-len(strings.TrimLeftFunc(rest, func(r rune) bool {
		return r != '/' && r != '?' && r != '#'
	}))]
	if host, _, err := net.SplitHostPort(authority); err == nil {
		if strings.Contains(host, ":") {
			return "[" + host + "]"
		}
		return host
	}
	return authority
}

// byDomain orders hosts by their labels from the last to the first, as the index does except for
// ports. This groups the hosts of a site.
func byDomain(a, b *hostCount) int {
	x, y := strings.Split(a.Host, "."), strings.Split(b.Host, ".")
	slices.Reverse(x)
	slices.Reverse(y)
	return cmp.Or(slices.Compare(x, y), cmp.Compare(a.Host, b.Host))
}
