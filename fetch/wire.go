package fetch

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"sync"
)

// wire is an HTTP/1.x connection that records the heads passing over it. net/http parses them into
// maps, which lose the order, spelling and spacing that an archive must keep.
//
// The transport reads and writes in its own goroutines, hence the lock.
type wire struct {
	net.Conn
	addr netip.AddrPort
	tls  *tls.ConnectionState // nil without TLS
	most int                  // fields in the heads of one exchange

	mu    sync.Mutex
	ended bool // nothing more can be read
	heads *heads
}

// heads are those of one exchange, guarded by the lock of its wire.
//
// Each exchange has its own. A response without a body frees the connection before the exchange has
// taken its heads, and by then the next exchange on that connection may have begun, or even ended.
type heads struct {
	begun  bool   // some of the request was written
	asked  bool   // all of its head was written
	sent   []byte // the head of the request
	got    []byte // read since the exchange began, up to the end of the head
	from   int    // where in got the current head starts, after interim ones
	line   int    // where in got the current line starts
	seen   int    // how much of got was scanned
	fields int    // in the heads so far
	done   bool   // the head is complete; the body follows
}

func newWire(conn net.Conn, addr netip.AddrPort, most int) *wire {
	return &wire{Conn: conn, addr: addr, most: most, heads: new(heads)}
}

// begin prepares w for the next exchange and returns its heads. It may be called several times
// before the request is written. What a new connection sends unasked is kept, since net/http takes
// it for the response.
func (w *wire) begin() *heads {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.heads.begun {
		w.heads = new(heads)
	}
	return w.heads
}

// Heads is for observers: see [Client.Transport].
func (w *wire) Heads() func(status int) (request, response []byte, ok bool) {
	h := w.begin()
	return func(status int) (request, response []byte, ok bool) { return w.take(h, status) }
}

var errFields = errors.New("too many header fields")

// Read reads from the connection and records what belongs to a head. The transport limits the bytes
// of a head: it stops at MaxHeader. The number of fields is limited here, before the transport
// turns them into something larger.
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if (n > 0 || err != nil) && !w.record(p[:n], err) {
		return 0, errFields
	}
	return n, err
}

// Write writes to the connection and records the head of the request.
func (w *wire) Write(p []byte) (int, error) {
	// Beforehand, since the answer may arrive before Write returns.
	w.mu.Lock()
	if h := w.heads; !h.asked {
		h.begun, h.sent = true, append(h.sent, p...)
		if end := bytes.Index(h.sent, []byte("\r\n\r\n")); end >= 0 {
			h.asked, h.sent = true, h.sent[:end+len("\r\n\r\n")]
		}
	}
	w.mu.Unlock()
	return w.Conn.Write(p)
}

// record records b up to the blank line that ends a head, and reports whether the number of fields
// is within the limit. err is the error of the read.
func (w *wire) record(b []byte, err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = w.ended || err != nil
	h := w.heads
	if h.done {
		return true
	}
	if len(h.got) == 0 {
		// Usually the whole head arrives at once, followed by much of the body, which need not be
		// copied.
		if end, lines := headEnd(b); end > 0 && !isInterim(statusOf(b)) {
			h.got, h.fields, h.done = bytes.Clone(b[:end]), lines-1, true
			return h.fields <= w.most
		}
	}
	h.search(b)
	return h.fields <= w.most
}

// headEnd returns the length of the head that b begins with, 0 if it is not complete, and how many
// lines it has without the blank one. Like net/http it takes a bare LF for the end of a line.
func headEnd(b []byte) (end, lines int) {
	for line := 0; ; lines++ {
		i := bytes.IndexByte(b[line:], '\n')
		if i < 0 {
			return 0, lines
		}
		if i == 0 || i == 1 && b[line] == '\r' {
			return line + i + 1, lines
		}
		line += i + 1
	}
}

// search appends b and looks for the blank line in everything recorded so far.
func (h *heads) search(b []byte) {
	// It continues where it stopped, so that a head that arrives byte by byte does not cost the
	// square of its length.
	h.got = append(h.got, b...)
	for {
		i := bytes.IndexByte(h.got[h.seen:], '\n')
		if i < 0 {
			h.seen = len(h.got)
			return
		}
		end := h.seen + i
		blank := end == h.line || end == h.line+1 && h.got[h.line] == '\r'
		first := h.line == h.from
		h.line, h.seen = end+1, end+1
		if !blank {
			if !first {
				h.fields++
			}
			continue
		}
		if isInterim(statusOf(h.got[h.from:])) {
			h.from = h.line
			continue
		}
		h.got, h.done = h.got[h.from:h.line], true
		return
	}
}

// take returns the heads of one exchange. ok reports that the response's is complete and has the
// given status. It has not if the server sent something unasked on a kept-alive connection.
func (w *wire) take(h *heads, status int) (request, response []byte, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	request, response = h.sent, h.got
	ok = h.done && statusOf(response) == status
	h.done = true // what still comes is body
	return request, response, ok
}

// overflows reports whether a head has too many fields, or limit bytes without an end.
func (w *wire) overflows(h *heads, limit int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return h.fields > w.most || !h.done && int64(len(h.got)) >= limit
}

// brokeOff reports whether the connection ended within the head of a response. net/http then says
// that the line, which was cut, is malformed.
func (w *wire) brokeOff(h *heads) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	const version = "HTTP/"
	begins := h.got[:min(len(h.got), len(version))]
	return w.ended && !h.done && len(begins) > 0 && bytes.HasPrefix([]byte(version), begins)
}

// isInterim reports whether a final response follows. 101 is final: the protocol changes.
func isInterim(status int) bool { return 100 <= status && status < 200 && status != 101 }

// statusOf returns the status of a head, as net/http reads it, or 0.
func statusOf(head []byte) int {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	_, rest, _ := bytes.Cut(line, []byte(" "))
	rest = bytes.TrimLeft(rest, " ")
	if len(rest) < 3 {
		return 0
	}
	status := 0
	for _, digit := range rest[:3] {
		if digit < '0' || digit > '9' {
			return 0
		}
		status = status*10 + int(digit-'0')
	}
	return status
}
