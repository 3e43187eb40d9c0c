package fetch

import (
	"context"
	"io"
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

// readBody reads the body up to limit bytes, while its pace is watched.
func (c *Client) readBody(x *exchange, resp *http.Response, limit int64) ([]byte, Truncation) {
	// An exchange without a body needs no buffer; with conditional requests it is the common case.
	if resp.Body == http.NoBody {
		return nil, Whole
	}
	x.watch.answered()
	first := int64(minFirstBuffer)
	if resp.ContentLength >= 0 {
		// One more byte than promised, so that the end is seen without growing. It is added last:
		// a promise may be the largest number there is.
		first = min(resp.ContentLength, maxFirstBuffer-1) + 1
	}
	raw, over, err := readUpTo(c.buffers.get(int(first)), resp.Body, limit, x.watch.add)
	return raw, cutBy(x.ctx, over, err)
}

// cutBy says why a body ended where it did.
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
