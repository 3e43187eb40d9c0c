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

// addrListener gives its connections the address that a socket would have, since a request
// belongs to the address at which it arrived.
type addrListener struct {
	net.Listener
	addr *net.TCPAddr
}

func (l *addrListener) Addr() net.Addr { return l.addr }

func (l *addrListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &addrConn{conn, l.addr}, nil
}

type addrConn struct {
	net.Conn
	addr *net.TCPAddr
}

func (c *addrConn) LocalAddr() net.Addr { return c.addr }
