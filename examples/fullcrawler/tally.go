package main

import (
	"net/netip"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// A tally counts what a crawl does. Its methods are safe for concurrent use.
type tally struct {
	start time.Time

	mu      sync.Mutex
	opened  int64 // items admitted
	ended   int64 // of them, those with a fate
	fates   map[stage.Fate]int64
	skipped map[stage.Reason]int64 // links that were not admitted
	byHost  map[string]int         // items admitted of each host
	addrs   map[netip.Addr]struct{}
	files   int64 // robots.txt answers
	bytes   int64 // of bodies, as sent
}

func newTally() *tally {
	return &tally{
		start:   time.Now(),
		fates:   map[stage.Fate]int64{},
		skipped: map[stage.Reason]int64{},
		byHost:  map[string]int{},
		addrs:   map[netip.Addr]struct{}{},
	}
}

// skip counts a link that was not admitted.
func (t *tally) skip(why stage.Reason) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.skipped[why]++
}

// open admits an item of a host. If there is no room for it, it returns the fate to end it with.
func (t *tally) open(host string, perHost int, limit int64) stage.Fate {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.opened++
	switch {
	case perHost > 0 && t.byHost[host] >= perHost:
		return stage.HostFull
	case t.opened-t.ended > limit:
		return stage.QueueFull
	}
	t.byHost[host]++
	return ""
}

// end gives an admitted item its fate.
func (t *tally) end(fate stage.Fate) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended++
	t.fates[fate]++
}

// robots counts an answer to a request for robots.txt.
func (t *tally) robots() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.files++
}

// kept counts an answer that is in the archive.
func (t *tally) kept(addr netip.Addr, bytes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes += int64(bytes)
	t.addrs[addr] = struct{}{}
}

// A summary is what a tally had counted at one instant.
type summary struct {
	took           time.Duration
	fates          map[stage.Fate]int64
	skipped        map[stage.Reason]int64
	pages, waiting int64
	hosts, addrs   int
	robots, bytes  int64
}

// sum returns the counts so far. Items without a fate count as left over.
func (t *tally) sum() summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := summary{
		took:    time.Since(t.start),
		fates:   map[stage.Fate]int64{},
		skipped: map[stage.Reason]int64{},
		waiting: t.opened - t.ended,
		hosts:   len(t.byHost),
		addrs:   len(t.addrs),
		robots:  t.files,
		bytes:   t.bytes,
	}
	for fate, n := range t.fates {
		s.fates[fate] = n
		if fate.Page() {
			s.pages += n
		}
	}
	for why, n := range t.skipped {
		s.skipped[why] = n
	}
	if s.waiting > 0 {
		s.fates[stage.LeftOver] = s.waiting
	}
	return s
}
