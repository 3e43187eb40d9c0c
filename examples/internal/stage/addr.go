package stage

import (
	"context"
	"fmt"
	"net/netip"
)

// NoLookup is the resolver of a client whose requests all have the address of their lease, by
// fetch.Request.Addr.
func NoLookup(_ context.Context, host string) ([]netip.Addr, error) {
	return nil, fmt.Errorf("stage: a request to %s without an address", host)
}

// Literal reads host names that are addresses, IPv6 in brackets or not.
func Literal(host string) (netip.Addr, bool) {
	if n := len(host); n > 2 && host[0] == '[' && host[n-1] == ']' {
		host = host[1 : n-1]
	}
	addr, err := netip.ParseAddr(host)
	return addr, err == nil
}

// makeRoom drops an arbitrary entry from a full table. The entry can be learned again.
func makeRoom[K comparable, V any](table map[K]V, limit int) {
	if len(table) < limit {
		return
	}
	for key := range table {
		delete(table, key)
		return
	}
}
