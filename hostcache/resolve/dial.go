package resolve

import (
	"context"
	"net"
	"net/http/httptrace"
	"net/netip"
	"strconv"
	"time"
)

// attemptDelay is how long a connection attempt may take before the next one starts beside it
// (RFC 8305 §5).
const attemptDelay = 250 * time.Millisecond

// DialContext connects to a host, as net.Dialer's method of that name does. If the host has several
// addresses, it alternates between IPv4 and IPv6 and keeps the first connection that succeeds
// (RFC 8305, "Happy Eyeballs"). The next attempt starts a quarter of a second after the last one,
// or as soon as one fails. To a httptrace.ClientTrace it reports what net.Dialer does, so layers above know
// a name server that is silent from a host that is.
func (r *Resolver) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	if host == "" {
		return r.opts.Dial(ctx, network, address)
	}
	port, err := (&net.Resolver{PreferGo: true}).LookupPort(ctx, network, service)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	family := "ip"
	if n := len(network); n > 0 && (network[n-1] == '4' || network[n-1] == '6') {
		family += network[n-1:]
	}
	addrs, err := r.traced(ctx, family, host)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	return r.race(ctx, network, strconv.Itoa(port), interleaved(addrs))
}

// traced is LookupNetIP, reported to the trace of a request.
func (r *Resolver) traced(ctx context.Context, network, host string) ([]netip.Addr, error) {
	trace := httptrace.ContextClientTrace(ctx)
	if _, err := netip.ParseAddr(host); err == nil || trace == nil {
		return r.LookupNetIP(ctx, network, host)
	}
	if trace.DNSStart != nil {
		trace.DNSStart(httptrace.DNSStartInfo{Host: host})
	}
	addrs, err := r.LookupNetIP(ctx, network, host)
	if trace.DNSDone != nil {
		done := httptrace.DNSDoneInfo{Err: err}
		for _, addr := range addrs {
			done.Addrs = append(done.Addrs, net.IPAddr{IP: addr.AsSlice(), Zone: addr.Zone()})
		}
		trace.DNSDone(done)
	}
	return addrs, err
}

// interleaved returns the addresses, which begin with those of version 4, with the versions alternating.
func interleaved(addrs []netip.Addr) (mixed []netip.Addr) {
	n := 0 // how many these are
	for n < len(addrs) && addrs[n].Is4() {
		n++
	}
	for i := range max(n, len(addrs)-n) {
		if i < n {
			mixed = append(mixed, addrs[i])
		}
		if n+i < len(addrs) {
			mixed = append(mixed, addrs[n+i])
		}
	}
	return mixed
}

// race connects to the first address that answers. The error is that of the first attempt.
func (r *Resolver) race(ctx context.Context, network, port string, addrs []netip.Addr,
) (net.Conn, error) {
	type attempt struct {
		conn net.Conn
		err  error
	}
	ctx, cancel := context.WithCancel(ctx)
	results := make(chan attempt, len(addrs))
	running := 0
	defer func() {
		cancel()
		go func() { // the attempts that lost
			for range running {
				if late := <-results; late.err == nil {
					late.conn.Close()
				}
			}
		}()
	}()
	var first error
	next := time.NewTimer(0)
	defer next.Stop()
	for len(addrs) > 0 || running > 0 {
		select {
		case <-next.C:
			if len(addrs) > 0 {
				address := net.JoinHostPort(addrs[0].String(), port)
				addrs = addrs[1:]
				running++
				go func() {
					conn, err := r.opts.Dial(ctx, network, address)
					results <- attempt{conn, err}
				}()
				next.Reset(attemptDelay)
			}
		case a := <-results:
			running--
			if a.err == nil {
				return a.conn, nil
			}
			if first == nil {
				first = a.err
			}
			next.Reset(0)
		case <-ctx.Done():
			return nil, &net.OpError{Op: "dial", Net: network, Err: context.Cause(ctx)}
		}
	}
	return nil, first
}
