package stage

import (
	"sync"
	"time"
)

// MaxConcurrency is the most requests that a host may have under way at a time.
const MaxConcurrency = 64

// Several counts the requests to hosts that may have several under way. A scheduler lets the next
// one begin when it is told that all others have arrived: Several tells it only while there are
// fewer than the host may have. The zero Several is ready to use; its methods are safe for
// concurrent use.
type Several struct {
	mu    sync.Mutex
	hosts map[string]*underWay
}

// underWay is what is known of one host.
type underWay struct {
	requests int
	arrived  []func() // what to tell when a request ends
}

// Begin notes a request to a host that may have so many under way. The caller calls arrived when
// the request arrives, which is passed on in time, and done when it is over.
func (s *Several) Begin(
	host string, most int, tell func(time.Time),
) (arrived func(time.Time), done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[host]
	if h == nil {
		h = &underWay{}
		if s.hosts == nil {
			s.hosts = map[string]*underWay{}
		}
		s.hosts[host] = h
	}
	h.requests++
	arrived = func(at time.Time) {
		s.mu.Lock()
		full := h.requests >= most
		if full {
			h.arrived = append(h.arrived, func() { tell(at) })
		}
		s.mu.Unlock()
		if !full {
			tell(at)
		}
	}
	return arrived, func() { s.end(host, h) }
}

// end makes room for one request.
func (s *Several) end(host string, h *underWay) {
	s.mu.Lock()
	tell := h.arrived
	h.arrived = nil
	if h.requests--; h.requests == 0 {
		delete(s.hosts, host)
	}
	s.mu.Unlock()
	for _, tell := range tell {
		tell()
	}
}
