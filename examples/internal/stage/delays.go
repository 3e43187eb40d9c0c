package stage

import (
	"sync"
	"time"
)

// CrawlDelays stores the Crawl-delays of sites. A host may have several servers, by scheme and
// port, each with a robots.txt: the longest delay applies. The zero CrawlDelays is empty. Its
// methods are safe for concurrent use.
type CrawlDelays struct {
	mu    sync.Mutex
	hosts map[string]map[string]time.Duration // by host and server, if there is one
}

// Set sets the delay of a server, and returns the longest delay of its host.
func (d *CrawlDelays) Set(host, server string, delay time.Duration) (longest time.Duration) {
	d.mu.Lock()
	switch {
	case delay <= 0:
		delete(d.hosts[host], server)
	case d.hosts == nil:
		d.hosts = map[string]map[string]time.Duration{}
		fallthrough
	case d.hosts[host] == nil:
		d.hosts[host] = map[string]time.Duration{}
		fallthrough
	default:
		d.hosts[host][server] = delay
	}
	if len(d.hosts[host]) == 0 {
		delete(d.hosts, host)
	}
	d.mu.Unlock()
	return d.Of(host)
}

// Of returns the longest delay of the servers of a host.
func (d *CrawlDelays) Of(host string) (longest time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, delay := range d.hosts[host] {
		longest = max(longest, delay)
	}
	return longest
}
