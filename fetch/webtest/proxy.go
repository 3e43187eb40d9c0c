package webtest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"

	"golang.org/x/net/dns/dnsmessage"
)

// errNoSockets is the error of a web that exists only within its process.
var errNoSockets = errors.New("webtest: a web with Options.Network has no sockets")

// Proxy opens an HTTP proxy to the web on 127.0.0.1, until [Web.Close], for programs that reach the
// web in no other way. It knows the hosts of the web and nothing else, and logs a request for
// anything else, too: it then has the status 421.
func (w *Web) Proxy() (*url.URL, error) {
	if w.network {
		return nil, errNoSockets
	}
	l, err := listenOn(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0)
	if err != nil {
		return nil, err
	}
	w.serving.Go(func() { w.server.Serve(l) })
	return &url.URL{Scheme: "http", Host: l.Addr().String()}, nil
}

// tunnel connects a client of the proxy with a host.
func (x *exchange) tunnel() int {
	h := x.web.hosts[x.host].Host
	_, port, _ := net.SplitHostPort(x.r.Host)
	server, err := x.web.Dial(x.r.Context(), "tcp", net.JoinHostPort(h.Addr.String(), port))
	if err != nil {
		return x.fail(http.StatusBadGateway)
	}
	defer server.Close()
	return x.raw(func(client net.Conn) {
		if _, err := io.WriteString(client, "HTTP/1.1 200 Connected\r\n\r\n"); err != nil {
			return
		}
		x.web.serving.Go(func() {
			io.Copy(server, client) // whichever side ends, the other one has nothing left to do
			server.Close()
		})
		io.Copy(client, server)
	})
}

// Resolver opens a DNS server for the names of the web on a UDP port of 127.0.0.1, until
// [Web.Close]. It answers as [Web.Resolve] does.
func (w *Web) Resolver() (netip.AddrPort, error) {
	if w.network {
		return netip.AddrPort{}, errNoSockets
	}
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return netip.AddrPort{}, err
	}
	w.serving.Go(func() { w.resolveAll(conn) })
	return conn.LocalAddr().(*net.UDPAddr).AddrPort(), nil
}

// resolveAll answers queries until the web closes.
func (w *Web) resolveAll(conn *net.UDPConn) {
	defer context.AfterFunc(w.ctx, func() { conn.Close() })()
	query := make([]byte, 1<<10)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(query)
		if err != nil && w.ctx.Err() != nil {
			return
		}
		if answer, ok := w.dnsAnswer(query[:n]); err == nil && ok {
			conn.WriteToUDPAddrPort(answer, from) // a lost answer is asked for again
		}
	}
}

// dnsAnswer returns the answer to a query, if it is one.
func (w *Web) dnsAnswer(query []byte) (answer []byte, ok bool) {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil || m.Response || len(m.Questions) != 1 {
		return nil, false
	}
	asked := m.Questions[0]
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	addrs, err := w.Resolve(w.ctx, asked.Name.String())
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		m.RCode = dnsmessage.RCodeNameError
	case err != nil:
		m.RCode = dnsmessage.RCodeServerFailure
	}
	for _, addr := range addrs {
		if asked.Type == dnsmessage.TypeA && addr.Is4() {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: asked.Name, Class: dnsmessage.ClassINET, TTL: 60},
				Body:   &dnsmessage.AResource{A: addr.As4()},
			})
		}
	}
	answer, err = m.Pack()
	return answer, err == nil
}
