package archivehttp

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/internal/httpurl"
	"github.com/spinneret-go/spinneret/internal/httpwire"
)

// connection is the state of the connection of an exchange. Its methods are safe for concurrent
// use.
type connection struct {
	mu    sync.Mutex
	url   *url.URL  // of the request; set by heads
	named string    // the host and port that net/http looked for a connection to; "" if unknown
	at    time.Time // when the connection was chosen; zero before
	conn  net.Conn
	kept  *httpwire.Heads // nil if it cannot be observed
}

// observe returns a context that sets c to the connection of a request, or to the last one if a layer
// below makes several requests of it.
func (c *connection) observe(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(hostPort string) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.named = hostPort
		},
		GotConn: func(info httptrace.GotConnInfo) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.conn, c.kept, c.at = info.Conn, nil, time.Now()
			switch conn := info.Conn.(type) {
			case *httpwire.Conn:
				c.kept = conn.Begin()
			case *tls.Conn:
				if w, ok := conn.NetConn().(*httpwire.Conn); ok { // through a proxy
					w.Begin().Detach() // or it would search what is encrypted for a head
				}
			}
		},
	})
}

// heads returns the heads on the wire. Those of HTTP/2 are binary, and WARC has no form for them.
func (c *connection) heads(resp *http.Response) (request, response []byte, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.url = resp.Request.URL
	if c.kept == nil {
		return nil, nil, false
	}
	defer c.kept.Detach()
	if resp.ProtoMajor != 1 {
		return nil, nil, false
	}
	return c.kept.Take(resp)
}

// sentAt returns when the request was sent: layers below may hold it back until they have chosen a
// connection. It returns asked, when it came from the client, if that is not known.
func (c *connection) sentAt(asked time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return asked
	}
	return c.at
}

// addr returns the address of the server; it is invalid if the connection leads to a proxy.
func (c *connection) addr() netip.Addr {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == nil || c.conn.RemoteAddr() == nil {
		return netip.Addr{}
	}
	addr, _ := netip.ParseAddrPort(c.conn.RemoteAddr().String())
	direct, known := c.direct()
	if !known {
		direct = httpurl.Port(c.url) == strconv.Itoa(int(addr.Port())) &&
			(c.named == "" || httpurl.IsServer(c.named, c.url))
	}
	if !direct {
		return netip.Addr{}
	}
	return addr.Addr()
}

// direct reports whether the server was dialed, and not a proxy, if that is known. It requires that
// c.mu is held.
func (c *connection) direct() (direct, known bool) {
	if _, ok := c.conn.(*httpwire.Conn); !ok || c.named == "" {
		return false, false
	}
	return httpurl.IsServer(c.named, c.url), true
}

// tls returns the state of an encrypted connection that net/http considers plain.
func (c *connection) tls() *tls.ConnectionState {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w, ok := c.conn.(*httpwire.Conn); ok {
		return w.TLS
	}
	return nil
}

// viaProxy reports whether a request on the wire went through a proxy. To reach a server with TLS,
// net/http puts that inside another connection, which is plain or has TLS of its own. Other requests to a
// proxy have an absolute URL. net/http also writes one to a server if Opaque says so, as that of a path
// which begins with two slashes must.
func (c *connection) viaProxy(request []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if secure, ok := c.conn.(*tls.Conn); ok {
		if _, within := secure.NetConn().(*httpwire.Conn); within {
			return true
		}
	}
	if direct, _ := c.direct(); direct {
		return false
	}
	_, target, _ := bytes.Cut(request, []byte(" "))
	return bytes.HasPrefix(target, []byte("http://")) || bytes.HasPrefix(target, []byte("https://"))
}
