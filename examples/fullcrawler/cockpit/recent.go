package cockpit

import (
	"slices"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// A failure is a visit without a result.
type failure struct {
	Time time.Time  `json:"time"`
	URL  string     `json:"url"`
	Fate stage.Fate `json:"fate"` // a code
	Says string     `json:"says"` // the same in words
	Why  string     `json:"why"`
	Host string     `json:"host"`
	More int        `json:"more"` // earlier failures of the host with the same fate
}

// failures are the latest failures, the latest last: one for each host and fate, so that a host that
// fails all the time hides no other. The zero failures is empty. It is not safe for concurrent use.
type failures []failure

// keptFailures is the number of failures that the live page shows.
const keptFailures = 50

func (l *failures) add(f failure) {
	f.Host = weburl.Host(f.URL)
	if i := slices.IndexFunc(*l, func(old failure) bool {
		return old.Host == f.Host && old.Fate == f.Fate
	}); i >= 0 {
		f.More = (*l)[i].More + 1
		*l = slices.Delete(*l, i, i+1)
	} else if len(*l) == keptFailures {
		*l = slices.Delete(*l, 0, 1)
	}
	*l = append(*l, f)
}

// A ring keeps the latest values. The zero ring is empty. It is not safe for concurrent use.
type ring[T any] struct {
	values []T
	next   int
}

func (r *ring[T]) add(v T, most int) {
	if len(r.values) < most {
		r.values = append(r.values, v)
		return
	}
	r.values[r.next] = v
	r.next = (r.next + 1) % most
}

// all returns a copy that is not nil, the oldest first.
func (r *ring[T]) all() []T {
	return append(append(make([]T, 0, len(r.values)), r.values[r.next:]...), r.values[:r.next]...)
}

// perSecond counts pages by the second. The zero perSecond is empty. It is not safe for concurrent
// use.
type perSecond struct {
	past ring[[2]float64]
	now  [2]float64
	at   int64
}

// keptSeconds is the period over which rates are computed.
const keptSeconds = 300

// turn closes the seconds before now.
func (p *perSecond) turn(now time.Time) {
	second := now.Unix()
	if p.at == 0 {
		p.at = second
	}
	for skipped := 0; p.at < second && skipped < keptSeconds; skipped++ {
		p.past.add(p.now, keptSeconds)
		p.now = [2]float64{}
		p.at++
	}
	p.at = second
}

// latencies has the latest latencies of servers. The zero latencies is empty. Its methods are safe
// for concurrent use.
type latencies struct {
	mu     sync.Mutex
	latest ring[time.Duration]
}

func (l *latencies) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latest.add(d, 1000)
}

// median returns the median of the latest ones in seconds, or 0 without any.
func (l *latencies) median() float64 {
	l.mu.Lock()
	all := l.latest.all()
	l.mu.Unlock()
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2].Seconds()
}
