package fetch

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"slices"
	"sync"
)

// The first buffer for a body. A server may promise any length and send nothing, so a promise is
// believed up to maxFirstBuffer only.
const (
	minFirstBuffer = 16 << 10
	maxFirstBuffer = 256 << 10
)

// readBody reads the body up to MaxBody bytes, while its pace is watched, into memory and, if there
// is a Spool, from SpoolAbove bytes on into a file. ctx is that of the request.
func (c *Client) readBody(
	ctx context.Context, resp *http.Response, w *watch,
) (raw []byte, rest *spool, cut Truncation) {
	// An exchange without a body needs no buffer; with conditional requests it is the common case.
	if resp.Body == http.NoBody {
		return nil, nil, Whole
	}
	w.answered()
	first := int64(minFirstBuffer)
	if resp.ContentLength >= 0 {
		// One more byte than promised, so that the end is seen without growing. It is added last:
		// a promise may be the largest number there is.
		first = min(resp.ContentLength, maxFirstBuffer-1) + 1
	}
	limit := min(c.opts.MaxBody, c.opts.inMemory())
	raw, over, err := readUpTo(c.buffers.get(int(first)), resp.Body, limit, w.add)
	if !over || limit == c.opts.MaxBody {
		return raw, nil, cutBy(ctx, over, err)
	}
	// The byte that told of more lies behind the others.
	next := raw[limit : limit+1]
	rest, cut = c.spoolRest(ctx, raw, next, resp.Body, c.opts.MaxBody-limit, w.add)
	return raw, rest, cut
}

// inMemory returns how many bytes of a body Raw and Body may have, besides MaxBody.
func (o *Options) inMemory() int64 {
	if o.Spool == "" {
		return math.MaxInt64
	}
	return o.SpoolAbove
}

// cutBy says why a body ended where it did.
func cutBy(ctx context.Context, over bool, err error) Truncation {
	switch {
	case over:
		return CutLength
	case err == nil:
		return Whole
	case errors.Is(err, errDisk):
		return CutDisk
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
			buf = slices.Grow(buf, max(len(buf), 512))
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
