package stage

import "net/netip"

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
