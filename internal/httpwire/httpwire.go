// Package httpwire records the heads of HTTP/1 messages as they pass over a connection. Package
// net/http parses them into maps, which lose the order, spelling and spacing that an archive keeps.
package httpwire

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"sync"
)

// ErrFields is returned by reads of a connection once a head has more fields than allowed.
var ErrFields = errors.New("too many header fields")

// Conn is a connection of HTTP/1 that records heads. Its methods are safe for concurrent use. They
// have to be, since net/http reads and writes in goroutines of its own.
type Conn struct {
	net.Conn
	// TLS is the state of an encrypted connection, which net/http takes for a plain one; nil if it
	// is plain.
	TLS *tls.ConnectionState

	maxBytes, maxFields int

	mu    sync.Mutex
	ended bool // nothing more can be read
	heads *Heads
}

// New returns a Conn on top of conn. It keeps no head of more than maxBytes. Reads fail with
// [ErrFields] once the heads of one exchange have more than maxFields fields.
func New(conn net.Conn, maxBytes, maxFields int) *Conn {
	c := &Conn{Conn: conn, maxBytes: maxBytes, maxFields: maxFields}
	c.heads = &Heads{conn: c}
	return c
}

// Heads are those of one exchange, guarded by the lock of their connection. Its methods are safe
// for concurrent use.
//
// Each exchange has its own. A response without a body frees the connection before the exchange has
// taken its heads, and by then the next exchange on that connection may have begun, or even ended.
type Heads struct {
	conn   *Conn
	begun  bool   // some of the request was written
	asked  bool   // all of its head was written
	sent   []byte // the head of the request; nil if it is too long
	got    []byte // read since the exchange began, up to the end of the head
	from   int    // where in got the current head starts, after interim ones
	line   int    // where in got the current line starts
	seen   int    // how much of got was scanned
	fields int    // in the heads so far
	over   bool   // got is longer than maxBytes
	done   bool   // the head is complete or too long; what follows is not recorded
}

// Begin prepares for the next exchange and returns its heads. Call it when the connection is chosen
// for a request, as by httptrace.ClientTrace.GotConn. All calls before the request is written
// return the same heads, so that several layers may observe an exchange. What a new connection
// sends unasked is kept, since net/http takes it for the response.
func (c *Conn) Begin() *Heads {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.heads.begun {
		c.heads = &Heads{conn: c}
	}
	return c.heads
}

// Take returns the heads: that of the request, and the last one of the response. ok reports that
// the response's is complete, and is where resp comes from. It is not if a layer has made resp of
// something else, or if the server sent something unasked on a kept connection. A nil request means
// that it is unknown.
func (h *Heads) Take(resp *http.Response) (request, response []byte, ok bool) {
	h.conn.mu.Lock()
	defer h.conn.mu.Unlock()
	if h.asked {
		request = h.sent
	}
	ok = h.done && !h.over && statusOf(h.got) == resp.StatusCode && hasFields(resp.Header, h.got)
	h.done = true // what still comes is body
	return request, h.got, ok
}

// detached are the heads of a connection between exchanges. Nothing changes them.
var detached = &Heads{begun: true, asked: true, done: true}

// Detach makes the connection forget h, which stays as it is: an idle connection would keep it until
// the next exchange.
func (h *Heads) Detach() {
	h.conn.mu.Lock()
	defer h.conn.mu.Unlock()
	if h.conn.heads == h {
		h.conn.heads = detached
	}
}

// hasFields reports whether h has the fields of a head, which begins with its status line, in their
// order, except those that net/http takes out. It may have others.
func hasFields(h http.Header, head []byte) bool {
	var seen map[string]int // of the values of a field that has several
	_, rest, _ := bytes.Cut(head, []byte("\n"))
	for len(rest) > 0 {
		var line []byte
		line, rest = cutLine(rest)
		for folded := false; len(rest) > 0 && (rest[0] == ' ' || rest[0] == '\t'); folded = true {
			if !folded {
				line = bytes.Clone(line)
			}
			var more []byte
			more, rest = cutLine(rest)
			line = append(append(line, ' '), more...)
		}
		before, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			continue
		}
		name, values := valuesOf(h, string(before))
		switch name {
		case "Transfer-Encoding", "Trailer", "Content-Length":
			continue
		}
		from := seen[name]
		value = bytes.TrimLeft(value, " \t")
		at := slices.IndexFunc(values[from:], func(v string) bool { return v == string(value) })
		if at < 0 {
			return false
		}
		if len(values) > 1 {
			if seen == nil {
				seen = make(map[string]int)
			}
			seen[name] = from + at + 1
		}
	}
	return true
}

