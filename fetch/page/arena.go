package page

import "strings"

// The sizes of an arena's blocks. The first one depends on the size of the page, so that a large
// page does not start with small blocks; URLs are usually a twentieth of a page, sometimes a
// quarter. The largest one bounds how much memory a single string can keep alive.
const (
	minBlock   = 1 << 10
	maxBlock   = 16 << 10
	blockShare = 16 // denominator: of a page's bytes
)

// arena allocates many small strings as parts of larger ones.
type arena struct {
	block strings.Builder
	size  int // of the next block
}

// expect sizes the first block for a page of n bytes.
func (a *arena) expect(n int) { a.size = n / blockShare }

// add returns a string with the bytes of b.
func (a *arena) add(b []byte) string {
	if len(b) > maxBlock {
		return string(b) // others in its block would keep it alive
	}
	// A growing Builder would copy its contents, and keep the old bytes alive as well.
	if a.block.Cap()-a.block.Len() < len(b) {
		size := min(max(a.size, minBlock), maxBlock)
		a.block, a.size = strings.Builder{}, 2*size
		a.block.Grow(max(size, len(b)))
	}
	start := a.block.Len()
	a.block.Write(b)
	return a.block.String()[start:]
}
