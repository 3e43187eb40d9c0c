package fetch

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"sync"
)

// minFirstBuffer is the first buffer for a body of unknown length.
const minFirstBuffer = 16 << 10

// readBodies reads the body of resp and decodes it, both up to limit bytes, into r.
func (c *Client) readBodies(x *exchange, resp *http.Response, limit int64, r *Response) {
	// An exchange without a body needs no buffer; with conditional requests it is the common case.
	if resp.Body == http.NoBody {
		x.stamp(&x.timing.Done)
		return
	}
	x.watch.answered()
	coding := codingOf(resp.Header.Values("Content-Encoding"))
	b := bodyReader{c: c, x: x, limit: limit, coding: coding}
	r.Raw, r.RawCut = b.read(resp.Body, resp.ContentLength)
	x.stamp(&x.timing.Done)
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
func (b *bodyReader) read(body io.Reader, promised int64) ([]byte, Truncation) {
	first := int64(minFirstBuffer)
	if promised >= 0 {
		// One more byte than promised, so that the end is seen without growing.
		first = min(promised, smallBody) + 1
	}
	raw := b.c.buffers.get(int(min(first, b.limit+1)))
	raw, over, err := readUpTo(raw, body, min(smallBody, b.limit), b.x.watch.add)
	if over && b.limit > smallBody {
		most := b.limit
		if promised >= 0 {
			most = min(promised, b.limit)
		}
		need := most + 1
		if b.c.knows(b.coding) {
			need += b.limit
		}
		if !b.reserve(need) {
			return raw, b.cut(false, errMemory)
		}
		raw = raw[:smallBody+1] // the byte that told of more
		if promised >= 0 {
			raw = grown(raw, most+1)
		}
		raw, over, err = readUpTo(raw, body, b.limit, b.x.watch.add)
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
func (b *bodyReader) cut(over bool, err error) Truncation {
	cut := cutBy(b.x.ctx, over, err)
	if err == errMemory || cut == CutDisconnect && b.waited {
		return CutMemory
	}
	return cut
}

// cutBy says why a body ended where it did, in an exchange with ctx.
func cutBy(ctx context.Context, over bool, err error) Truncation {
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

// readUpTo reads r to its end or to limit bytes into buf, which grows, and reports whether there
// was more than that. It tells progress, if not nil, of each piece. What was read is returned with
// an error, too.
func readUpTo(
	buf []byte, r io.Reader, limit int64, progress func(n int),
) (read []byte, over bool, err error) {
	for {
		// Doubling, where append would grow a large buffer by a quarter and copy it more often.
		if len(buf) == cap(buf) {
			buf = grown(buf, min(2*int64(max(len(buf), 512)), limit+1))
		}
		room := buf[len(buf):cap(buf)]
		// The byte after the limit is asked for: it tells a body that ends there from one that
		// goes on.
		if left := limit - int64(len(buf)); int64(len(room)) > left {
			room = room[:left+1]
		}
		n, err := r.Read(room)
		buf = buf[:len(buf)+n]
		if progress != nil && n > 0 {
			progress(n)
		}
		switch {
		case int64(len(buf)) > limit:
			return buf[:limit], true, nil
		case err == io.EOF:
			return buf, false, nil
		case err != nil:
			return buf, false, err
		}
	}
}

// grown returns a copy of buf with a capacity of size bytes.
func grown(buf []byte, size int64) []byte {
	return append(make([]byte, 0, size), buf...)
}

// maxKeptBuffer keeps one large page from lending its size to the memory of many small ones.
const maxKeptBuffer = 1 << 20

// buffers are bodies that were released. Its methods are safe for concurrent use.
type buffers struct{ pool sync.Pool } // of *[]byte

// get returns an empty buffer for at least size bytes.
func (b *buffers) get(size int) []byte {
	// One that is too small is dropped, so that the pool grows to what the pages need.
	if p, ok := b.pool.Get().(*[]byte); ok && cap(*p) >= size {
		return *p
	}
	return make([]byte, 0, size)
}

func (b *buffers) put(buf []byte) {
	if buf = buf[:0]; cap(buf) > 0 && cap(buf) <= maxKeptBuffer {
		b.pool.Put(&buf)
	}
}
