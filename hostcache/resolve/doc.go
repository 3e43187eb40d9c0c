// Package resolve looks up host names and remembers the answers as long as the name servers say.
//
//	names, err := resolve.Open("names", resolve.Options{})
//	...
//	client := &http.Client{Transport: &http.Transport{DialContext: names.DialContext}}
//	addrs, err := names.LookupNetIP(ctx, "ip", "www.example.com")
//	err = names.Save()
//
// net.Resolver has no cache and hides the ttl of an answer. A [Resolver] asks the same name servers
// in the same way (resolv.conf with its search list and options, and the hosts file) and keeps what
// they say, including that a name does not exist (RFC 2308). However many callers ask for a name,
// one query of each kind is in flight.
//
// # Errors
//
// Errors are of type *net.DNSError. With IsNotFound set, the name server says that there is no such
// host, or no address for it; this is remembered. An error that wraps [ErrServerFailure] says that
// a server answered, but cannot find out: mostly the servers of the domain are broken, but a server
// without a network says the same. One that wraps [ErrUnreachable] says that no server answered,
// which is a fault of our own side. If the context ended, errors.Is finds its error.
//
// # Trust
//
// An answer counts only if it comes from the server that was asked, to the port that asked, with
// the id, and with the name in the same mix of upper and lower case. If it does not fit or is
// truncated, the question is asked again over TCP. In an answer only records of the name and its
// aliases count, and an SOA record of a zone above. Aliases, addresses, the ttl, and bad answers
// per query are bounded.
//
// # Costs
//
// A name takes about 95 bytes. A cached look-up takes less than a microsecond, and no allocation if
// the result does not leave the calling function. A query in flight has a goroutine and a socket.
//
// # What it does not do
//
// It validates no signatures (DNSSEC), and speaks neither DNS over HTTPS nor multicast DNS; plug
// those in with Options.Lookup. It keeps at most four IPv4 and two IPv6 addresses of a host.
package resolve
