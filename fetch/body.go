package fetch

import (
	"context"
	"io"
	"math"
	"net/http"
	"runtime"

	"github.com/spinneret-go/spinneret/internal/content"
)

// maxLimit is no limit. It leaves room for the byte that tells of more, and for sums.
const maxLimit = math.MaxInt64 / 8

// firstBuffer is the size of the first buffer for a body. A buffer for the whole announced body
// would be most of what a slow server costs. So buffers grow with what has arrived, and an
// announced length is believed once a third of it is there.
const firstBuffer = 12 << 10

// readBodies reads and decodes the body of resp into r, each up to limit bytes; 0 means
// Options.MaxBody.
func (c *Client) readBodies(x *exchange, resp *http.Response, limit int64, r *Response) {
	if limit <= 0 {
		limit = c.opts.MaxBody
	}
	limit = min(limit, maxLimit)
	if c.budget != nil {
		limit = min(limit, c.opts.MaxMemory/(memoryPerBody+1))
	}
	// The common case with conditional requests.
	if resp.Body == http.NoBody {
		return
	}
	x.watch.answered()
	b := bodyReader{c: c, x: x, limit: limit, codings: content.Of(resp.Header["Content-Encoding"])}
	defer func() {
		if r.memory == nil && b.held != nil { // a decoder has panicked
			b.held.shrink(0)
		}
	}()
	r.Raw, r.RawCut = b.read(resp.Body, resp.ContentLength)
	r.Body, r.Truncated = b.decode(r.Raw, r.RawCut)
	r.memory = &memory{held: b.held, buffers: [2][]byte{r.Raw}}
	if !sameMemory(r.Raw, r.Body) {
		r.memory.buffers[1] = r.Body
	}
	if b.held == nil {
		return
	}
	b.held.shrink(int64(cap(r.memory.buffers[0]) + cap(r.memory.buffers[1])))
	// A caller who forgets Release must not starve others forever.
	runtime.AddCleanup(r.memory, func(held *reservation) { held.shrink(0) }, b.held)
}

// sameMemory reports whether two slices begin at the same byte of a buffer. Even an empty one may
// have a buffer, which must not be recycled twice: it would then hold two bodies at a time.
func sameMemory(a, b []byte) bool {
	return cap(a) > 0 && cap(b) > 0 && &a[:1][0] == &b[:1][0]
}

// bodyReader reads one body. Neither the raw nor the decoded body grows beyond smallBody without a
// reservation.
type bodyReader struct {
	c       *Client
	x       *exchange
	limit   int64
	codings string       // by content.Of
	held    *reservation // nil before the first one
	most    int64        // that the body may need to hold
	waited  bool         // for memory; the server may have given up meanwhile, or have too little time left
}

// read reads a body with an announced length, -1 if that is unknown.
func (b *bodyReader) read(body io.Reader, promised int64) ([]byte, Kind) {
	size := b.limit
	if promised >= 0 {
		size = min(promised, b.limit)
	}
	b.most = grown(size)
	if b.c.decodes(b.codings) {
		b.most = roundUp(size+1) + grown(b.limit) + content.Windows(b.codings)
	}
	g := growth{&b.c.buffers, min(smallBody, b.limit), size, false}
	raw, over, err := b.fill(b.x.ctx, g, body, b.limit, 0, b.x.watch.add)
	return raw, b.cut(over, err)
}

// fill reads up to limit bytes of r as g.read does, and reserves memory for each step beyond that of
// g, besides others that the body holds.
func (b *bodyReader) fill(
	ctx context.Context, g growth, r io.Reader, limit, others int64, progress func(n int),
) (buf []byte, over bool, err error) {
	for {
		buf, over, err = g.read(buf, r, progress)
		if !over || g.limit == limit {
			return buf, over, err
		}
		next := 2 * g.limit
		if g.most > g.limit && (g.sure || g.most < next) {
			next = g.most
		}
		next = min(next, limit)
		if !b.reserve(ctx, others+grown(next)) {
			return buf, false, errMemory
		}
		buf = buf[:g.limit+1] // the byte that told of more
		g.limit = next
	}
}

// reserve waits for n bytes of memory in all, until ctx ends. That time does not count against the
// server.
func (b *bodyReader) reserve(ctx context.Context, n int64) bool {
	if b.c.budget == nil {
		return true
	}
	if b.held == nil {
		b.held = &reservation{budget: b.c.budget}
	}
	b.x.watch.pause()
	defer b.x.watch.resume()
	waited, err := b.c.budget.reserve(ctx, b.held, n, b.most)
	b.waited = b.waited || waited
	return err == nil
}

// cut says why a body ended where it did.
func (b *bodyReader) cut(over bool, err error) Kind {
	cut := cutBy(b.x.ctx, over, err)
	if err == errMemory || b.waited && (cut == CutDisconnect || cut == CutTime) {
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
	case context.Cause(ctx) == errTime, context.Cause(ctx) == errReader:
		return CutTime
	case context.Cause(ctx) == errSlow:
		return CutSlow
	}
	return CutDisconnect
}
