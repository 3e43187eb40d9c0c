package cockpit

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// A tally counts what a crawl does. Its methods are safe for concurrent use.
type tally struct {
	start time.Time

	links  atomic.Int64 // and seeds that passed the filters
	opened atomic.Int64 // pages taken from the store
	robots atomic.Int64 // robots.txt answers

	mu      sync.Mutex
	ended   int64 // pages with a fate
	fates   map[stage.Fate]int64
	skipped map[stage.Reason]int64 // links that were not followed
	addrs   map[netip.Addr]struct{}
	bytes   int64 // of bodies, as sent

	seconds  perSecond
	failures failures
	latency  float64 // seconds to the first byte, a mean of recent answers

	interrupted Line // the last one
}

// NewTally returns a Tally that begins now.
func NewTally() *tally {
	return &tally{
		start:   time.Now(),
		fates:   map[stage.Fate]int64{},
		skipped: map[stage.Reason]int64{},
		addrs:   map[netip.Addr]struct{}{},
	}
}

// Resume begins another run, in which what was in flight is taken from the store again.
func (t *tally) Resume() {
	t.links.Store(0) // as the store counts what it adds
	t.mu.Lock()
	defer t.mu.Unlock()
	t.opened.Store(t.ended)
}

// Skip counts a link that was not followed.
func (t *tally) Skip(why stage.Reason) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.skipped[why]++
}

// Discovered counts a link or a seed that passed the filters.
func (t *tally) Discovered() { t.links.Add(1) }

// Open counts a page taken from the store.
func (t *tally) Open() { t.opened.Add(1) }

// Reopen undoes Open: the page is postponed.
func (t *tally) Reopen() { t.opened.Add(-1) }

// End counts the fate of a page in flight.
func (t *tally) End(url string, fate stage.Fate, why string) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended++
	t.fates[fate]++
	t.seconds.turn(now)
	switch {
	case fate.Page():
		t.seconds.now[0]++
	case fate == stage.Unchanged:
		t.seconds.now[1]++
	case fate == stage.Interrupted:
		t.interrupted = Line{URL: url, Why: why}
	case fate.Failed():
		t.failures.add(failure{Line: Line{Time: now, URL: url, Fate: fate, Says: fate.String(), Why: why}})
	}
}

// rates returns the pages of each of the last seconds, without the current one: new or changed
// ones, and unchanged ones.
func (t *tally) rates() [][2]float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seconds.turn(time.Now())
	return append([][2]float64{}, t.seconds.past...)
}

// recent returns the latest failures, the latest first.
func (t *tally) recent() []failure {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := append([]failure{}, t.failures...)
	slices.Reverse(all)
	return all
}

// reason returns a failure that explains why a crawl got no page, if there is one. If the crawl was
// not stopped, an interrupted visit is a local failure, such as a proxy that does not answer.
func (t *tally) reason(stopped bool) (f Line, found bool) {
	if failed := t.recent(); len(failed) > 0 {
		return failed[0].Line, true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.interrupted, !stopped && t.interrupted.URL != ""
}

// Robots counts a response to a request for robots.txt.
func (t *tally) Robots() { t.robots.Add(1) }

// recentAnswers is how many answers the mean latency is mostly of: each counts a little less than the next.
const recentAnswers = 100

// Got counts a response that is in the archive, if there is one.
func (t *tally) Got(addr netip.Addr, bytes int, latency time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.latency == 0 {
		t.latency = latency.Seconds()
	}
	t.latency += (latency.Seconds() - t.latency) / recentAnswers
	t.bytes += int64(bytes)
	t.addrs[addr] = struct{}{}
}

// firstByte returns the mean of the latest latencies in seconds, or 0 without any.
func (t *tally) firstByte() float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.latency
}

// A summary has the counts of a tally at one instant.
type summary struct {
	took           time.Duration
	Fates          map[stage.Fate]int64
	Skipped        map[stage.Reason]int64
	Pages, Waiting int64
	addrs          int
	links          int64
	robots, Bytes  int64
}

// Sum returns the counts so far. Items without a fate count as left over.
func (t *tally) Sum() summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := summary{
		took:    time.Since(t.start),
		Fates:   maps.Clone(t.fates),
		Skipped: maps.Clone(t.skipped),
		Waiting: t.opened.Load() - t.ended,
		addrs:   len(t.addrs),
		links:   t.links.Load(),
		robots:  t.robots.Load(),
		Bytes:   t.bytes,
	}
	for fate, n := range t.fates {
		if fate.Page() {
			s.Pages += n
		}
	}
	if s.Waiting > 0 {
		s.Fates[stage.LeftOver] = s.Waiting
	}
	return s
}
