package stage

import (
	"iter"
	"time"

	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

// keptRules is how long rules are kept between crawls. Expired ones serve as the last copy of an
// unreachable server (RFC 9309 §2.3.1.4), and save a transfer if the server says that they have not
// changed.
const keptRules = 30 * 24 * time.Hour

// Save saves the rules of all servers, for the Restore of a later crawl.
func (r *Robots) Save(to *Journal) error {
	r.mu.Lock()
	changed := r.changed
	r.changed = map[string]struct{}{}
	r.mu.Unlock()
	var entries []robots.Entry
	for url := range changed {
		if e, known := r.rules.Entry(url); known { // it may have been evicted
			entries = append(entries, e)
		}
	}
	return SaveEntries(to, entries, func() ([]byte, error) { return AppendEntries(nil, r.rules.All()) })
}

// Restore restores what Save wrote. Rules from the future, because of a wrong clock, count as
// expired, and so do failures of servers for which again, unless it is nil, returns true. If the
// data is damaged, it restores the entries before the damage.
func (r *Robots) Restore(data []byte, now time.Time, again func(file string) bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	latest := map[string]robots.Entry{}
	var damage error
	for e, err := range Entries[robots.Entry](data) {
		if damage = err; err == nil {
			latest[e.URL] = e
		}
	}
	for _, e := range latest {
		if e.Fetched.After(now) || e.FailedSince.After(now) || e.Failures > 0 && again != nil && again(e.URL) {
			e.Expires = now
		}
		if e.Expires.Add(keptRules).Before(now) {
			continue
		}
		if err := r.rules.Restore(e); err != nil {
			return err
		}
		r.unused[e.URL] = struct{}{}
	}
	return damage
}

// Delays yields the Crawl-delays of all servers whose rules are known, by the URL of the
// robots.txt.
func (r *Robots) Delays() iter.Seq2[string, time.Duration] {
	return func(yield func(string, time.Duration) bool) {
		for e := range r.rules.All() {
			delay, asked := robotstxt.Parse(e.Body).Rules(r.agent).Delay()
			if asked && !yield(e.URL, delay) {
				return
			}
		}
	}
}
