package crawl

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/engine"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/scheduler"
)

// A progress is stored with the sequence up to which everything is done.
type progress struct {
	Open   []byte            // see window.appendOpen
	Recent []scheduler.Entry // what the scheduler has learned since the chunks of the state were written
}

// The state of the scheduler grows with the number of unusual hosts, so it is saved seldom. Failures
// in between are saved immediately, as separate entries.
const (
	learnEvery = 30 * time.Second
	maxRecent  = 512 // entries until everything is saved again
)

// Progress returns what is done.
func (f *fetcher) Progress() (seq uint64, more any) {
	seq, open := f.window.appendOpen(nil)
	return seq, progress{open, f.learned}
}

// Resume continues with the progress of the previous owner.
func (f *fetcher) Resume(seq uint64, more json.RawMessage) error {
	var p progress
	if more != nil {
		if err := json.Unmarshal(more, &p); err != nil {
			return fmt.Errorf("crawl: state of fetch: %w", err)
		}
	}
	f.learned = p.Recent
	for _, entry := range p.Recent {
		if err := f.queue.Restore(entry, f.started); err != nil {
			return fmt.Errorf("crawl: state of fetch: %w", err)
		}
	}
	return f.window.restore(seq, p.Open)
}

// Rewrite reports whether it is time to save the whole scheduler.
func (f *fetcher) Rewrite() bool { return time.Since(f.saved) >= f.due || len(f.learned) >= maxRecent }

// Changes returns the state of the whole scheduler, or nothing: what it has learned since is a part of
// the progress.
func (f *fetcher) Changes(all bool, size int) (chunks [][]byte) {
	if !all {
		return nil
	}
	now := time.Now()
	// Each chunk must be readable on its own.
	var part []scheduler.Entry
	flush := func() {
		data, _ := stage.AppendEntries(nil, slices.Values(part)) // cannot fail for this type
		chunks, part = append(chunks, data), part[:0]
	}
	for e := range f.queue.All(now) {
		if part = append(part, e); len(part) >= size/entryBytes {
			flush()
		}
	}
	if len(part) > 0 {
		flush()
	}
	// The longer this takes, the less often it is done, however many unusual hosts there are.
	f.saved, f.due, f.learned = now, max(learnEvery, 40*time.Since(now)), nil
	return chunks
}

// entryBytes is more than an entry of the scheduler takes, with the longest name of a host.
const entryBytes = 512

// Load gives the scheduler what previous owners have learned.
func (f *fetcher) Load(chunk []byte) error {
	for entry, err := range stage.Entries[scheduler.Entry](chunk) {
		if err == nil {
			err = f.queue.Restore(entry, f.started)
		}
		if err != nil {
			return fmt.Errorf("crawl: state of fetch: %w", err)
		}
	}
	return nil
}

// settle records the result of a visit.
func (f *fetcher) settle(t task, v visited, learned []scheduler.Entry, emit engine.Emit) {
	f.learned = append(f.learned, learned...)
	if v.err != nil || v.requeue {
		return // it is fetched again, here or by the next owner, but not before the server permits
	}
	f.window.finish(t.seq, t.place)
	f.counts[string(v.fate)]++
	for why, n := range v.skipped {
		f.counts[why] += n
	}
	for _, s := range v.items {
		emit(s.To, s.Part, s.item)
	}
}

// learned returns what the next owner must know about a failed visit. The death of a process must
// not lead to an early request to a server that asked for patience.
func learned(host string, addr netip.Addr, o scheduler.Outcome) []scheduler.Entry {
	bad := o.Failed || o.Status == http.StatusTooManyRequests ||
		o.Status == http.StatusServiceUnavailable
	if o.Skipped || !bad && o.RetryAfter.IsZero() {
		return nil
	}
	entry := scheduler.Entry{Host: host, RetryAfter: o.RetryAfter}
	if bad {
		entry.Failures = 1
	}
	if o.RetryAfter.IsZero() || !addr.IsValid() {
		return []scheduler.Entry{entry}
	}
	return []scheduler.Entry{entry, {Addr: addr, RetryAfter: o.RetryAfter}}
}
