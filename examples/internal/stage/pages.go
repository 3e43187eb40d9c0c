package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/satstore"
)

// Pages stores all pages of a crawl, and hands each out when it is due: the long-term queue of
// Tamura and Kitsuregawa's crawler. Acknowledged changes survive the death of the process.
//
// Discovered links are added to a store ordered by time, due now; the store knows its pages by URL.
// Commit records visits after the links that they found. So all links of a recorded visit are
// recorded, too. Visits since the last Commit are lost in a crash, and their pages are due again.
//
// Its methods are safe for concurrent use. Only one iteration of Due can run at a time.
type Pages struct {
	// Found is called with each item whose URL was not known before, if it is not nil. It must be
	// safe for concurrent use.
	Found func(it Item)

	// Turn returns when a page is due if its URL turns out not to be known. If it is nil, such pages
	// are due now.
	Turn func(url string) time.Time

	store *satstore.Store
	unit  time.Duration
	seed  maphash.Seed

	mu         sync.Mutex
	visits     []*Visit        // since the last Commit
	discovered []satstore.Item // to be added
	from       []string        // where each was found: the store does not keep that
	recent     [1 << 16]uint64 // hashes of the latest discoveries, each in its slot
	found      int             // since the last Commit
	early      map[string]bool // URLs of early visits that are not recorded yet
	closed     bool

	adding     sync.Mutex // held while discoveries are added
	committing sync.Mutex // held by Commit
}

// discoveries is the number of links added at a time.
const discoveries = 4096

// A Visit is a page that was handed out, with its state. It must be returned with GiveBack, or, if it
// was handed out early and not visited, with Forgo. It is not safe for concurrent use.
type Visit struct {
	State      State
	Before     time.Time     // of the previous visit; zero if there was none
	RetryAfter time.Duration // that the server asked for, or 0
	Signals    string        // what the site states about the use of the page
	Addr       netip.Addr    // whose room it takes; zero if unknown
	First      bool          // it takes a place of its host's page limit, until it is settled

	record *satstore.Record // nil if the page is visited before it is due
	item   Item
}

// Early reports whether the page was handed out before it was due.
func (v *Visit) Early() bool { return v.record == nil }

// Is changes what is recorded of the page besides its state. The URL stays.
func (v *Visit) Is(it Item) { v.item = it }

// PagesOptions returns the options of the store of Pages: the bytes for buffers and filters, the unit of
// the slots in whole seconds, and the time of the clock when a crawl begins. 0 means the defaults of the
// store.
func PagesOptions(memory int64, unit time.Duration, start time.Time) satstore.Options {
	return satstore.Options{Unit: unit, Start: start, Buffer: memory / 2, Merge: mergeVisit}
}

// OpenPages opens the pages of a crawl, or begins an empty one, in a directory.
func OpenPages(dir string, o satstore.Options) (*Pages, error) {
	if err := FinishRewrite(dir); err != nil {
		return nil, err
	}
	store, err := satstore.Open(filepath.Join(dir, PagesDir), o)
	if err != nil {
		return nil, fmt.Errorf("open the pages: %w", err)
	}
	return NewPages(store, o), nil
}

// NewPages returns the pages in a store with such options.
func NewPages(store *satstore.Store, o satstore.Options) *Pages {
	return &Pages{store: store, unit: cmp.Or(o.Unit, satstore.DefaultUnit), seed: maphash.MakeSeed(), early: map[string]bool{}}
}

// mergeVisit applies an early visit to a record. Only the record tells whether the page is
// postponed: that may have happened during the visit.
func mergeVisit(url string, data, visit []byte) []byte {
	_, before, err := ReadRecord(url, data)
	it, state, e := ReadRecord(url, visit)
	if err != nil || e != nil || state.Postponed == before.Postponed {
		return visit
	}
	state.Postponed = before.Postponed
	return AppendRecord(nil, it, state)
}

// Discover records a link to an item. If its URL is new, it is due at its Turn, at the earliest from
// the next Commit on.
func (p *Pages) Discover(it Item) error {
	full, err := p.note(it)
	if err != nil || !full {
		return err
	}
	return p.add()
}

// note reports whether there are enough discoveries to add. Most links have been seen just before,
// and are dropped here.
func (p *Pages) note(it Item) (full bool, err error) {
	hash := maphash.String(p.seed, it.URL)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false, satstore.ErrClosed
	}
	if last := &p.recent[hash%uint64(len(p.recent))]; *last != hash {
		*last = hash
		item := satstore.Item{ID: it.URL, Data: AppendRecord(nil, it, State{})}
		if p.Turn != nil {
			item.At = p.Turn(it.URL)
		}
		p.discovered, p.from = append(p.discovered, item), append(p.from, it.From)
	}
	return len(p.discovered) >= discoveries, nil
}

// add adds the links that were discovered before the call.
func (p *Pages) add() error {
	p.adding.Lock()
	defer p.adding.Unlock()
	p.mu.Lock()
	batch, from := p.discovered, p.from
	p.discovered, p.from = nil, nil
	p.mu.Unlock()
	found, next := 0, 0
	err := p.store.AddEach(batch, func(item satstore.Item) {
		for batch[next].ID != item.ID { // in order, without those that are known
			next++
		}
		found++
		if p.Found != nil {
			it, _, _ := ReadRecord(item.ID, item.Data) // just written by note
			it.From = from[next]
			p.Found(it)
		}
	})
	p.mu.Lock()
	p.found += found
	p.mu.Unlock()
	return err
}

