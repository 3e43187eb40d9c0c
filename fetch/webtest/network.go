package webtest

import (
	"net"
	"net/netip"
)

// listenIn is listen without sockets: each virtual address is real enough on its own.
func listenIn(listen func(addr string) (net.Listener, error), n int) ([]net.Listener, error) {
	return openAll(n, func(i int) (net.Listener, error) {
		addr := netip.AddrPortFrom(virtualAddr(firstServing, i), 80)
		l, err := listen(addr.String())
		return &addrListener{l, net.TCPAddrFromAddrPort(addr)}, err
	})
}

// addrListener has the address that a socket would have, since a request belongs to the address at
// which it arrived.
type addrListener struct {
	net.Listener
	addr net.Addr
}

func (l *addrListener) Addr() net.Addr { return l.addr }
