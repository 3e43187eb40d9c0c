package stage

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/hostcache"
	"github.com/spinneret-go/spinneret/revisit"
)

// A Rhythm is what visits have shown of a host: when it publishes, and how reliable its sitemaps
// are. The zero Rhythm is that of a host that was never visited. It is not safe for concurrent use.
type Rhythm struct {
	Pulse revisit.Pulse
	Hints revisit.Hints
}

// keptRhythms is how long the rhythm of a host without visits is kept.
const keptRhythms = 400 * 24 * time.Hour

// pulseSize is the length of an encoded revisit.Pulse.
const pulseSize = 64

// AppendBinary appends the Pulse and the Hints, 80 bytes. The error is always nil.
func (r Rhythm) AppendBinary(b []byte) ([]byte, error) {
	b, _ = r.Pulse.AppendBinary(b) // neither fails
	return r.Hints.AppendBinary(b)
}

// UnmarshalBinary is the inverse of AppendBinary. The error wraps revisit.ErrCorrupt.
func (r *Rhythm) UnmarshalBinary(b []byte) error {
	if len(b) < pulseSize {
		return fmt.Errorf("stage: rhythm of %d bytes: %w", len(b), revisit.ErrCorrupt)
	}
	var read Rhythm
	if err := read.Pulse.UnmarshalBinary(b[:pulseSize]); err != nil {
		return err
	}
	if err := read.Hints.UnmarshalBinary(b[pulseSize:]); err != nil {
		return err
	}
	*r = read
	return nil
}

// Rhythms stores the rhythms of many hosts, in a bounded number of bytes. Its methods are safe for
// concurrent use.
type Rhythms struct {
	Hosts *hostcache.Cache[Rhythm] // set it first

	mu      sync.Mutex // held to change one
	changed int64      // visits since the last Save
}

// Save writes all rhythms to the file.
func (r *Rhythms) Save() error {
	r.mu.Lock()
	r.changed = 0
	r.mu.Unlock()
	return r.Hosts.Save()
}

// Changed returns how many visits there were since the last Save, and how many hosts it would write.
func (r *Rhythms) Changed() (visits, hosts int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed, int64(r.Hosts.Len())
}

// Of returns the rhythm of a host.
func (r *Rhythms) Of(host string) Rhythm {
	rhythm, _ := r.Hosts.Get(host)
	return rhythm
}

// Observe adds a visit to the rhythm of the page's host, and returns the page's history with that
// visit. If there was a hint for the page, the visit shows whether it was right.
func (r *Rhythms) Observe(host string, it Item, h revisit.History, v revisit.Visit) revisit.History {
	if h.Last().IsZero() || it.Sitemap != nil { // a sitemap changes with any of its pages
		return h.Observe(v)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	rhythm := r.Of(host)
	if it.LastMod != 0 {
		hints := 0
		if it.Hinted(h, v.At) {
			hints = 1
		}
		rhythm.Hints.Observe(h, v, hints)
	}
	v.Elapsed = rhythm.Pulse.Observe(h, v)
	r.Hosts.Set(host, rhythm, keptRhythms)
	r.changed++
	return h.Observe(v)
}

// Worth returns what a visit to a page is worth, given the rhythm of its host.
func (r *Rhythms) Worth(host string, it Item, b revisit.Bayes, h revisit.History, now time.Time) float64 {
	rhythm := r.Of(host)
	return rhythm.worth(it, b, h, rhythm.Pulse.Elapsed(h.Last(), now), it.Hinted(h, now))
}

// worth is the worth of a visit after a time on the host's clock. Silence is evidence only for
// pages that a sitemap dates.
func (r *Rhythm) worth(it Item, b revisit.Bayes, h revisit.History, waited time.Duration, hinted bool) float64 {
	switch {
	case it.LastMod == 0:
		return b.Worth(h, waited)
	case hinted:
		return b.Hinted(h, waited, r.Hints, 1)
	}
	return b.Hinted(h, waited, r.Hints, 0)
}

// Quiet returns for how long to postpone a page that is due by its interval, because its host has
// been quiet since; 0 means to visit it now.
func (r *Rhythms) Quiet(host string, it Item, b revisit.Bayes, h revisit.History, now time.Time) time.Duration {
	rhythm := r.Of(host)
	passed := now.Sub(h.Last())
	if rhythm == (Rhythm{}) || passed <= 0 || passed >= cmp.Or(b.Max, revisit.DefaultMax) {
		return 0
	}
	waited, hinted := rhythm.Pulse.Elapsed(h.Last(), now), it.Hinted(h, now)
	// Less than the price, and not only by rounding.
	enough := min(PriceOf(b), b.Worth(h, passed))
	if rhythm.worth(it, b, h, waited, hinted) >= enough {
		return 0
	}
	// It is evaluated again before a visit could be worth much more: the host may publish.
	step := min(passed/16, longestQuiet)
	for step < min(passed/4, longestQuiet) && rhythm.worth(it, b, h, waited+step, hinted) < enough {
		step *= 2
	}
	return max(step, time.Second)
}

// longestQuiet bounds how long a page is postponed at a time because its host is quiet: the length
// of a span in a Pulse.
const longestQuiet = 48 * time.Hour

// PriceOf returns the price of a visit.
func PriceOf(b revisit.Bayes) float64 { return cmp.Or(b.Price, revisit.DefaultPrice) }

// Hinted reports whether a hint says that the page has changed since its last visit.
func (it Item) Hinted(h revisit.History, now time.Time) bool {
	at := time.Unix(it.LastMod, 0)
	return it.LastMod != 0 && at.After(h.Last()) && !at.After(now)
}

// Hint returns the item with a hint of when its page changed.
func (it Item) Hint(at time.Time) Item {
	it.LastMod = at.Unix()
	if it.Visit != nil {
		it.Visit.item.LastMod = it.LastMod
	}
	return it
}
