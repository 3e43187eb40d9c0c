package fetch

import "strings"

// The sizes of an arena's blocks: the first one is for a page with few links, and the last one
// bounds what a single string can keep alive.
const (
	firstBlock = 1 << 10
	lastBlock  = 16 << 10
)

// arena makes many small strings with few allocations: they are parts of larger ones.
type arena struct {
	block strings.Builder
	size  int // of the present block
}

// add returns a string with the bytes of b.
func (a *arena) add(b []byte) string {
	// A Builder that grows would copy what it has, and keep the old bytes alive as well.
	if a.block.Cap()-a.block.Len() < len(b) {
		a.size = min(max(2*a.size, firstBlock), lastBlock)
		a.block = strings.Builder{}
		a.block.Grow(max(a.size, len(b)))
	}
	start := a.block.Len()
	a.block.Write(b)
	return a.block.String()[start:]
}
