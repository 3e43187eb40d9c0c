package stage

import (
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

// Pages knows all pages of a crawl, and gives each out when it is due: the long-term queue of
// Tamura and Kitsuregawa's crawler. What it has acknowledged survives the death of the process.
//
// Discoveries of links are added to a store that is laid out by time, to be due at once; it knows its
// pages by their URLs. Commit takes note of visits when all that they have found is added. So a
// page whose visit is on record has all its links on record, too; of the visits since the last
// Commit, a crash leaves no trace, and their pages are due again.
//
// Its methods are safe for concurrent use. Only one walk of Due can run at a time.
type Pages struct {
	// Found is called with each URL that was not known before, if it is not nil. It must be safe
	// for concurrent use.
	Found func(url string)

	store *satstore.Store
	unit  time.Duration
	seed  maphash.Seed

	mu         sync.Mutex
	visits     []*Visit        // since the last Commit
	discovered []satstore.Item // to be added
	recent     [1 << 16]uint64 // hashes of the latest discoveries, each at its place
	found      int             // since the last Commit
	closed     bool

	adding     sync.Mutex // held while what was discovered is added
	committing sync.Mutex // held by Commit
}

// discoveries is how many are added at a time.
const discoveries = 4096

// A Visit is a page in the crawler's hands, with what was known of it. It has to be given back. It
// is not safe for concurrent use.
type Visit struct {
	State      State
	Before     time.Time     // of the visit before this one; zero if there was none
	RetryAfter time.Duration // that the server asked for; else 0
	Signals    string        // what the site states about the use of the page
	Addr       netip.Addr    // to whose share of the room it belongs; zero if that is not known

	record *satstore.Record // nil if the page was asked for before it was due
	item   Item
}

// Early says that the page was not given out because it was due.
func (v *Visit) Early() bool { return v.record == nil }

// PagesOptions say how large the files' share of memory is, and how time goes.
type PagesOptions struct {
	Memory int64         // bytes for buffers and filters; 0 means DefaultPagesMemory
	Unit   time.Duration // of the slots, in whole seconds; 0 means a minute
	Start  time.Time     // what the clock shows when a crawl is begun; the zero Time means now, so 0 means that too
}

// DefaultPagesMemory is PagesOptions.Memory if that is 0.
const DefaultPagesMemory = 96 << 20

// OpenPages opens the pages of a crawl, or begins an empty one, in a directory.
func OpenPages(dir string, o PagesOptions) (*Pages, error) {
	if err := finishReplace(dir, PagesDir); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	store, err := satstore.Open(filepath.Join(dir, PagesDir), o.store())
	if err != nil {
		return nil, fmt.Errorf("open the pages: %w", err)
	}
	return &Pages{store: store, unit: o.Unit, seed: maphash.MakeSeed()}, nil
}

func (o PagesOptions) withDefaults() PagesOptions {
	if o.Memory == 0 {
		o.Memory = DefaultPagesMemory
	}
	if o.Unit == 0 {
		o.Unit = time.Minute
	}
	if o.Start.IsZero() {
		o.Start = time.Now()
	}
	return o
}

func (o PagesOptions) store() satstore.Options {
	return satstore.Options{Unit: o.Unit, Start: o.Start, Buffer: o.Memory / 2}
}

// Discover notes that there is a link to an item. If nobody saw its URL before, it is due at once,
// from the next Commit on at the latest.
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
		p.discovered = append(p.discovered, satstore.Item{ID: it.URL, Data: AppendRecord(nil, it, State{})})
	}
	return len(p.discovered) >= discoveries, nil
}

// add adds what was discovered before the call.
func (p *Pages) add() error {
	p.adding.Lock()
	defer p.adding.Unlock()
	p.mu.Lock()
	batch := p.discovered
	p.discovered = nil
	p.mu.Unlock()
	found := 0
	err := p.store.AddEach(batch, func(item satstore.Item) {
		found++
		if p.Found != nil {
			p.Found(item.ID)
		}
	})
	p.mu.Lock()
	p.found += found
	p.mu.Unlock()
	return err
}

// Due returns an iterator over the items that are due until now, as the store's Due: it ends when
// none is left. Each has a Visit, which has to be given back, or else is due again when the pages
// are opened the next time.
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
			record = record.Detach() // or one that waits for its host would keep its block in memory
			visit := &Visit{State: state, Before: state.History.Last(), record: record}
			visit.item = it
			it.Visit = visit
			if !yield(it, nil) {
				return
			}
		}
	}
}

// GiveBack returns a visit. Its state is on record after the next Commit, and the page is due at
// State.Due.
func (p *Pages) GiveBack(v *Visit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.visits = append(p.visits, v)
}

// Recorded counts what a call of Commit has put on record.
type Recorded struct {
	New    int // pages that were discovered
	Visits int // that were given back
}

// Commit puts on record what was discovered and given back. It calls prepare when it has taken the
// visits, for what has to be done before they are on record; nil is nothing.
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
	// What was discovered before a visit was given back is added now, or was before.
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
		done.Visits++
	}
	return done, nil
}

// put puts a visit on record. What a visit before its time has changed reaches the record as a
// message, when it is due by its old time; then it is found to be due later.
func (p *Pages) put(v *Visit, data []byte) error {
	if v.Early() {
		return p.store.Update(v.item.URL, data)
	}
	return v.record.Reschedule(time.Unix(v.State.Due, 0), data)
}

// Early returns the item of a page that is known, was visited, and is not due before a time: for a
// visit that somebody's hint is worth. It costs a random read.
func (p *Pages) Early(url string, due time.Time) (it Item, ok bool, err error) {
	known, err := p.Find(url)
	if errors.Is(err, satstore.ErrUnknown) {
		return Item{}, false, nil
	}
	s := known.State
	if err != nil || !s.Visited() || s.Failures > 0 || s.Due <= due.Unix() {
		return Item{}, false, err
	}
	it = known.Item
	it.Visit = &Visit{State: s, Before: s.History.Last(), item: it}
	return it, true, nil
}

// Ahead reports whether the store has come to a slot that lies in the future: the clock was wrong.
// What is put back then would be due no earlier. RewritePages helps.
func (p *Pages) Ahead(now time.Time) bool { return p.store.Now().Add(-p.unit).After(now) }

// NextSlot returns when the slot after that of the last Due begins.
func (p *Pages) NextSlot() time.Time { return p.store.Now().Add(p.unit) }

// All returns an iterator over all pages, in no order, with what is on record of them.
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

// A Known is a page that is on record: an item with its state.
type Known struct {
	Item  Item
	State State
}

// Find returns what is on record of a URL. The error wraps satstore.ErrUnknown if nothing is.
func (p *Pages) Find(url string) (Known, error) {
	record, err := p.store.Get(url)
	if err != nil {
		return Known{}, err
	}
	it, state, err := ReadRecord(url, record.Data)
	return Known{it, state}, err
}

// Stats returns the figures of the store.
func (p *Pages) Stats() satstore.Stats { return p.store.Stats() }

// Upcoming returns how many pages are due up to each of some times. It also works after Close.
func (p *Pages) Upcoming(until ...time.Time) []int64 { return p.store.Upcoming(until...) }

// Discovered returns how many discoveries wait to be added.
func (p *Pages) Discovered() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.discovered)
}

// Check compares all that is in the files. Other calls wait meanwhile.
func (p *Pages) Check() error { return p.store.Check() }

// Close commits and closes the files. Visits that were not given back are as if they had not been.
func (p *Pages) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_, err := p.Commit(nil)
	return errors.Join(err, p.store.Close())
}
