package stage

import (
	"context"
	"sync"
	"time"
)

// The number of concurrent lookups. Some are reserved for hosts that were found before, since their
// queues wait. The names of one owner share name servers, which may all be down.
const (
	MaxLookups   = 256
	newLookups   = MaxLookups * 3 / 4
	ownerLookups = 8
)

// lookupTimeout bounds a lookup. Within half a minute, a resolver has asked three name servers
// twice.
const lookupTimeout = 30 * time.Second

// Lookups bounds the lookups in progress, such that name servers that do not answer delay only
// their own hosts: the names of one owner take at most eight of 256 lookups. One weakness remains:
// while 192 such names of different owners are looked up, hosts that were never found before wait:
// half a minute for each 192 that are ahead of them. Its methods are safe for concurrent use.
type Lookups struct {
	all, fresh chan struct{} // has a value for each lookup, and for each of a host not found before

	mu     sync.Mutex
	owners map[string]*ownerQueue
}

// An ownerQueue holds the lookups of one owner's hosts.
type ownerQueue struct {
	length  int           // with those that wait
	lookups chan struct{} // has a value for each in progress
}

// NewLookups returns a Lookups with nothing in progress.
func NewLookups() *Lookups {
	return &Lookups{
		all: make(chan struct{}, MaxLookups), fresh: make(chan struct{}, newLookups),
		owners: map[string]*ownerQueue{},
	}
}

// Do calls lookup when it is the turn of the host, with a context that ends after half a minute. One that failed and
// took far longer is repeated: this machine or process was stopped meanwhile, and may have missed the answer.
// known means that the host was found before. If ctx ends earlier, Do returns its cause.
func (l *Lookups) Do(
	ctx context.Context, host string, known bool, lookup func(ctx context.Context) error,
) error {
	owner := siteOf(host)
	queue := l.enter(owner)
	defer l.leave(owner, queue)
	turns := []chan struct{}{queue.lookups, l.fresh, l.all}
	if known {
		turns = []chan struct{}{queue.lookups, l.all}
	}
	for _, turn := range turns {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for {
		began := time.Now().Round(0) // of day, as in slept
		limited, cancel := context.WithTimeout(ctx, lookupTimeout)
		err := lookup(limited)
		cancel()
		if err == nil || ctx.Err() != nil || time.Now().Round(0).Sub(began) < lookupTimeout+asleep {
			return err
		}
	}
}

func (l *Lookups) enter(owner string) *ownerQueue {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.owners[owner]
	if queue == nil {
		queue = &ownerQueue{lookups: make(chan struct{}, ownerLookups)}
		l.owners[owner] = queue
	}
	queue.length++
	return queue
}

func (l *Lookups) leave(owner string, queue *ownerQueue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if queue.length--; queue.length == 0 {
		delete(l.owners, owner)
	}
}
