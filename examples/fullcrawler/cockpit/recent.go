package cockpit

import (
	"slices"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
)

// A failure is a visit without a result.
type failure struct {
	Line
	Host string `json:"host"`
	More int    `json:"more"` // earlier failures of the host with the same fate
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

// perSecond counts pages by the second. The zero perSecond is empty. It is not safe for concurrent
// use.
type perSecond struct {
	past [][2]float64 // at most keptSeconds
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
		p.past = append(p.past, p.now)
		p.past = p.past[max(len(p.past)-keptSeconds, 0):]
		p.now = [2]float64{}
		p.at++
	}
	p.at = second
}
