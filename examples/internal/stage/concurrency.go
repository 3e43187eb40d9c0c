package stage

import (
	"sync"
	"time"
)

// MaxConcurrency bounds the requests in flight to a host.
const MaxConcurrency = 64

// Concurrency counts the requests to hosts that may have several in flight. A scheduler starts the
// next request when it is told that all others have arrived. Concurrency tells it only while
// fewer than allowed are in flight. The zero Concurrency is ready to use; its methods are safe for
// concurrent use.
type Concurrency struct {
	mu    sync.Mutex
	hosts map[string]*hostRequests
}

// hostRequests is the state of one host.
type hostRequests struct {
	requests int
	arrived  []func() // to call when a request ends
}

// Begin begins a request to a host that may have up to most in flight. The caller calls arrived
// when the request arrives, and done when it ends. arrived is passed on to tell when there is room.
func (s *Concurrency) Begin(
	host string, most int, tell func(time.Time),
) (arrived func(time.Time), done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[host]
	if h == nil {
		h = &hostRequests{}
		if s.hosts == nil {
			s.hosts = map[string]*hostRequests{}
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
func (s *Concurrency) end(host string, h *hostRequests) {
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
