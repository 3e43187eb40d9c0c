package webtest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
)

// Virtual addresses are counted from 127.16.0.1, those of refusing hosts from 127.32.0.1. Last
// bytes of 0 and 255 are left out, as some programs take them for networks and broadcasts.
const (
	firstServing  = 127<<24 | 16<<16
	firstRefusing = 127<<24 | 32<<16
	maxAddrs      = 1 << 12 * 254
)

// virtualAddr returns the n-th address from first on, with 254 of each 256 in use.
func virtualAddr(first uint32, n int) netip.Addr {
	v := first + uint32(n/254)<<8 + uint32(n%254) + 1
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
}

// portTries is how many free ports are tried until one is free on all addresses.
const portTries = 16

// listen opens a listener for each virtual address and returns them in order.
func listen(n, port int, shared bool) ([]net.Listener, error) {
	if shared {
		return listenShared(n)
	}
	if port != 0 {
		return listenAll(n, port)
	}
	var last error
	for range portTries {
		probe, err := listenOn(virtualAddr(firstServing, n-1), 0)
		if errors.Is(err, syscall.EADDRNOTAVAIL) {
			return listenShared(n)
		}
		if err != nil {
			return nil, err
		}
		free := probe.Addr().(*net.TCPAddr).Port
		probe.Close()
		all, err := listenAll(n, free)
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) {
			return all, err
		}
		last = err
	}
	return nil, last
}

// openAll opens n listeners, or none.
func openAll(n int, open func(i int) (net.Listener, error)) (all []net.Listener, err error) {
	for i := range n {
		l, err := open(i)
		if err != nil {
			for _, l := range all {
				err = errors.Join(err, l.Close())
			}
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// listenAll binds one port on every virtual address.
func listenAll(n, port int) ([]net.Listener, error) {
	return openAll(n, func(i int) (net.Listener, error) { return listenOn(virtualAddr(firstServing, i), port) })
}

// listenShared uses the one loopback address that every system has: each virtual address is one of
// its ports.
func listenShared(n int) ([]net.Listener, error) {
	return openAll(n, func(int) (net.Listener, error) { return listenOn(loopback, 0) })
}

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// listenOn asks for IPv4 by name: tcp alone might give a socket that reports mapped addresses,
// which are not keys of the address tables.
func listenOn(addr netip.Addr, port int) (net.Listener, error) {
	l, err := net.Listen("tcp4", netip.AddrPortFrom(addr, uint16(port)).String())
	if err != nil {
		return nil, fmt.Errorf("webtest: listen: %w", err)
	}
	return l, nil
}

// Resolve returns the address of a host. An unknown one is a *net.DNSError with IsNotFound.
func (w *Web) Resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if i, ok := w.byName[strings.TrimSuffix(strings.ToLower(host), ".")]; ok {
		return w.hosts[i].lookup()
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// lookup answers a lookup of the host's name.
func (h *host) lookup() ([]netip.Addr, error) {
	n := h.lookups.Add(1)
	if h.traits.Lookup != nil {
		if addrs, err := h.traits.Lookup(int(n)); err != nil || addrs != nil {
			return addrs, err
		}
	}
	return []netip.Addr{h.Addr}, nil
}

// Client returns an http.Client that reaches this web and nothing else. Its transport is an
// *http.Transport of its own, whose DialContext is [Web.Dial]; close its idle connections, or the
// web, when done.
func (w *Web) Client() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: w.Dial, MaxIdleConnsPerHost: 16,
		TLSClientConfig: &tls.Config{RootCAs: w.Roots()}, ForceAttemptHTTP2: true,
	}}
}

// Dial connects to a virtual address, such as 127.16.0.9:80, or to a host by name. It fits
// http.Transport.DialContext. It never leaves the web: other addresses are refused.
func (w *Web) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("webtest: dial: %w", err)
	}
	virtual, err := netip.ParseAddr(host)
	if err != nil {
		found, err := w.Resolve(ctx, host)
		if err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Err: err}
		}
		if len(found) == 0 {
			return nil, &net.OpError{Op: "dial", Net: network, Err: &net.AddrError{Err: "no address", Addr: host}}
		}
		virtual = found[0]
	}
	if w.ctx.Err() != nil { // another program may have the port by now
		return nil, &net.OpError{Op: "dial", Net: network, Err: net.ErrClosed}
	}
	behind, ok := w.listeners[virtual]
	usual := "80"
	if w.authority != nil {
		usual = "443"
	}
	bound := !w.network && port == strconv.Itoa(int(behind.Port()))
	if !ok || port != usual && !bound {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	return w.dial(ctx, "tcp4", behind.String())
}
