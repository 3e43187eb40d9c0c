package replay

import (
	"context"
	"net/http"
	"time"
)

// Rewriting a page takes up to this many times its size in memory: the page as archived and in
// UTF-8, the longest token, and a token being written.
const perByte = 10

// smallPage is the size up to which pages are rewritten many at a time, in bytes. Nearly all are
// smaller. They have a budget of their own, so that they never wait for a large one.
const smallPage = 256 << 10

// unit is the smallest share of a budget, in bytes.
const unit = 1 << 20

// budget bounds the memory that all requests take together. Requests wait in the order in which
// they ask, so that small ones cannot starve a large one. Its methods are safe for concurrent use.
type budget struct {
	turn chan struct{} // held by the request that takes units
	used chan struct{} // one element for each unit
}

func newBudget(bytes int64) *budget {
	return &budget{make(chan struct{}, 1), make(chan struct{}, max(bytes/unit, 1))}
}

// take waits until bytes are free, and returns a function that gives them back. No request takes
// more than there is, or takes again before it has given back.
func (b *budget) take(ctx context.Context, bytes int64) (giveBack func(), err error) {
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	n := min(int((bytes+unit-1)/unit), cap(b.used))
	for i := range n {
		select {
		case b.used <- struct{}{}:
		case <-ctx.Done():
			b.free(i)
			return nil, ctx.Err()
		}
	}
	return func() { b.free(n) }, nil
}

func (b *budget) free(n int) {
	for range n {
		<-b.used
	}
}

// maxHolding is how long a response may hold memory. A script that stops reading its responses
// would otherwise keep all others waiting.
const maxHolding = 30 * time.Second

// take is budget.take for a request, which it ends after maxHolding. It is false if the client does
// not wait any longer. Giving back restores the server's own deadline.
func (v *Handler) take(w http.ResponseWriter, r *http.Request, b *budget, bytes int64) (func(),
	bool) {
	giveBack, err := b.take(r.Context(), bytes)
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable) // an operator's deadline may have ended the wait
		return nil, false
	}
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(maxHolding)) // not every writer has deadlines
	return func() {
		_ = control.SetWriteDeadline(ownDeadline(r))
		giveBack()
	}, true
}

// ownDeadline returns when a response has to be written that begins now, by the server's WriteTimeout.
// The zero Time means that the server has none.
func ownDeadline(r *http.Request) (t time.Time) {
	if s, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && s.WriteTimeout > 0 {
		t = time.Now().Add(s.WriteTimeout)
	}
	return t
}

// maxUnread is how long a file may stay open of which nothing is read. The system tells that a client has
// read only when a part of its buffer is free, which may be megabytes.
const maxUnread = 10 * time.Minute

// patient ends a response of which nothing is read for maxUnread: it keeps a file open. A server's own
// WriteTimeout takes its place.
type patient struct {
	http.ResponseWriter
	control *http.ResponseController // nil if the server has a WriteTimeout
}

func patiently(w http.ResponseWriter, r *http.Request) *patient {
	if !ownDeadline(r).IsZero() {
		return &patient{w, nil}
	}
	return &patient{w, http.NewResponseController(w)}
}

// Write implements [io.Writer].
func (p *patient) Write(data []byte) (int, error) {
	if p.control != nil {
		_ = p.control.SetWriteDeadline(time.Now().Add(maxUnread))
	}
	return p.ResponseWriter.Write(data)
}

// end removes the deadline for the next response of the connection, when this one is sent.
func (p *patient) end() {
	if p.control != nil {
		_ = p.control.Flush()
		_ = p.control.SetWriteDeadline(time.Time{})
	}
}
