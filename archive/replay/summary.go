package replay

import (
	"cmp"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/archive"
)

// maxHosts bounds the memory of a summary, to about ten megabytes.
const maxHosts = 50_000

// hostCount counts the contents of a host.
type hostCount struct {
	Host            string
	Pages, Versions int
	First, Last     time.Time
}

// summary counts the contents of the archive.
type summary struct {
	Hosts                   []hostCount // by name, those of one domain together
	Pages, Versions, Failed int
	Bytes                   int64 // compressed, without the requests
	First, Last             time.Time
	Cut                     bool // there is more than was counted
}

// summarizer keeps the last summary. Its methods are safe for concurrent use.
type summarizer struct {
	mu    sync.Mutex
	known *summary
	as    archive.Stats // that it was made of
	done  time.Time
	took  time.Duration
}

// rest is how many times as long as it took to make a summary it is shown before a new one is made
// of an archive that grows.
const rest = 20

// of returns a summary of the archive as of now, or of some time before if counting takes long.
// Only one is made at a time.
func (s *summarizer) of(a *archive.Archive, limit int) (*summary, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := a.Stats() // of this process, the only one that can write to the archive
	if s.known != nil && (stats == s.as || time.Since(s.done) < rest*s.took) {
		return s.known, nil
	}
	start := time.Now()
	made, err := summarize(a, limit)
	if err != nil {
		return nil, err
	}
	s.known, s.as, s.done, s.took = made, stats, time.Now(), time.Since(start)
	return made, nil
}

// summarize counts, up to a limit.
func summarize(a *archive.Archive, limit int) (*summary, error) {
	s := &summary{}
	// Not a list, although the index has an order: the ports of a host are not beside each other.
	hosts := map[string]*hostCount{}
	last := ""
	// URLs come one after the other, so that one that differs from the one before is a new one.
	for version, err := range a.All() {
		if err != nil {
			return nil, err
		}
		name := hostOf(version.URL)
		h := hosts[name]
		if s.Versions == limit || h == nil && len(hosts) == maxHosts {
			s.Cut = true
			break
		}
		if h == nil {
			h = &hostCount{Host: name}
			hosts[name] = h
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

// widen makes an interval include a time.
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

// byDomain orders hosts by their labels from the last to the first, as the index does but for
// ports. Those of one site are together then.
func byDomain(a, b *hostCount) int {
	x, y := strings.Split(a.Host, "."), strings.Split(b.Host, ".")
	slices.Reverse(x)
	slices.Reverse(y)
	return cmp.Or(slices.Compare(x, y), cmp.Compare(a.Host, b.Host))
}
