package page

import "strings"

// The sizes of an arena's blocks. The first one is sized by the page, of which URLs are a
// twentieth as a rule and a quarter at times, so that a large page does not begin with small
// blocks. The largest one bounds what a single string can keep alive.
const (
	minBlock   = 1 << 10
	maxBlock   = 16 << 10
	blockShare = 16 // of a page's bytes, one in so many
)

// arena makes many small strings with few allocations: they are parts of larger ones.
type arena struct {
	block strings.Builder
	size  int // of the next block
}

// expect sizes the first block for a page of n bytes.
func (a *arena) expect(n int) { a.size = n / blockShare }

// add returns a string with the bytes of b.
func (a *arena) add(b []byte) string {
	// A Builder that grows would copy what it has, and keep the old bytes alive as well.
	if a.block.Cap()-a.block.Len() < len(b) {
		size := min(max(a.size, minBlock), maxBlock)
		a.block, a.size = strings.Builder{}, 2*size
		a.block.Grow(max(size, len(b)))
	}
	start := a.block.Len()
	a.block.Write(b)
	return a.block.String()[start:]
}