// valuesOf returns the values of a field and its name as h has it. Most names are written like
// that.
func valuesOf(h http.Header, name string) (string, []string) {
	values, ok := h[name]
	if !ok {
		name = textproto.CanonicalMIMEHeaderKey(name)
		values = h[name]
	}
	return name, values
}

// cutLine cuts a line without the space around it, as net/http reads it.
func cutLine(b []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(b, []byte("\n"))
	return bytes.Trim(bytes.TrimSuffix(line, []byte("\r")), " \t"), rest
}

// TooLarge reports whether the response's head has too many fields, or limit bytes without an end.
func (h *Heads) TooLarge(limit int64) bool {
	h.conn.mu.Lock()
	defer h.conn.mu.Unlock()
	return h.fields > h.conn.maxFields || h.over || !h.done && int64(len(h.got)) >= limit
}

// BrokeOff reports whether the connection ended within the head of the response. net/http then says
// that the line, which was cut, is malformed.
func (h *Heads) BrokeOff() bool {
	h.conn.mu.Lock()
	defer h.conn.mu.Unlock()
	const version = "HTTP/"
	begins := h.got[:min(len(h.got), len(version))]
	return h.conn.ended && !h.done && len(begins) > 0 && bytes.HasPrefix([]byte(version), begins)
}

// Read reads from the connection and records what belongs to a head.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if (n > 0 || err != nil) && !c.record(p[:n], err) {
		return 0, ErrFields
	}
	return n, err
}

// CloseWrite ends the writing, if the connection can do that. net/http offers it to callers that
// have switched protocols.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Write writes to the connection and records the head of the request.
func (c *Conn) Write(p []byte) (int, error) {
	// Beforehand, since the answer may arrive before Write returns.
	c.mu.Lock()
	if !c.heads.asked {
		c.heads.write(p)
	}
	c.mu.Unlock()
	return c.Conn.Write(p)
}

// write records p up to the end of the request's head, which net/http ends with two CRLFs.
func (h *Heads) write(p []byte) {
	const end = "\r\n\r\n"
	from := max(len(h.sent)-len(end), 0)
	h.begun, h.sent = true, append(h.sent, p[:min(len(p), h.conn.maxBytes)]...)
	if i := bytes.Index(h.sent[from:], []byte(end)); i >= 0 {
		h.asked, h.sent = true, h.sent[:from+i+len(end)]
	} else if len(h.sent) >= h.conn.maxBytes {
		h.asked, h.sent = true, nil
	}
}

// record records b, and reports whether the number of fields is within the limit. err is the error
// of the read.
func (c *Conn) record(b []byte, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = c.ended || err != nil
	h := c.heads
	if !h.done {
		h.read(b)
	}
	return h.fields <= c.maxFields
}

// read records b up to the blank line that ends the head of the response.
func (h *Heads) read(b []byte) {
	if len(h.got) == 0 {
		// Usually the whole head arrives at once, followed by much of the body, which need not be
		// copied.
		if end, lines := headEnd(b); end > 0 && !isInterim(statusOf(b)) {
			h.got, h.fields, h.done = bytes.Clone(b[:end]), lines-1, true
			return
		}
	}
	h.search(b)
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
func (h *Heads) search(b []byte) {
	// It continues where it stopped, so that a head that arrives byte by byte does not cost the
	// square of its length.
	h.got = append(h.got, b...)
	for {
		i := bytes.IndexByte(h.got[h.seen:], '\n')
		if i < 0 {
			break
		}
		end := h.seen + i
		blank := end == h.line || end == h.line+1 && h.got[h.line] == '\r'
		first := h.line == h.from
		h.line, h.seen = end+1, end+1
		switch {
		case !blank && !first:
			h.fields++
		case !blank:
		case isInterim(statusOf(h.got[h.from:])):
			h.from = h.line
		default:
			h.got, h.done = bytes.Clone(h.got[h.from:h.line]), true
			return
		}
	}
	h.seen = len(h.got)
	if len(h.got) > h.conn.maxBytes {
		h.got, h.done, h.over = nil, true, true
	}
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
