package urlfilter

import (
	"fmt"
	"strings"
	"sync"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
)

// A Reach is how far from its seeds a crawl may go. It can be a flag: see [flag.TextVar]. Like
// other plain values, it is not safe for concurrent use.
type Reach string

// The reaches, from the narrowest to the widest.
const (
	Page   Reach = "page"   // the seeds themselves
	Prefix Reach = "prefix" // everything in or below a seed's directory
	Host   Reach = "host"   // the seeds' hosts and ports; a name with the root's dot is another host
	Domain Reach = "domain" // the seeds' registrable domains, with all hosts
	Any    Reach = "any"    // the whole web
)

// MarshalText returns the reach as it is.
func (r Reach) MarshalText() ([]byte, error) { return []byte(r), nil }

// UnmarshalText accepts the name of a reach.
func (r *Reach) UnmarshalText(text []byte) error {
	switch reach := Reach(text); reach {
	case Page, Prefix, Host, Domain, Any:
		*r = reach
		return nil
	}
	return fmt.Errorf("urlfilter: scope %q: want page, prefix, host, domain or any", text)
}

// A Scope is the part of the web that seeds span. The zero Scope is the whole web, as is a nil
// Scope. Its methods are safe for concurrent use.
type Scope struct {
	// Reach must not change after the first Add. "" means Any.
	Reach Reach

	mu      sync.RWMutex
	keys    map[string]struct{}
	longest int // of keys
}

func (s *Scope) all() bool { return s == nil || s.Reach == Any || s.Reach == "" }

// Add adds a seed to the scope.
func (s *Scope) Add(seed string) {
	if s.all() {
		return
	}
	key := s.key(seed)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys == nil {
		s.keys = map[string]struct{}{}
	}
	s.keys[key] = struct{}{}
	s.longest = max(s.longest, len(key))
}

// Holds reports whether a URL is in the scope. Its cost does not depend on the number of seeds.
func (s *Scope) Holds(url string) bool {
	if s.all() {
		return true
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.Reach == Prefix {
		return s.holdsDirectory(url)
	}
	_, found := s.keys[s.key(url)]
	return found
}

// key returns the part that all URLs in the scope of one seed have in common.
func (s *Scope) key(url string) string {
	path, _, _ := strings.Cut(url, "?")
	switch s.Reach {
	case Page:
		return url
	case Prefix:
		return path[:strings.LastIndexByte(path, '/')+1]
	case Domain:
		return weburl.Site(url)
	}
	return authority(url)
}

// holdsDirectory looks up the URL's parent directories, except those longer than all keys: hashing
// all of them would take quadratic time. It requires that s.mu is held.
func (s *Scope) holdsDirectory(url string) bool {
	path, _, _ := strings.Cut(url, "?")
	for i := len(path) - len(afterHost(path)); i < min(len(path), s.longest); i++ {
		if path[i] != '/' {
			continue
		}
		if _, found := s.keys[path[:i+1]]; found {
			return true
		}
	}
	return false
}

// authority returns the host and the port.
func authority(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return rest
}

// afterHost returns the path and the query.
func afterHost(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	return rest[len(authority(url)):]
}
