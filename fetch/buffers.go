package fetch

import (
	"io"
	"math/bits"
	"sync"
)

// growth says how a buffer grows while something is read into it.
type growth struct {
	pool  *buffers
	limit int64 // bytes that may be read
	most  int64 // bytes that are expected at most; a body that has more is read all the same
}

// minRoom is the least room worth a read. With less, the read would go through the small buffer of
// the connection.
const minRoom = 1 << 10

// read reads r to its end or to g.limit bytes into buf, which grows, and reports whether there was
// more than that. It tells progress, if not nil, of each piece. What was read is returned with an
// error, too.
func (g *growth) read(buf []byte, r io.Reader, progress func(n int)) ([]byte, bool, error) {
	for {
		// One more byte than expected, so that the end is seen without growing.
		room, missing := cap(buf)-len(buf), min(g.most, g.limit)+1-int64(cap(buf))
		if room == 0 || room < minRoom && missing > 0 {
			buf = g.pool.grow(buf, g.next(int64(cap(buf)), missing))
		}
		free := buf[len(buf):cap(buf)]
		// The byte after the limit is asked for: it tells a body that ends there from one that
		// goes on.
		if left := g.limit - int64(len(buf)); int64(len(free)) > left {
			free = free[:left+1]
		}
		n, err := r.Read(free)
		buf = buf[:len(buf)+n]
		if progress != nil && n > 0 {
			progress(n)
		}
		switch {
		case int64(len(buf)) > g.limit:
			return buf[:g.limit], true, nil
		case err == io.EOF:
			return buf, false, nil
		case err != nil:
			return buf, false, err
		}
	}
}

// next returns the size that follows size, where the buffer misses that many bytes of what it is
// expected to hold.
func (g *growth) next(size, missing int64) int64 {
	// The first steps are long, for the sake of most pages: each costs a copy and a system call.
	larger := max(2*size, firstBuffer)
	if size < 4*firstBuffer {
		larger = max(3*size, firstBuffer)
	}
	// Small pages that are announced need no step at all.
	if missing > 0 && size+missing <= max(larger, 3*firstBuffer) {
		return size + missing
	}
	return min(larger, g.limit+1)
}

// Buffers of these sizes are kept. One large page must not lend its size to the memory of many
// small ones.
const (
	minKept = 512
	maxKept = 1 << 20
)

// buffers are those that were released, by size. Its methods are safe for concurrent use.
type buffers struct{ pools [45]sync.Pool } // of *[]byte

// class returns the number of the least size that is kept and holds n bytes, and that size. There
// are four sizes to a power of two. n is at most maxKept.
func class(n int64) (number int, size int64) {
	if n <= minKept {
		return 0, minKept
	}
	power := bits.Len64(uint64(n-1)) - 1 // the greatest power of two below n
	step := int64(1) << (power - 2)
	size = (n + step - 1) / step * step
	return 4*(power-9) + int((size-1<<power)/step), size
}

// roundUp returns the capacity of a buffer for n bytes.
func roundUp(n int64) int64 {
	if n > maxKept {
		return n
	}
	_, size := class(n)
	return size
}

// get returns an empty buffer for at least n bytes.
func (b *buffers) get(n int64) []byte {
	if n > maxKept {
		return make([]byte, 0, n)
	}
	number, size := class(n)
	if p, ok := b.pools[number].Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, 0, size)
}

// put takes a buffer that get or grow has returned.
func (b *buffers) put(buf []byte) {
	n := int64(cap(buf))
	if n == 0 || n > maxKept {
		return
	}
	if number, size := class(n); size == n { // not one of what Options.Wrap has read
		buf = buf[:0]
		b.pools[number].Put(&buf)
	}
}

// grow returns a buffer for at least n bytes with what buf holds, and takes buf.
func (b *buffers) grow(buf []byte, n int64) []byte {
	larger := append(b.get(n), buf...)
	b.put(buf)
	return larger
}
