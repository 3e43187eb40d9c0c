package fetch

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/proxy"

	"github.com/spinneret-go/spinneret/internal/httpctx"
)

// useProxy makes c connect through the proxy of its Options.
func (c *Client) useProxy() error {
	u, err := url.Parse(c.opts.Proxy)
	if err != nil {
		return errors.New("fetch: Options.Proxy is not a URL") // err has the password
	}
	direct := c.opts.Dial
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		reached(ctx, Proxy)
		conn, err := direct(ctx, network, addr)
		if err != nil {
			return nil, proxyError(err)
		}
		if u.Scheme == "http" {
			reached(ctx, ConnectTimeout)
		}
		return conn, nil
	}
	switch u.Scheme {
	case "socks5", "socks5h":
		c.names = u.Scheme == "socks5h"
		c.useSOCKS(u, dial)
		return nil
	case "https":
		c.names = true
		c.useHTTPProxy(c.secureProxy(u, dial))
		return nil
	case "http":
		c.names = true
		c.useHTTPProxy(u, dial)
		return nil
	}
	return fmt.Errorf("fetch: proxy scheme %q: want http, https, socks5 or socks5h", u.Scheme)
}

type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// Dial implements proxy.Dialer.
func (f dialFunc) Dial(network, addr string) (net.Conn, error) {
	return f(context.Background(), network, addr)
}

// DialContext implements proxy.ContextDialer.
func (f dialFunc) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	return f(ctx, network, addr)
}

// viaProxy reports whether a proxy gets the requests for URLs of a scheme itself, rather than a
// connection to the server in which it sees nothing.
func (c *Client) viaProxy(scheme string) bool { return c.transport.Proxy != nil && scheme == "http" }

// proxyError returns the error of a proxy that failed, in the form in which net/http reports it:
// layers above know by it that the server is not to blame.
func proxyError(err error) *Error {
	return &Error{Kind: Proxy, Err: &net.OpError{Op: "proxyconnect", Net: "tcp", Err: err}}
}

func (c *Client) useSOCKS(u *url.URL, dial dialFunc) {
	var auth *proxy.Auth
	if u.User != nil {
		password, _ := u.User.Password()
		auth = &proxy.Auth{User: u.User.Username(), Password: password}
	}
	address := u.Host
	if u.Port() == "" {
		address = net.JoinHostPort(u.Hostname(), "1080")
	}
	c.opts.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		greeted := greetedConn{dial: ctx}
		through := dialFunc(func(ctx context.Context, network, addr string) (_ net.Conn, err error) {
			greeted.Conn, err = dial(ctx, network, addr)
			return &greeted, err
		})
		socks, err := proxy.SOCKS5("tcp", address, auth, through)
		if err != nil {
			return nil, proxyError(err)
		}
		conn, err := socks.(proxy.ContextDialer).DialContext(ctx, network, addr)
		if err != nil && !(timedOut(err) && greeted.dial == nil) && !refusedBySOCKS(err) {
			var failure *Error
			if !errors.As(err, &failure) {
				err = proxyError(err)
			}
		}
		return conn, err
	}
}

// greetedConn is a connection to a SOCKS proxy, which is to blame for all until it has answered.
type greetedConn struct {
	net.Conn
	dial context.Context // until the proxy has answered
}

// Read implements net.Conn.
func (c *greetedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.dial != nil {
		reached(c.dial, ConnectTimeout)
		c.dial = nil
	}
	return n, err
}

// refusedBySOCKS reports whether err is a reply about the server, not about the proxy. Package
// proxy reports them only as texts.
func refusedBySOCKS(err error) bool {
	text := err.Error()
	for _, reply := range []string{"connection refused", "host unreachable", "network unreachable",
		"TTL expired"} {
		if strings.HasSuffix(text, "unknown error "+reply) {
			return true
		}
	}
	return false
}

// secureProxy returns a proxy with TLS as one without, and a dial that does the handshake. If the
// transport did it, it would look like that of a server.
func (c *Client) secureProxy(u *url.URL, dial dialFunc) (*url.URL, dialFunc) {
	plain := *u
	plain.Scheme = "http"
	if u.Port() == "" {
		plain.Host = net.JoinHostPort(u.Hostname(), "443")
	}
	config := c.tlsConfig.Clone()
	config.NextProtos = []string{"http/1.1"}
	config.ServerName = cmp.Or(config.ServerName, u.Hostname())
	return &plain, func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		secure := tls.Client(conn, config)
		if err := httpctx.Handshake(ctx, secure); err != nil {
			conn.Close()
			return nil, proxyError(err)
		}
		reached(ctx, ConnectTimeout)
		return secure, nil
	}
}

func (c *Client) useHTTPProxy(u *url.URL, dial dialFunc) {
	t := c.transport
	t.Proxy = http.ProxyURL(u)
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if exhausted(ctx) {
			return nil, &Error{Kind: TooManyAttempts}
		}
		ctx, cancel := limited(ctx, c.opts.ConnectTimeout)
		defer cancel()
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &peer{Conn: &tunnel{Conn: conn, wait: c.opts.ConnectTimeout}}, nil
	}
	// The transport does the handshakes through the proxy.
	t.DialTLSContext = nil
	t.TLSClientConfig = c.tlsConfig
	t.TLSHandshakeTimeout = max(c.opts.ConnectTimeout, 0)
	t.OnProxyConnectResponse = func(
		ctx context.Context, _ *url.URL, _ *http.Request, resp *http.Response,
	) error {
		switch {
		case resp.StatusCode == http.StatusOK:
			reached(ctx, TLSTimeout)
			return nil
		case resp.StatusCode == http.StatusGatewayTimeout:
			return &Error{Kind: ConnectTimeout, Err: errors.New("proxy: " + resp.Status)}
		case resp.StatusCode >= 500:
			return &Error{Kind: Connect, Err: errors.New("proxy: " + resp.Status)}
		}
		return proxyError(errors.New("proxy: " + resp.Status))
	}
}

// tunnel is a connection to an HTTP proxy that has to answer a CONNECT in time: net/http would wait for a
// minute. It is as safe for concurrent use as its Conn, except that one Write at a time is.
type tunnel struct {
	net.Conn
	wait           time.Duration // zero or negative means no limit
	begun, waiting bool
}

// Write implements net.Conn.
func (t *tunnel) Write(b []byte) (int, error) {
	var until time.Time // what follows the CONNECT is a handshake, which has its own limit
	if !t.begun && t.wait > 0 && bytes.HasPrefix(b, []byte("CONNECT ")) {
		until = time.Now().Add(t.wait)
	}
	if t.begun = true; t.waiting || !until.IsZero() {
		t.waiting = !until.IsZero()
		_ = t.SetReadDeadline(until) // the next Read fails if this does
	}
	return t.Conn.Write(b)
}
