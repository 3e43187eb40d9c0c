package stage

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"
)

// Bounds of the hosts that are looked up or wait for that, and of the parts of all open items that
// may wait for hosts not found before, of all owners and of one.
const (
	maxSearches           = 1 << 13
	waitShare, ownerShare = 2, 8
)

// patience is how long a lookup may take until [Finder.Addr] calls it slow.
const patience = time.Second

// FindAgain is the delay before a retry if a Finder has no room.
const FindAgain = 10 * time.Second

// ErrManyLookups is returned when a Finder has no room for another lookup.
var ErrManyLookups = errors.New("stage: too many lookups in progress")

// A Finder looks up hosts in background goroutines, bounded by [Lookups]. The names of one owner
// that wait take at most an eighth of the room for open items. Its methods are safe for concurrent
// use.
type Finder struct {
	lookup func(ctx context.Context, host string) (netip.Addr, error)
	hold   func() (done func())
	room   int // for open items

	lookups *Lookups
	running sync.WaitGroup

	mu       sync.Mutex
	waiting  int            // callers
	owners   map[string]int // of these, by the owner of their hosts
	searches map[string]*search
}

// A search is a lookup of one host, with its callers.
type search struct {
	began   time.Time
	callers []func(Finding)
}

// A Finding is the result of a lookup.
type Finding struct {
	Began time.Time // when the search began
	Addr  netip.Addr
	Err   error
}

// NewFinder returns a Finder for a crawl with room for the given number of open items. hold is
// called when a search begins; the function that it returns is called when all callers of the
// search have the result.
func NewFinder(
	lookup func(ctx context.Context, host string) (netip.Addr, error), hold func() func(), room int,
) *Finder {
	return &Finder{
		lookup: lookup, hold: hold, room: room,
		lookups:  NewLookups(),
		searches: map[string]*search{}, owners: map[string]int{},
	}
}

// Find looks up a host and calls then from another goroutine, unless ctx ends before. known means
// that the host was found before. Find returns false if there is no room for another lookup.
func (f *Finder) Find(ctx context.Context, host string, known bool, then func(Finding)) (ok bool) {
	owner := siteOf(host)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !known && (f.waiting >= max(f.room/waitShare, 1) || f.owners[owner] >= max(f.room/ownerShare, 1)) {
		return false
	}
	s := f.searches[host]
	if s == nil && len(f.searches) >= maxSearches {
		return false
	}
	f.waiting++
	f.owners[owner]++
	if s != nil {
		s.callers = append(s.callers, then)
		return true
	}
	s = &search{began: time.Now(), callers: []func(Finding){then}}
	f.searches[host] = s
	done := f.hold()
	f.running.Go(func() {
		defer done()
		var addr netip.Addr
		err := f.lookups.Do(ctx, host, known, func(ctx context.Context) (err error) {
			addr, err = f.lookup(ctx, host)
			return err
		})
		callers := f.end(host, owner, s)
		for _, then := range callers {
			if ctx.Err() == nil {
				then(Finding{s.began, addr, err})
			}
		}
	})
	return true
}

// end forgets a search and returns its callers.
func (f *Finder) end(host, owner string, s *search) []func(Finding) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.searches, host)
	f.waiting -= len(s.callers)
	if f.owners[owner] -= len(s.callers); f.owners[owner] == 0 {
		delete(f.owners, owner)
	}
	return s.callers
}

// Addr looks up a host that was found before. It calls slow if that takes longer than a second.
func (f *Finder) Addr(ctx context.Context, host string, slow func()) Finding {
	found := make(chan Finding, 1)
	if !f.Find(ctx, host, true, func(r Finding) { found <- r }) {
		return Finding{Err: ErrManyLookups}
	}
	began := time.Now()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case r := <-found:
			return r
		case <-timer.C:
			slow()
		case <-ctx.Done():
			return Finding{Began: began, Err: context.Cause(ctx)}
		}
	}
}

// Since returns when the search for a host began, if there is one.
func (f *Finder) Since(host string) (began time.Time, searching bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.searches[host]; s != nil {
		return s.began, true
	}
	return time.Time{}, false
}

// Len returns how many hosts are being looked up, or wait for that.
func (f *Finder) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.searches)
}

// Wait waits until all searches have ended.
func (f *Finder) Wait() { f.running.Wait() }
