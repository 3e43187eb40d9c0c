package stage

import (
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/spinneret-go/spinneret/hostcache"
	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

// keptRules is how long rules are kept from one crawl to another. Those that have expired serve as
// the last copy of a server that is out of reach (RFC 9309 §2.3.1.4), and save a transfer where
// the server says that they have not changed.
const keptRules = 30 * 24 * time.Hour

// savedRules is what is known of a server's rules, as the value of a saved hostcache.
type savedRules struct{ robots.Entry }

// MarshalBinary returns the entry as JSON.
func (s *savedRules) MarshalBinary() ([]byte, error) { return json.Marshal(s.Entry) }

// UnmarshalBinary reads what MarshalBinary returned.
func (s *savedRules) UnmarshalBinary(b []byte) error { return json.Unmarshal(b, &s.Entry) }

// Open takes over the rules that an earlier crawl saved to a file, if there is such a file. Those
// from the future, by a clock that was wrong, have expired.
func (r *Robots) Open(file string, now time.Time) error {
	saved, err := hostcache.Open[*savedRules](file, hostcache.Options{MaxBytes: -1})
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, known := range saved.All() {
		e := known.Value.Entry
		if e.Fetched.After(now) || e.FailedSince.After(now) {
			e.Expires = now
		}
		if err := r.rules.Restore(e); err != nil {
			return fmt.Errorf("rules in %s: %w", file, err)
		}
		r.unused[e.URL] = struct{}{}
	}
	return nil
}

// Delays yields the Crawl-delays of all servers whose rules are known, by the URL of the robots.txt.
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

// Save writes all rules to a file, for the next crawl.
func (r *Robots) Save(file string) error {
	known, err := hostcache.Open[*savedRules](file, hostcache.Options{MaxBytes: -1})
	if known == nil {
		return err
	}
	for e := range r.rules.All() {
		known.Set(e.URL, &savedRules{e}, keptRules)
	}
	return known.Save()
}
