package hostcache

import (
	"context"
	"errors"
	"strings"
	"time"
)

// A Loader fetches the value of a host, and says how long to store it; it is not stored if the ttl
// is zero or negative. An error that wraps [ErrNegative] means that the host has no value, which is
// stored for the ttl, too. With an error that wraps [ErrStored], the value is stored as a record of the
// failure: those who wait get the error, and later callers the value. Other errors are not stored.
type Loader[V any] func(ctx context.Context, host string) (v V, ttl time.Duration, err error)

// A flight is one call of a loader and all callers that wait for it.
type flight[V any] struct {
	done    chan struct{} // closed when v and err are set
	v       V
	err     error
	waiting int // callers; guarded by the mutex of the shard
	cancel  context.CancelFunc
}

// A told error is one that wraps ErrStored, for those who wait, without that: it is for this cache, and a
// loader that passes the error on to another one has nothing to store there.
type told struct{ error }

func (e told) Is(target error) bool { return target != ErrStored && errors.Is(e.error, target) }
func (e told) As(target any) bool   { return errors.As(e.error, target) }

// errNoReturn is the result of a loader that ends its goroutine instead of returning.
var errNoReturn = errors.New("hostcache: loader did not return")

// Load returns the value of a host. If the host has no entry, it calls load, once for all
// concurrent callers, and stores the result. For a host without a value it returns an error that
// wraps [ErrNegative].
//
// The loader runs in its own goroutine, without a lock, and may use the Cache. It must not load its
// own host, nor one whose loader waits for it: both would wait forever. Its context has the values
// of the first caller's context, but ends only when no caller is waiting any more. A caller stops
// waiting when its own context ends, and gets the cause. The result is not stored if all callers
// had left by then, or if the host was set or deleted while the loader ran.
func (c *Cache[V]) Load(ctx context.Context, host string, load Loader[V]) (v V, err error) {
	var buf [MaxHost]byte
	s := c.shard(host)
	s.mu.Lock()
	if len(host) <= MaxHost {
		if e, known := c.lookup(s, reversed(buf[:0], host)); known {
			s.mu.Unlock()
			if e.negative() {
				return v, ErrNegative
			}
			return e.value, nil
		}
	}
	if ctx.Err() != nil {
		s.mu.Unlock()
		return v, context.Cause(ctx)
	}
	f := s.flights[host]
	if f == nil {
		f = c.start(ctx, s, strings.Clone(host), load)
	}
	f.waiting++
	s.mu.Unlock()

	select {
	case <-f.done:
		return f.v, f.err
	case <-ctx.Done():
		s.leave(host, f)
		return v, context.Cause(ctx)
	}
}

// start starts a flight. It requires that s.mu is held.
func (c *Cache[V]) start(ctx context.Context, s *shard[V], host string, load Loader[V]) *flight[V] {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &flight[V]{done: make(chan struct{}), cancel: cancel, err: errNoReturn}
	s.flights[host] = f
	s.counts.Loads++
	s.counts.InFlight++
	go func() {
		defer cancel()
		defer close(f.done)
		defer s.end(host, f)
		v, ttl, err := load(ctx, host)
		f.v, f.err = v, err
		switch {
		case err == nil:
			c.set(host, v, ttl, false, f)
		case errors.Is(err, ErrStored):
			f.err = told{err}
			c.set(host, v, ttl, false, f)
		case errors.Is(err, ErrNegative):
			var none V
			c.set(host, none, ttl, true, f)
		}
	}()
	return f
}

// end is called when a loader has returned.
func (s *shard[V]) end(host string, f *flight[V]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.InFlight--
	if s.flights[host] == f {
		delete(s.flights, host)
	}
}

// leave is called when a caller stops waiting for a flight.
func (s *shard[V]) leave(host string, f *flight[V]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.waiting--
	if f.waiting > 0 {
		return
	}
	f.cancel()
	if s.flights[host] == f {
		delete(s.flights, host)
	}
}
