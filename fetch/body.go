package fetch

import (
	"context"
	"io"
	"net/http"
	"runtime"
)

// firstBuffer is the size of the first buffer for a body. Most of what a slow or silent server costs
// is what its answer is going to need; so a buffer grows with what has come, and what was announced
// is believed once a third of it is there.
const firstBuffer = 4 << 10

// readBodies reads the body of resp and decodes it into r, both up to limit bytes, or up to those
// that the Options allow.
func (c *Client) readBodies(x *exchange, resp *http.Response, limit int64, r *Response) {
	if limit <= 0 {
		limit = c.opts.MaxBody
	}
	// An exchange without a body needs no buffer; with conditional requests it is the common case.
	if resp.Body == http.NoBody {
		x.stamp(&x.timing.done)
		return
	}
	x.watch.answered()
	coding := codingOf(resp.Header.Values("Content-Encoding"))
	b := bodyReader{c: c, x: x, limit: limit, coding: coding}
	r.Raw, r.RawCut = b.read(resp.Body, resp.ContentLength)
	x.stamp(&x.timing.done)
	r.Body, r.Truncated = b.decode(r.Raw, r.RawCut)
	if b.held.n == 0 {
		return
	}
	b.held.shrink(int64(cap(r.Raw) + cap(r.Body)))
	r.held = new(reservation)
	*r.held = b.held
	// A caller who forgets Release must not lock others out for ever.
	runtime.AddCleanup(r, func(held *reservation) { held.shrink(0) }, r.held)
}

// bodyReader reads one body. Neither what came over the wire nor what it decodes to grows beyond
// smallBody without a reservation for the most that both can become.
type bodyReader struct {
	c      *Client
	x      *exchange
	limit  int64
	coding string // "" for none
	held   reservation
	waited bool // for memory, in which time a server may have lost its patience
}

// read reads a body of which promised bytes are announced, -1 for an unknown number.
func (b *bodyReader) read(body io.Reader, promised int64) ([]byte, Kind) {
	most := b.limit
	if promised >= 0 {
		most = min(promised, b.limit)
	}
	g := growth{&b.c.buffers, min(smallBody, b.limit), most}
	raw, over, err := g.read(nil, body, b.x.watch.add)
	if over && b.limit > smallBody {
		need := roundUp(most + 1)
		if b.c.knows(b.coding) {
			need += roundUp(b.limit + 1)
		}
		if !b.reserve(need) {
			return raw, b.cut(false, errMemory)
		}
		raw = raw[:smallBody+1] // the byte that told of more
		if promised >= 0 {
			raw = b.c.buffers.grow(raw, most+1)
		}
		g.limit = b.limit
		raw, over, err = g.read(raw, body, b.x.watch.add)
	}
	return raw, b.cut(over, err)
}

// reserve waits for n bytes of memory. The server is not to blame for that time.
func (b *bodyReader) reserve(n int64) bool {
	if b.c.budget == nil || b.held.n > 0 {
		return true
	}
	b.x.watch.pause()
	defer b.x.watch.resume()
	got, waited, err := b.c.budget.reserve(b.x.ctx, n)
	b.held = reservation{b.c.budget, got}
	b.waited = b.waited || waited
	return err == nil
}

// cut says why a body ended where it did.
func (b *bodyReader) cut(over bool, err error) Kind {
	cut := cutBy(b.x.ctx, over, err)
	if err == errMemory || cut == CutDisconnect && b.waited {
		return CutMemory
	}
	return cut
}

// cutBy says why a body ended where it did, in an exchange with ctx.
func cutBy(ctx context.Context, over bool, err error) Kind {
	switch {
	case over:
		return CutLength
	case err == nil:
		return Whole
	case context.Cause(ctx) == errTime:
		return CutTime
	case context.Cause(ctx) == errSlow:
		return CutSlow
	}
	return CutDisconnect
}
