package fetch

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"sync"
)

// wire is a connection that speaks HTTP/1.x and keeps the heads that pass over it: net/http parses
// them into maps and so loses order, spelling and spacing, which an archive must keep.
//
// The transport reads and writes in goroutines of its own, hence the lock.
type wire struct {
	net.Conn
	addr netip.AddrPort
	tls  *tls.ConnectionState // nil without TLS
	most int                  // fields in the heads of one exchange

	mu    sync.Mutex
	ended bool // there is nothing more to read
	heads *heads
}

// heads are those of one exchange. They are guarded by the lock of the wire that they came over.
//
// Each exchange has its own: a response without a body leaves its connection free before the
// exchange has got hold of it, and by then the next one may have begun there, and even be over.
type heads struct {
	begun  bool   // some of the request was written
	asked  bool   // all of its head was
	sent   []byte // the head of the request
	got    []byte // what was read since the exchange began, up to the end of the head
	from   int    // where in got the present head starts; interim ones lie before it
	line   int    // where in got the present line starts
	seen   int    // how much of got was looked at
	fields int    // of the heads so far
	done   bool   // the head is complete: what comes is body
}

func newWire(conn net.Conn, addr netip.AddrPort, most int) *wire {
	return &wire{Conn: conn, addr: addr, most: most, heads: new(heads)}
}

// begin makes w ready for the next exchange and returns where its heads will be. It may be called
// more than once for one exchange, before the request is written. What a fresh connection said
// before it was asked is kept: to net/http it is the response.
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

// Read reads from the connection and keeps what belongs to a head. How many bytes that can be is
// limited by the transport, which stops reading at MaxHeader bytes without a complete head. How
// many fields it is limited here, before the transport makes something larger of them.
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if (n > 0 || err != nil) && !w.record(p[:n], err) {
		return 0, errFields
	}
	return n, err
}

// Write writes to the connection and keeps the head of the request.
func (w *wire) Write(p []byte) (int, error) {
	// Before it is sent: the answer may be there before Write returns.
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

// record keeps b up to the blank line that ends a head, and reports whether it has no more fields
// than it may. err is what came with b.
func (w *wire) record(b []byte, err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = w.ended || err != nil
	h := w.heads
	if h.done {
		return true
	}
	if len(h.got) == 0 {
		// Nearly always the whole head comes at once, with much of the body behind it that need
		// not be copied.
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

// search keeps b, too, and looks for the blank line in all that was kept.
func (h *heads) search(b []byte) {
	// The search goes on where it stopped: a head that comes byte by byte must not cost its
	// length squared.
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

// take returns the heads of one exchange. ok says that the response's is complete and has the
// given status. It has not if the server spoke out of turn on a kept-alive connection.
func (w *wire) take(h *heads, status int) (request, response []byte, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	request, response = h.sent, h.got
	ok = h.done && statusOf(response) == status
	h.done = true // what still comes is body
	return request, response, ok
}

// overflows reports whether a head came that has too many fields, or limit bytes without an end.
func (w *wire) overflows(h *heads, limit int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return h.fields > w.most || !h.done && int64(len(h.got)) >= limit
}

// brokeOff reports whether the connection ended within the head of a response. net/http takes what
// is left of the line that was cut for something that is not HTTP.
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
