package archivehttp

import (
	"context"
	"crypto/tls"
	"math"
	"net"
	"net/http"
	"slices"

	"github.com/spinneret-go/spinneret/internal/httpctx"
	"github.com/spinneret-go/spinneret/internal/httpwire"
)

// maxHead bounds a recorded head. An archive rejects longer ones.
const maxHead = 1 << 20

// onlyHTTP1 is the key of a context whose request needs HTTP/1.
type onlyHTTP1 struct{}

// record returns a connection that records heads.
func record(conn net.Conn) *httpwire.Conn { return httpwire.New(conn, maxHead, math.MaxInt) }

// observed returns a clone of a transport whose connections record the heads of HTTP/1.
func observed(base *http.Transport) *http.Transport {
	t := base.Clone()
	// A transport with a custom dialer uses HTTP/2 only if this is set.
	t.ForceAttemptHTTP2 = t.TLSClientConfig != nil &&
		slices.Contains(t.TLSClientConfig.NextProtos, "h2")
	dial := dialer(t)
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return record(conn), nil
	}
	dialTLS := t.DialTLSContext
	//lint:ignore SA1019 callers may still set it
	if old := t.DialTLS; dialTLS == nil && old != nil {
		dialTLS = func(_ context.Context, network, addr string) (net.Conn, error) {
			return old(network, addr)
		}
	}
	if dialTLS == nil {
		dialTLS = func(ctx context.Context, network, addr string) (net.Conn, error) {
			return startTLS(ctx, t, dial, network, addr)
		}
	}
	t.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dialTLS(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		secure, ok := conn.(*tls.Conn)
		if !ok {
			return record(conn), nil
		}
		if err := handshake(ctx, t, secure); err != nil {
			_ = conn.Close()
			return nil, err
		}
		state := secure.ConnectionState()
		if state.NegotiatedProtocol == "h2" || t.Protocols != nil && t.Protocols.UnencryptedHTTP2() {
			httpctx.Reported(ctx)
			return conn, nil // net/http recognizes HTTP/2, or that it is encrypted, by this type
		}
		w := record(conn)
		w.TLS = &state
		return w, nil
	}
	return t
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// dialer returns the dial function of a transport.
func dialer(t *http.Transport) dialFunc {
	if t.DialContext != nil {
		return t.DialContext
	}
	//lint:ignore SA1019 callers may still set it
	if old := t.Dial; old != nil {
		return func(_ context.Context, network, addr string) (net.Conn, error) {
			return old(network, addr)
		}
	}
	return new(net.Dialer).DialContext
}

// startTLS dials as net/http does. The handshake is still to be done.
func startTLS(ctx context.Context, t *http.Transport, dial dialFunc, network, addr string) (
	net.Conn, error) {
	conn, err := dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	config := t.TLSClientConfig.Clone()
	if config == nil {
		config = &tls.Config{}
	}
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(addr)
	}
	if ctx.Value(onlyHTTP1{}) != nil {
		config.NextProtos = nil
	}
	return tls.Client(conn, config), nil
}

// handshake does the TLS handshake as net/http does. The result decides whether the connection is
// observed, so net/http cannot do it later.
func handshake(ctx context.Context, t *http.Transport, conn *tls.Conn) error {
	if t.TLSHandshakeTimeout <= 0 {
		return httpctx.Handshake(ctx, conn)
	}
	limited, cancel := context.WithTimeout(ctx, t.TLSHandshakeTimeout)
	defer cancel()
	err := httpctx.Handshake(limited, conn)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return handshakeTimeout{}
	}
	return err
}

// handshakeTimeout is an error that net/http does not export.
type handshakeTimeout struct{}

func (handshakeTimeout) Error() string   { return "net/http: TLS handshake timeout" }
func (handshakeTimeout) Timeout() bool   { return true }
func (handshakeTimeout) Temporary() bool { return true }
