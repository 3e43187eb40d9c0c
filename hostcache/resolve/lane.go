package resolve

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// A lane bounds the queries of a domain.
type lane struct {
	slots chan struct{} // has a value for each that is in flight, or has yet to get one of all slots
	users int           // with those that wait for the lane; guarded by Resolver.mu
}

// acquire waits until there may be one more query for the domain of a name, and in all. It ends with
// release.
func (r *Resolver) acquire(ctx context.Context, name string) (release func(), err error) {
	domain := lastLabels(name)
	r.mu.Lock()
	l := r.lanes[domain]
	if l == nil {
		l = &lane{slots: make(chan struct{}, max(cap(r.slots)/2, 1))}
		r.lanes[domain] = l
	}
	l.users++
	r.mu.Unlock()
	var taken []chan struct{}
	release = func() {
		for _, slots := range taken {
			<-slots
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(r.lanes, domain)
		}
	}
	for _, slots := range []chan struct{}{l.slots, r.slots} {
		select {
		case slots <- struct{}{}:
			taken = append(taken, slots)
		case <-ctx.Done():
			release()
			return nil, fmt.Errorf("%w: %w", errWaited, context.Cause(ctx))
		}
	}
	return release, nil
}

// lastLabels returns the last two labels of a name.
func lastLabels(name string) string {
	name = strings.TrimSuffix(name, ".")
	last := max(strings.LastIndexByte(name, '.'), 0)
	return name[strings.LastIndexByte(name[:last], '.')+1:]
}

// errWaited is wrapped by the error of a look-up whose context has ended before it began.
var errWaited = errors.New("waiting behind other look-ups")
