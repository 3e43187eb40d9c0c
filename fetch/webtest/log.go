package webtest

import (
	"bufio"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"
	"unique"
)

// Request is one request as the server saw it.
type Request struct {
	Time      time.Time  `json:"time"` // of arrival, see the package's promise
	Host      string     `json:"host"` // as the client named it, without a port
	Addr      netip.Addr `json:"addr"` // virtual address it arrived at; of a proxy request, the host's own
	Method    string     `json:"method"`
	Path      string     `json:"path"` // with its query
	UserAgent string     `json:"userAgent"`
	Status    int        `json:"status"` // 0 until the answer begins, or if none went out in HTTP
	Proto     string     `json:"proto"`  // such as "HTTP/1.1"
	TLS       bool       `json:"tls"`
	Answered  time.Time  `json:"answered,omitzero"` // when the answer began

	// What the answer said.
	RetryAfter time.Duration `json:"retryAfter,omitzero"` // of an error; 0 if it asked for no wait
	Location   string        `json:"location,omitempty"`  // of a redirect, as sent; else ""
	Version    uint64        `json:"version,omitzero"`    // of a page: another one after each change
}

// URL returns the address of what was asked for.
func (r Request) URL() string {
	if r.TLS {
		return "https://" + r.Host + r.Path
	}
	return "http://" + r.Host + r.Path
}

// chunk is the unit in which the log grows. A request never moves, so that its status can be added
// later.
const chunk = 1024

// recorder keeps the requests. Its cost per request is two locks and one copy, whatever the
// length of the log. It is safe for concurrent use.
type recorder struct {
	mu     sync.Mutex
	keep   bool
	chunks [][]Request
	tsv    *bufio.Writer // nil means none
	line   []byte
}

func newRecorder(keep bool, tsv io.Writer) *recorder {
	l := &recorder{keep: keep}
	if tsv != nil {
		l.tsv = bufio.NewWriterSize(tsv, 1<<16)
	}
	return l
}

// begin logs a request that has arrived. The caller must call end.
func (l *recorder) begin(r Request) *Request {
	if !l.keep {
		return &r
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r.UserAgent = unique.Make(r.UserAgent).Value() // one copy of each, rather than its whole header
	n := len(l.chunks)
	if n == 0 || len(l.chunks[n-1]) == chunk {
		l.chunks = append(l.chunks, make([]Request, 0, chunk))
		n++
	}
	last := append(l.chunks[n-1], r)
	l.chunks[n-1] = last
	return &last[len(last)-1]
}

// end adds what is known about the answer to a request.
func (l *recorder) end(r *Request, answer Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Status, r.RetryAfter, r.Location, r.Version = answer.Status, answer.RetryAfter, answer.Location, answer.Version
	if r.Status != 0 {
		r.Answered = time.Now()
	}
	if l.tsv == nil {
		return
	}
	b := r.Time.UTC().AppendFormat(l.line[:0], time.RFC3339Nano)
	b = append(appendField(append(b, '\t'), r.Host), '\t')
	b = append(r.Addr.AppendTo(b), '\t')
	b = append(appendField(b, r.Method), '\t')
	b = append(appendField(b, r.URL()), '\t')
	b = append(strconv.AppendInt(b, int64(r.Status), 10), '\t')
	l.line = append(appendField(b, r.UserAgent), '\n')
	l.tsv.Write(l.line) // an error stays with the buffer and comes out of flush
}

// appendField keeps a client from forging lines of the log.
func appendField(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c >= ' ' && c != 0x7f {
			b = append(b, c)
		} else {
			b = append(b, '?')
		}
	}
	return b
}

// flush also reports the first error of all the writes before it.
func (l *recorder) flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tsv == nil {
		return nil
	}
	return l.tsv.Flush()
}

// all copies the log, since requests in flight still change in it.
func (l *recorder) all() []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []Request
	for _, c := range l.chunks {
		all = append(all, c...)
	}
	// Handlers may reach begin in another order than their requests arrived.
	slices.SortStableFunc(all, func(a, b Request) int { return a.Time.Compare(b.Time) })
	return all
}
