package stage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/hostcache"
)

// defaultTTL is how long an answer holds of which nobody said so.
const defaultTTL = 30 * time.Minute

// maxHostAddrs is how many addresses of a host are kept.
const maxHostAddrs = 4

// hostAddrs is what the cache keeps of a host: no pointers, so that millions of hosts cost the
// garbage collector nothing. IPv4 addresses are mapped into IPv6.
type hostAddrs struct {
	N     uint8
	Addrs [maxHostAddrs][16]byte
}

// A Lookup finds the addresses of a host and how long they hold, 0 if that is not known. An error
// holds as long as it says, too, if it is about the name and not about the servers.
type Lookup func(ctx context.Context, host string) ([]netip.Addr, time.Duration, error)

// A Resolver gives each host exactly one address, so that the address for which the scheduler
// counts the delay is the one that is dialled. Its methods are safe for concurrent use.
type Resolver struct {
	lookup Lookup
	cache  *hostcache.Cache[hostAddrs]
	asked  atomic.Int64
}

// NewResolver returns a resolver over lookup; nil is the system's. It begins with what an earlier
// one saved to the file, if there is such a file.
func NewResolver(lookup Lookup, file string) (*Resolver, error) {
	if lookup == nil {
		lookup = DNS{}.Lookup
	}
	if file == "" {
		return &Resolver{lookup: lookup, cache: hostcache.New[hostAddrs](hostcache.Options{})}, nil
	}
	cache, err := hostcache.Open[hostAddrs](file, hostcache.Options{})
	if cache == nil {
		return nil, err
	}
	return &Resolver{lookup: lookup, cache: cache}, err
}

// Save writes what is known to a file, for the next crawl.
func (r *Resolver) Save(string) error { return r.cache.Save() }

// Asked returns how many names were looked up; all others were known.
func (r *Resolver) Asked() int64 { return r.asked.Load() }

// Cached returns the host's address if it is known and still holds.
func (r *Resolver) Cached(host string) (netip.Addr, bool) {
	if addr, ok := Literal(host); ok {
		return addr, true
	}
	known, ok := r.cache.Get(host)
	if !ok {
		return netip.Addr{}, false
	}
	return known.first(), true
}

// Addr returns the host's address, asking for it if need be. However many ask at once, one question
// goes out.
func (r *Resolver) Addr(ctx context.Context, host string) (netip.Addr, error) {
	if addr, ok := Literal(host); ok {
		return addr, nil
	}
	known, err := r.cache.Load(ctx, host, r.load)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("resolve %s: %w", host, err)
	}
	return known.first(), nil
}

// load is the cache's loader. That a name does not exist is kept; that nobody answered is not.
func (r *Resolver) load(ctx context.Context, host string) (found hostAddrs, ttl time.Duration, err error) {
	r.asked.Add(1)
	addrs, ttl, err := r.lookup(ctx, host)
	if ttl == 0 {
		ttl = defaultTTL
	}
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound, err == nil && len(addrs) == 0:
		return found, ttl, fmt.Errorf("no such host: %w", hostcache.ErrNegative)
	case err != nil:
		return found, 0, err
	}
	return packed(addrs), ttl, nil
}

// packed keeps the first addresses, those of version 4 before the others: nearly every server has
// one, and not every crawler's network has version 6.
func packed(addrs []netip.Addr) (h hostAddrs) {
	for _, v4 := range []bool{true, false} {
		for _, a := range addrs {
			if a.Unmap().Is4() == v4 && h.N < maxHostAddrs {
				h.Addrs[h.N] = a.As16()
				h.N++
			}
		}
	}
	return h
}

func (h hostAddrs) first() netip.Addr { return netip.AddrFrom16(h.Addrs[0]).Unmap() }

// Resolve is Addr in the form that fetch.Options wants.
func (r *Resolver) Resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	addr, err := r.Addr(ctx, host)
	if err != nil {
		return nil, err
	}
	return []netip.Addr{addr}, nil
}

// Literal reads host names that are addresses, IPv6 in brackets or not.
func Literal(host string) (netip.Addr, bool) {
	if n := len(host); n > 2 && host[0] == '[' && host[n-1] == ']' {
		host = host[1 : n-1]
	}
	addr, err := netip.ParseAddr(host)
	return addr, err == nil
}

// makeRoom drops some entry from a table that is full. Which one does not matter: what is dropped
// can be learned again.
func makeRoom[V any](table map[string]V, limit int) {
	if len(table) < limit {
		return
	}
	for key := range table {
		delete(table, key)
		return
	}
}