// Due returns an iterator over the items that are due until now. It ends when none is left. Each
// item has a Visit that must be given back; otherwise it is due again when the pages are reopened.
func (p *Pages) Due(ctx context.Context, now time.Time) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for record, err := range p.store.Due(ctx, now) {
			if err != nil {
				yield(Item{}, err)
				return
			}
			it, state, err := ReadRecord(record.ID, record.Data)
			if err != nil {
				yield(Item{}, fmt.Errorf("%w: %q", err, record.ID))
				return
			}
			record = record.Detach() // a page that waits for its host would keep its block
			visit := &Visit{State: state, Before: state.History.Last(), record: record}
			visit.item = it
			it.Visit = visit
			if !yield(it, nil) {
				return
			}
		}
	}
}

// GiveBack returns a visit. Its state is recorded by the next Commit, and the page is due at
// State.Due.
func (p *Pages) GiveBack(v *Visit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.visits = append(p.visits, v)
}

// Recorded counts what a call of Commit has recorded.
type Recorded struct {
	New    int // pages that were discovered
	Visits int // that were given back
}

// Commit records the discoveries and the visits given back. It calls prepare after it has taken the
// visits, for work that must be done before they are recorded; nil means nothing.
func (p *Pages) Commit(prepare func() error) (done Recorded, err error) {
	p.committing.Lock()
	defer p.committing.Unlock()
	p.mu.Lock()
	visits := p.visits
	p.visits = nil
	p.mu.Unlock()

	if prepare != nil {
		if err := prepare(); err != nil {
			return done, err
		}
	}
	// Links that were discovered before a visit was given back are added now, or already were.
	if err := p.add(); err != nil {
		return done, err
	}
	p.mu.Lock()
	done.New, p.found = p.found, 0
	p.mu.Unlock()
	var data []byte
	for _, v := range visits {
		data = AppendRecord(data[:0], v.item, v.State)
		if err := p.put(v, data); err != nil {
			return done, err
		}
		p.Forgo(v)
		done.Visits++
	}
	return done, nil
}

// Forgo ends an early visit that changes nothing.
func (p *Pages) Forgo(v *Visit) {
	if v.Early() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.early, v.item.URL)
	}
}

// IsEarly reports whether an early visit of a page is under way, or not recorded yet.
func (p *Pages) IsEarly(url string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.early[url]
}

// put records a visit. The changes of an early visit are a message to the record, which is merged
// when the record is due at its old time. Then it turns out to be due later.
func (p *Pages) put(v *Visit, data []byte) error {
	if v.Early() {
		return p.store.Update(v.item.URL, data)
	}
	return v.record.Reschedule(time.Unix(v.State.Due, 0), data)
}

// Early returns the item of a page that was visited and is not due before a time, for an early
// visit. It takes a random read. Until the visit is recorded, the store still has the state before it, so
// there is no second one.
func (p *Pages) Early(url string, due time.Time) (it Item, ok bool, err error) {
	p.mu.Lock()
	taken := p.early[url]
	p.early[url] = true
	p.mu.Unlock()
	if taken {
		return Item{}, false, nil
	}
	defer func() {
		if !ok {
			p.Forgo(&Visit{item: Item{URL: url}})
		}
	}()
	known, err := p.Find(url)
	if errors.Is(err, satstore.ErrUnknown) {
		return Item{}, false, nil
	}
	s := known.State
	if err != nil || !s.Visited() || s.Due <= due.Unix() {
		return Item{}, false, err
	}
	it = known.Item
	it.Visit = &Visit{State: s, Before: s.History.Last(), item: it}
	return it, true, nil
}

// Ahead reports whether the store has reached a slot in the future because the clock was wrong.
// Returned pages would be due no earlier. RewritePages repairs that.
func (p *Pages) Ahead(now time.Time) bool { return p.store.Now().Add(-p.unit).After(now) }

// Now returns the slot up to which pages have been handed out.
func (p *Pages) Now() time.Time { return p.store.Now() }

// NextSlot returns when the slot after that of the last Due begins.
func (p *Pages) NextSlot() time.Time { return p.store.Now().Add(p.unit) }

// All returns an iterator over the recorded pages, in no order, with their states.
func (p *Pages) All() iter.Seq2[Known, error] {
	return func(yield func(Known, error) bool) {
		for record, err := range p.store.Scan() {
			var page Known
			if err == nil {
				page.Item, page.State, err = ReadRecord(record.ID, record.Data)
			}
			if !yield(page, err) || err != nil {
				return
			}
		}
	}
}

// A Known is a recorded page: an item with its state.
type Known struct {
	Item  Item
	State State
}

// Find returns the recorded page of a URL. The error wraps satstore.ErrUnknown if there is none.
func (p *Pages) Find(url string) (Known, error) {
	record, err := p.store.Get(url)
	if err != nil {
		return Known{}, err
	}
	it, state, err := ReadRecord(url, record.Data)
	return Known{it, state}, err
}

// Stats returns the statistics of the store.
func (p *Pages) Stats() satstore.Stats { return p.store.Stats() }

// Upcoming returns how many pages are due by each of the given times. It also works after Close.
func (p *Pages) Upcoming(until ...time.Time) []int64 { return p.store.Upcoming(until...) }

// Discovered returns how many discoveries wait to be added.
func (p *Pages) Discovered() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.discovered)
}

// Check verifies the files. Other calls wait until it returns.
func (p *Pages) Check() error { return p.store.Check() }

// Close commits and closes the files. Visits that were not given back are lost.
func (p *Pages) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_, err := p.Commit(nil)
	return errors.Join(err, p.store.Close())
}
