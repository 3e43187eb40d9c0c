package webtest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
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
	l, err := listenOn(loopback, 0)
	if err != nil {
		return nil, err
	}
	if !w.goServe(func() { w.server.Serve(l) }) {
		return nil, errors.Join(net.ErrClosed, l.Close())
	}
	return &url.URL{Scheme: "http", Host: l.Addr().String()}, nil
}

// tunnel connects a client of the proxy with a host.
func (x *exchange) tunnel() int {
	h := x.web.hosts[x.host].Host
	_, port, _ := net.SplitHostPort(x.r.Host)
	server, err := x.web.Dial(x.r.Context(), "tcp", net.JoinHostPort(h.Addr.String(), port))
	if err != nil {
		x.w.WriteHeader(http.StatusBadGateway) // begin would log it
		return http.StatusBadGateway
	}
	defer server.Close()
	return x.raw(func(client net.Conn) {
		if _, err := io.WriteString(client, "HTTP/1.1 200 Connected\r\n\r\n"); err != nil {
			return
		}
		if x.web.goServe(func() {
			io.Copy(server, client) // whichever side ends, the other one has nothing left to do
			server.Close()
		}) {
			io.Copy(client, server)
		}
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
	if !w.goServe(func() { w.resolveAll(conn) }) {
		return netip.AddrPort{}, errors.Join(net.ErrClosed, conn.Close())
	}
	return conn.LocalAddr().(*net.UDPAddr).AddrPort(), nil
}

// resolveAll answers queries until the web closes.
func (w *Web) resolveAll(conn *net.UDPConn) {
	defer context.AfterFunc(w.ctx, func() { conn.Close() })()
	buf := make([]byte, 1<<10)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		switch {
		case err != nil && w.ctx.Err() != nil:
			return
		case err != nil:
			continue
		}
		query := bytes.Clone(buf[:n])
		w.serving.Go(func() { // a Lookup may be late, and others do not wait for it
			if answer, ok := w.dnsAnswer(query); ok {
				conn.WriteToUDPAddrPort(answer, from) // a lost answer is asked for again
			}
		})
	}
}

// dnsAnswer returns the answer to a query (RFC 1035, section 4), if it is one.
func (w *Web) dnsAnswer(query []byte) (answer []byte, ok bool) {
	const header, response, typeA = 12, 1 << 7, 1
	if len(query) < header || query[2]&response != 0 || binary.BigEndian.Uint16(query[4:]) != 1 {
		return nil, false
	}
	var labels []string
	end := header
	for end < len(query) && query[end] != 0 {
		next := end + 1 + int(query[end])
		if next > len(query) || query[end] > 63 { // a pointer has nothing to point to in a question
			return nil, false
		}
		labels = append(labels, string(query[end+1:next]))
		end = next
	}
	if end += len("\x00") + 4; end > len(query) { // type and class
		return nil, false
	}
	addrs, err := w.Resolve(w.ctx, strings.Join(labels, "."))
	answer = append(answer, query[:end]...)
	answer[2] |= response
	answer[3] = 1<<7 | rcode(err) // recursion is available
	clear(answer[6:header])
	if binary.BigEndian.Uint16(query[end-4:]) != typeA {
		return answer, true // the name exists, but has nothing of this type
	}
	for _, addr := range addrs {
		if !addr.Is4() || answer[7] == math.MaxUint8 {
			continue
		}
		answer[7]++
		answer = append(answer, 0xc0, header, 0, typeA, 0, 1, 0, 0, 0, 60, 0, 4) // the question's name, for a minute
		answer = append(answer, addr.AsSlice()...)
	}
	return answer, true
}

// rcode returns the response code of a lookup.
func rcode(err error) byte {
	const serverFailure, nameError = 2, 3
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return nameError
	case err != nil:
		return serverFailure
	}
	return 0
}
