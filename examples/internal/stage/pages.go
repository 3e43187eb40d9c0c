package stage

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/exact"
	"github.com/spinneret-go/spinneret/satstore"
)

// Pages knows all pages of a crawl, and gives each out when it is due: the long-term queue of Tamura
// and Kitsuregawa's crawler. What it has acknowledged survives the death of the process.
//
// Sightings of links go into an exact set. Settle asks it which of them are new, puts those into a
// store that is laid out by time, to be due at once, and only then takes note of the visits that
// found them. So a page whose visit is on record has all its links on record, too; of the visits
// since the last Settle, a crash leaves no trace, and their pages are due again.
//
// Its methods are safe for concurrent use. Only one walk of Due can run at a time.
type Pages struct {
	// Found is called by Settle with each URL that was not known before, if it is not nil.
	Found func(url string)

	store *satstore.Store
	set   *exact.Set
	unit  time.Duration

	mu     sync.Mutex
	visits []*Visit // since the last Settle

	settling sync.Mutex // held by Settle; guards the rest
	next     uint64     // number of the first entry of set that is not in store
	kept     int        // entries of set that are in store and not trimmed
	fresh    []satstore.Item
}

// A Visit is a page in the crawler's hands, with what was known of it. It has to be given back. It is
// not safe for concurrent use.
type Visit struct {
	State      State
	Before     time.Time     // of the visit before this one; zero if there was none
	RetryAfter time.Duration // that the server asked for; else 0
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

// trimAfter is how many entries the set may keep that the store has.
const trimAfter = 100_000

// OpenPages opens the pages of a crawl, or begins an empty one, in a directory.
func OpenPages(dir string, o PagesOptions) (*Pages, error) {
	for _, name := range []string{PagesDir, URLsDir} {
		if err := finishReplace(dir, name); err != nil {
			return nil, err
		}
	}
	o = o.withDefaults()
	store, err := satstore.Open(filepath.Join(dir, PagesDir), o.store())
	if err != nil {
		return nil, fmt.Errorf("open the pages: %w", err)
	}
	set, err := exact.Open(filepath.Join(dir, URLsDir), exact.Options{Memory: o.Memory / 2})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the set of URLs: %w", err), store.Close())
	}
	p := &Pages{store: store, set: set, unit: o.Unit, next: set.Stats().Trimmed}
	if uint64(store.Stats().Records) < p.next {
		return nil, errors.Join(fmt.Errorf("%w: %s knows %d URLs, and %s has %d pages", ErrLost,
			filepath.Join(dir, URLsDir), p.next, filepath.Join(dir, PagesDir), store.Stats().Records),
			set.Close(), store.Close())
	}
	if _, err := p.enter(); err != nil { // what a crash has kept from the store
		return nil, errors.Join(err, set.Close(), store.Close())
	}
	return p, nil
}

// ErrLost is wrapped by the error for pages of which some are gone, with a directory or a file.
var ErrLost = errors.New("stage: pages are missing")

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

// Sight notes that there is a link to an item. If nobody saw its URL before, it is due at once,
// from the next Settle on.
func (p *Pages) Sight(it Item) error {
	return p.set.Defer(it.URL, AppendRecord(nil, it, State{}))
}

// Due returns an iterator over the items that are due until now, as the store's Due: it ends when
// none is left. Each has a Visit, which has to be given back, or else is due again when the pages are
// opened the next time.
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

// GiveBack returns a visit. Its state is on record after the next Settle, and the page is due at
// State.Due.
func (p *Pages) GiveBack(v *Visit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.visits = append(p.visits, v)
}

// Recorded counts what a call of Settle has put on record.
type Recorded struct {
	New    int // pages that were sighted
	Visits int // that were given back
}

// Settle puts on record what was sighted and given back. It calls prepare when it has taken the
// visits, for what has to be done before they are on record; nil is nothing.
func (p *Pages) Settle(prepare func() error) (done Recorded, err error) {
	p.settling.Lock()
	defer p.settling.Unlock()
	p.mu.Lock()
	visits := p.visits
	p.visits = nil
	p.mu.Unlock()

	if prepare != nil {
		if err := prepare(); err != nil {
			return done, err
		}
	}
	// What was sighted before a visit was given back is in this merge.
	if err := p.set.Merge(); err != nil {
		return done, err
	}
	if done.New, err = p.enter(); err != nil {
		return done, err
	}
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

// enter puts the new URLs into the store. They are not trimmed from the set before the store has
// them for good: entries that come twice do no harm there.
func (p *Pages) enter() (found int, err error) {
	const batch = 4096
	flush := func() error {
		n, err := p.store.AddBatch(p.fresh)
		p.fresh = p.fresh[:0]
		found += n
		return err
	}
	p.fresh = p.fresh[:0]
	next := p.next
	for entry, err := range p.set.Entries(next) {
		if err != nil {
			return found, err
		}
		p.fresh = append(p.fresh, satstore.Item{ID: entry.URL, Data: entry.Data})
		if p.Found != nil {
			p.Found(entry.URL)
		}
		next = entry.Seq + 1
		if len(p.fresh) == batch {
			if err := flush(); err != nil {
				return found, err
			}
		}
	}
	if err := flush(); err != nil {
		return found, err
	}
	p.kept += int(next - p.next)
	p.next = next
	if p.kept < trimAfter {
		return found, nil
	}
	p.kept = 0
	if err := p.store.Sync(); err != nil {
		return found, err
	}
	return found, p.set.Trim(next)
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

// Stats returns the figures of the store and of the set.
func (p *Pages) Stats() (satstore.Stats, exact.Stats) { return p.store.Stats(), p.set.Stats() }

// Check compares all that is in the files. Other calls wait meanwhile.
func (p *Pages) Check() error {
	err := p.store.Check()
	for _, e := range p.set.Entries(p.set.Stats().Trimmed) {
		if e != nil {
			err = errors.Join(err, e)
		}
	}
	return err
}

// Close settles and closes the files. Visits that were not given back are as if they had not been.
func (p *Pages) Close() error {
	_, err := p.Settle(nil)
	return errors.Join(err, p.set.Close(), p.store.Close())
}
