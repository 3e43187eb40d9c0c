package stage

import (
	"sync"
	"time"
)

// MaxConcurrency bounds the requests in flight to a host.
const MaxConcurrency = 64

// Several counts the requests to hosts that may have several in flight. A scheduler starts the next
// one when it is told that all others have arrived. Several tells it only while there are fewer
// than allowed. The zero Several is ready to use; its methods are safe for concurrent use.
type Several struct {
	mu    sync.Mutex
	hosts map[string]*underWay
}

// underWay is the state of one host.
type underWay struct {
	requests int
	arrived  []func() // to call when a request ends
}

// Begin begins a request to a host that may have up to most in flight. The caller calls arrived
// when the request arrives, which is passed on in time, and done when it ends.
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
