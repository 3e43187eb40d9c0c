package stage

import (
	"strings"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
)

// maxPortHosts bounds the hosts that Ports remembers.
const maxPortHosts = 100_000

// Ports remembers which ports of a host accept requests. A closed port says nothing about the pages
// of another one, so the host needs no back-off for it. The zero Ports is ready to use; its methods
// are safe for concurrent use.
type Ports struct {
	mu    sync.Mutex
	hosts map[string]portsOf
}

// portsOf is the state of one host.
type portsOf struct {
	open, closed portSet
	spared       time.Time // when a closed port last did not count against the host
}

// A portSet is a set of ports: those of the two schemes, and all others as one.
type portSet uint8

func portOf(url string) portSet {
	authority := Authority(url)
	switch {
	case strings.LastIndexByte(authority, ':') > strings.LastIndexByte(authority, ']'):
		return 4
	case strings.HasPrefix(url, "https:"):
		return 2
	}
	return 1
}

// Answered records that the URL's port accepted a request.
func (p *Ports) Answered(url string) {
	port := portOf(url)
	p.change(url, func(h *portsOf) {
		h.open |= port
		h.closed &^= port
	})
}

// Refused records that the URL's port did not, and reports whether only this port is closed: the
// others have not refused as well, and this one is not the only one that ever accepted a request.
// It reports that once in a while only, since attempts at a closed port are a burden to the host.
func (p *Ports) Refused(url string, now time.Time, while time.Duration) (own bool) {
	port := portOf(url)
	p.change(url, func(h *portsOf) {
		h.closed |= port
		gone := h.open == port
		own = h.closed == port && !gone && (h.spared.IsZero() || now.Sub(h.spared) >= while)
		if own {
			h.spared = now
		}
	})
	return own
}

func (p *Ports) change(url string, change func(*portsOf)) {
	host := weburl.Host(url)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hosts == nil {
		p.hosts = map[string]portsOf{}
	}
	known, ok := p.hosts[host]
	before := known
	if change(&known); known == before {
		return
	}
	if !ok {
		makeRoom(p.hosts, maxPortHosts)
		host = strings.Clone(host) // a substring of a URL, one per page
	}
	p.hosts[host] = known
}
