package archivehttp

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"sync"
	"time"
)

// maxHead bounds a recorded head. An archive rejects longer ones.
const maxHead = 1 << 20

// onlyHTTP1 is the key of a context whose request needs HTTP/1.
type onlyHTTP1 struct{}

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
		return &wire{Conn: conn}, nil
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
			return &wire{Conn: conn}, nil
		}
		if err := handshake(ctx, t, secure); err != nil {
			_ = conn.Close()
			return nil, err
		}
		state := secure.ConnectionState()
		if state.NegotiatedProtocol == "h2" {
			return conn, nil // net/http recognizes HTTP/2 by this type
		}
		return &wire{Conn: conn, tls: &state}, nil
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
	trace := httptrace.ContextClientTrace(ctx)
	if trace != nil && trace.TLSHandshakeStart != nil {
		trace.TLSHandshakeStart()
	}
	if t.TLSHandshakeTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, time.Now().Add(t.TLSHandshakeTimeout))
		defer cancel()
	}
	err := conn.HandshakeContext(ctx)
	if trace != nil && trace.TLSHandshakeDone != nil {
		trace.TLSHandshakeDone(conn.ConnectionState(), err)
	}
	return err
}

// wire is a connection that records the heads of HTTP/1. net/http parses them into maps, which
// lose order, case and spaces. It reads and writes in goroutines of its own, hence the lock.
type wire struct {
	net.Conn
	tls *tls.ConnectionState // nil without TLS

	mu   sync.Mutex
	kept *heads // of the current exchange; nil before the first
}

// heads are the heads of one exchange. They are guarded by the lock of their wire.
type heads struct {
	sent  []byte // the head of the request
	asked bool   // the request's head is complete
	got   []byte // the head of the response, after interim ones
	seen  int    // how much of got was searched
	line  int    // the start of the current line in got
	done  bool   // got is the whole head, or none was found
}

// Heads begins an exchange.
func (w *wire) Heads() func(status int) (request, response []byte, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := &heads{}
	w.kept = h
	return func(status int) (request, response []byte, ok bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		ok = h.done && statusOf(h.got) == status
		h.done = true // the rest is body
		if !h.asked {
			h.sent = nil
		}
		return h.sent, h.got, ok
	}
}

// Read reads from the connection.
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.kept != nil && !w.kept.done {
		w.kept.receive(p[:n])
	}
	return n, err
}

// Write writes to the connection.
func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock() // before the write: the response may arrive before it returns
	if h := w.kept; h != nil && !h.asked {
		h.send(p)
	}
	w.mu.Unlock()
	return w.Conn.Write(p)
}

var headEnd = []byte("\r\n\r\n")

// send records the head of the request, which net/http always ends with two CRLFs.
func (h *heads) send(p []byte) {
	from := max(len(h.sent)-len(headEnd), 0)
	h.sent = append(h.sent, p[:min(len(p), maxHead)]...)
	if end := bytes.Index(h.sent[from:], headEnd); end >= 0 {
		h.sent, h.asked = h.sent[:from+end+len(headEnd)], true
	} else if len(h.sent) > maxHead {
		h.sent, h.asked = nil, true
	}
}

// receive records the head of the response, up to its blank line. Each search continues where the
// last one stopped, so that a head sent byte by byte takes linear time.
func (h *heads) receive(p []byte) {
	h.got = append(h.got, p[:min(len(p), maxHead)]...)
	for !h.done {
		i := bytes.IndexByte(h.got[h.seen:], '\n')
		if i < 0 {
			h.seen = len(h.got)
			break
		}
		end := h.seen + i
		blank := len(bytes.TrimRight(h.got[h.line:end], "\r")) == 0
		h.seen, h.line = end+1, end+1
		switch status := statusOf(h.got); {
		case !blank:
		case status >= 100 && status < 200 && status != http.StatusSwitchingProtocols:
			h.got = h.got[end+1:] // an interim response
			h.seen, h.line = 0, 0
		default:
			h.got, h.done = bytes.Clone(h.got[:end+1]), true
		}
	}
	if !h.done && len(h.got) > maxHead {
		h.got, h.done = nil, true
	}
}

// statusOf returns the status of a head as net/http parses it, or 0.
func statusOf(head []byte) int {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	_, rest, _ := bytes.Cut(line, []byte(" "))
	rest = bytes.TrimLeft(rest, " ")
	status, _ := strconv.Atoi(string(rest[:min(len(rest), 3)]))
	return status
}
