package hostcache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

// ErrLoader is wrapped by every [PanicError].
var ErrLoader = errors.New("hostcache: loader panicked")

// A PanicError is what all callers of [Cache.Load] get when the loader panics.
type PanicError struct {
	Host  string
	Value any    // of the panic; nil if the loader ended its goroutine instead
	Stack []byte // of the loader
}

// Error tells the host and the value.
func (e *PanicError) Error() string { return fmt.Sprintf("%v: %s: %v", ErrLoader, e.Host, e.Value) }

// Unwrap returns [ErrLoader].
func (e *PanicError) Unwrap() error { return ErrLoader }

// A Loader gets the value of a host. A ttl of 0 means that of the Options, a negative one that the
// result is not to be kept. An error that wraps [ErrNegative] is kept as a negative entry, together
// with v; other errors are not kept.
type Loader[V any] func(ctx context.Context, host string) (v V, ttl time.Duration, err error)

// A flight is one call of a loader and all who wait for it.
type flight[V any] struct {
	done    chan struct{} // closed when v and err are set
	v       V
	err     error
	waiting int // callers; guarded by the mutex of the shard
	cancel  context.CancelFunc
}

// Load returns the value of a host. If nothing is known of the host, it calls load, once for all
// who ask meanwhile, and keeps the result. For a negative entry it returns [ErrNegative], and the
// value that the loader returned with it.
//
// The loader runs in a goroutine of its own, under no lock, and may use the Cache. Its context has
// the values of the context of the caller who came first, but is not cancelled with it: it is
// cancelled when none of those who wait is left. Who waits, waits no longer than his own context
// lets him, and gets its cause. If the last one leaves, the next one who asks starts anew; what the
// abandoned loader returns is kept all the same, as that of any other.
//
// If the loader panics, all who wait get a [PanicError].
func (c *Cache[V]) Load(ctx context.Context, host string, load Loader[V]) (V, error) {
	var buf [keyBuffer]byte
	key := appendReversed(buf[:0], host)
	s := c.shard(host)
	s.mu.Lock()
	if e, known := c.lookup(s, key); known {
		s.mu.Unlock()
		if e.Negative {
			return e.Value, ErrNegative
		}
		return e.Value, nil
	}
	if ctx.Err() != nil {
		s.mu.Unlock()
		var none V
		return none, context.Cause(ctx)
	}
	f := s.flights[host]
	if f == nil {
		f = c.take(ctx, s, strings.Clone(host), load)
	}
	f.waiting++
	s.mu.Unlock()

	select {
	case <-f.done:
		return f.v, f.err
	case <-ctx.Done():
		s.leave(host, f)
		var none V
		return none, context.Cause(ctx)
	}
}

// take starts a flight. It requires that s.mu is held.
func (c *Cache[V]) take(ctx context.Context, s *shard[V], host string, load Loader[V]) *flight[V] {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &flight[V]{done: make(chan struct{}), cancel: cancel}
	s.flights[host] = f
	s.counts.Loads++
	go func() {
		defer cancel()
		defer close(f.done)
		defer s.end(host, f)
		c.fly(ctx, f, host, load)
	}()
	return f
}

// fly calls the loader and keeps what it returns.
func (c *Cache[V]) fly(ctx context.Context, f *flight[V], host string, load Loader[V]) {
	// What is not overwritten below is the result of a loader that does not return.
	f.err = &PanicError{Host: host}
	defer func() {
		if value := recover(); value != nil {
			f.err = &PanicError{Host: host, Value: value, Stack: debug.Stack()}
		}
	}()
	start := time.Now()
	v, ttl, err := load(ctx, host)
	took := time.Since(start)
	switch {
	case err == nil && ttl >= 0:
		c.keep(host, v, ttl, took)
	case err != nil && errors.Is(err, ErrNegative) && ttl >= 0:
		c.setNegative(host, v, ttl, took)
	}
	f.v, f.err = v, err
}

// end is called when a flight has got its result.
func (s *shard[V]) end(host string, f *flight[V]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flights[host] == f {
		delete(s.flights, host)
	}
}

// leave is called when one of those who wait for a flight gives up.
func (s *shard[V]) leave(host string, f *flight[V]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.waiting--
	if f.waiting == 0 && s.flights[host] == f {
		delete(s.flights, host)
		f.cancel()
	}
}
