package fetch

import (
	"io"
	"math/bits"
	"sync"
)

// growth controls how a buffer grows while a body is read into it.
type growth struct {
	pool  *buffers
	limit int64 // bytes that may be read
	most  int64 // expected bytes; a longer body is read all the same
	sure  bool  // they need not arrive: the buffer grows to them at once
}

// minRoom is the least free space worth a read. A smaller read would go through the connection's
// own buffer.
const minRoom = 1 << 10

// read appends r to buf, up to g.limit bytes in total, and reports whether there was more. It calls
// progress, if not nil, for each piece. With an error it returns what was read before.
func (g *growth) read(buf []byte, r io.Reader, progress func(n int)) ([]byte, bool, error) {
	for {
		// One byte more than expected, so that the end is seen without growing.
		room, missing := cap(buf)-len(buf), min(g.most, g.limit)+1-int64(cap(buf))
		if room == 0 || room < minRoom && missing > 0 {
			buf = g.pool.grow(buf, g.next(int64(cap(buf)), missing))
		}
		free := buf[len(buf):cap(buf)]
		// One byte more than the limit, to tell a body that ends there from a longer one.
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

// next returns the size to grow to. missing is what a buffer of the present size lacks to hold the
// expected bytes.
func (g *growth) next(size, missing int64) int64 {
	larger := max(2*size, firstBuffer)
	if size == firstBuffer { // a step costs a copy and a system call, and most pages are small
		larger = 3 * size
	}
	if 0 < missing && (g.sure || size+missing <= larger) {
		return size + missing
	}
	return min(larger, g.limit+1)
}

// Buffers of these sizes are pooled. Larger ones are not, so that one large page does not set the
// memory use of many small ones.
const (
	minKept = 512
	maxKept = 1 << 20
)

// buffers are pools of released buffers by size. Its methods are safe for concurrent use.
type buffers struct{ pools [45]sync.Pool } // of *[]byte

// class returns the smallest pooled size of at least n bytes, and the number of its pool. There are
// four sizes per power of two. n is at most maxKept.
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

// put recycles a buffer that get or grow has returned.
func (b *buffers) put(buf []byte) {
	n := int64(cap(buf))
	if n == 0 || n > maxKept {
		return
	}
	if number, size := class(n); size == n { // else it is not one of ours
		empty := buf[:0] // and not buf, which would then be allocated for each call
		b.pools[number].Put(&empty)
	}
}

// grow moves buf to a buffer of at least n bytes, and recycles buf.
func (b *buffers) grow(buf []byte, n int64) []byte {
	larger := append(b.get(n), buf...)
	b.put(buf)
	return larger
}
