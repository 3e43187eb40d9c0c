package stage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// How long a resolver trusts what it was told. DNS has its own times to live, which the system's
// resolver does not pass on.
const (
	addrTTL    = 30 * time.Minute
	failureTTL = 5 * time.Minute
)

// maxCachedHosts bounds a resolver's memory, at roughly 150 bytes each.
const maxCachedHosts = 200_000

// A Resolver gives each host exactly one address, so that the address for which the scheduler
// counts the delay is the one that is dialled. Its methods are safe for concurrent use.
type Resolver struct {
	lookup func(ctx context.Context, host string) ([]netip.Addr, error)

	mu    sync.Mutex
	known map[string]answer
}

type answer struct {
	addr    netip.Addr
	err     error
	expires time.Time
}

// NewResolver returns a resolver over lookup; nil is the system's resolver.
func NewResolver(lookup func(context.Context, string) ([]netip.Addr, error)) *Resolver {
	if lookup == nil {
		lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	return &Resolver{lookup: lookup, known: map[string]answer{}}
}

// Cached returns the host's address if it is known and not too old.
func (r *Resolver) Cached(host string) (netip.Addr, bool) {
	if addr, ok := Literal(host); ok {
		return addr, true
	}
	a, ok := r.recall(host)
	return a.addr, ok && a.err == nil
}

// Addr returns the host's address, asking for it if need be.
func (r *Resolver) Addr(ctx context.Context, host string) (netip.Addr, error) {
	if addr, ok := Literal(host); ok {
		return addr, nil
	}
	if a, ok := r.recall(host); ok {
		return a.addr, a.err
	}
	addrs, err := r.lookup(ctx, host)
	if ctx.Err() != nil {
		return netip.Addr{}, context.Cause(ctx)
	}
	if err == nil && len(addrs) == 0 {
		err = errors.New("no address")
	}
	if err != nil {
		err = fmt.Errorf("resolve %s: %w", host, err)
		r.remember(host, answer{err: err, expires: time.Now().Add(failureTTL)})
		return netip.Addr{}, err
	}
	addr := pick(addrs)
	r.remember(host, answer{addr: addr, expires: time.Now().Add(addrTTL)})
	return addr, nil
}

// Resolve is Addr in the form that fetch.Options wants.
func (r *Resolver) Resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	addr, err := r.Addr(ctx, host)
	if err != nil {
		return nil, err
	}
	return []netip.Addr{addr}, nil
}

// pick prefers IPv4: nearly every server has it, and not every crawler's network has IPv6.
func pick(addrs []netip.Addr) netip.Addr {
	for _, a := range addrs {
		if a.Unmap().Is4() {
			return a.Unmap()
		}
	}
	return addrs[0]
}

// Literal reads host names that are addresses, IPv6 in brackets.
func Literal(host string) (netip.Addr, bool) {
	if n := len(host); n > 2 && host[0] == '[' && host[n-1] == ']' {
		host = host[1 : n-1]
	}
	addr, err := netip.ParseAddr(host)
	return addr, err == nil
}

func (r *Resolver) recall(host string) (answer, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ok := r.known[host]
	return a, ok && time.Now().Before(a.expires)
}

func (r *Resolver) remember(host string, a answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	makeRoom(r.known, maxCachedHosts, func(answer) bool { return true })
	r.known[host] = a
}

// makeRoom drops some entry that may go from a table that is full. Which one does not matter: what
// is dropped can be asked for again.
func makeRoom[V any](table map[string]V, limit int, mayGo func(V) bool) {
	if len(table) < limit {
		return
	}
	for key, value := range table {
		if mayGo(value) {
			delete(table, key)
			return
		}
	}
}
