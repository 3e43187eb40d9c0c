// Package resolve looks up host names and caches the answers for as long as the name servers
// permit.
//
//	names, err := resolve.Open("names", resolve.Options{})
//	...
//	client := &http.Client{Transport: &http.Transport{DialContext: names.DialContext}}
//	addrs, err := names.LookupNetIP(ctx, "ip", "www.example.com")
//	err = names.Save()
//
// net.Resolver has no cache and hides the ttl of an answer. A [Resolver] queries the same name
// servers in the same way (resolv.conf, the hosts file) and caches the answers, including that a name
// does not exist (RFC 2308). However many callers look up a name, one query of each kind is in flight.
//
// # Errors
//
// Errors are of type *net.DNSError. If IsNotFound is set, the name server says that there is no
// such host, or no address for it; this is cached. An error that wraps [ErrServerFailure] means
// that a server answered without a result: the servers of the domain are broken, or ours has no
// network ([Resolver.Ping] tells). It is cached for 30 seconds (RFC 9520). [ErrUnreachable] means
// that no server answered: a local fault, not cached. If the context ends, its cause is wrapped.
// If the query for one kind of address fails or takes a second longer, the addresses of the other kind
// are the answer for 30 seconds, and a caller that wants only the former gets ErrServerFailure.
//
// # Trust
//
// An answer counts only if it comes from the queried server, to the querying port, with the same
// id, and with the name in the same mix of upper and lower case; an error may lack the name. If it does
// not match or is truncated, the query is repeated over TCP. In an answer only records of the name and
// its aliases count, and an SOA record of a zone above. Aliases, addresses, the ttl, and bad answers per
// query are bounded.
//
// # Costs
//
// A name takes about 95 bytes. A cached lookup takes less than a microsecond, and does not allocate
// if the result does not escape the calling function.
//
// # What it does not do
//
// It knows no DNSSEC, DNS over HTTPS or multicast DNS: plug those in with Options.Lookup. It keeps
// at most four IPv4 and two IPv6 addresses of a host.
package resolve
