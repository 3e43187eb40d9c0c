package stage

import (
	"fmt"
	"strings"
	"sync"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
)

// A Reach says how far from its seeds a crawl may go.
type Reach string

// The reaches, from the narrowest to the widest.
const (
	Page   Reach = "page"   // the seeds alone
	Prefix Reach = "prefix" // what lies in a seed's directory or below
	Host   Reach = "host"   // the seeds' hosts
	Domain Reach = "domain" // the seeds' registrable domains, with all sub-domains
	Any    Reach = "any"    // the whole web
)

// ParseReach reads a reach from the command line.
func ParseReach(s string) (Reach, error) {
	switch r := Reach(s); r {
	case Page, Prefix, Host, Domain, Any:
		return r, nil
	}
	return "", fmt.Errorf("scope %q: want page, prefix, host, domain or any", s)
}

// A Scope is what a crawl's seeds span. Its methods are safe for concurrent use.
type Scope struct {
	reach Reach

	mu   sync.RWMutex
	keys map[string]struct{}
}

// NewScope returns a scope that holds nothing until seeds are added, or everything for [Any].
func NewScope(reach Reach) *Scope {
	return &Scope{reach: reach, keys: map[string]struct{}{}}
}

// Add widens the scope by a seed, given in canonical form.
func (s *Scope) Add(seed string) {
	if s.reach == Any {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[s.key(seed)] = struct{}{}
}

// Holds says whether the URL lies in the scope. Its cost does not grow with the number of seeds.
func (s *Scope) Holds(url string) bool {
	if s.reach == Any {
		return true
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.reach == Prefix {
		return s.below(url)
	}
	_, ok := s.keys[s.key(url)]
	return ok
}

// key returns what two URLs of one scope have in common.
func (s *Scope) key(url string) string {
	switch s.reach {
	case Page:
		return url
	case Prefix:
		path, _, _ := strings.Cut(url, "?")
		return path[:strings.LastIndexByte(path, '/')+1]
	case Domain:
		return weburl.Site(url)
	default:
		return Authority(url)
	}
}

// below looks up each directory on the way to the URL. It requires that s.mu is held.
func (s *Scope) below(url string) bool {
	path, _, _ := strings.Cut(url, "?")
	for i := len(path) - len(pathOf(path)); i < len(path); i++ {
		if path[i] != '/' {
			continue
		}
		if _, ok := s.keys[path[:i+1]]; ok {
			return true
		}
	}
	return false
}
