package stage

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// How many lines of package log a program shows in a span of time.
const (
	trickleLines = 10
	trickleSpan  = time.Minute
)

// A Trickle passes on a few lines a minute and drops the rest. It is for package log: net/http
// reports there what servers send unasked, as much as they like. Its methods are safe for
// concurrent use.
type Trickle struct {
	out io.Writer

	mu      sync.Mutex
	began   time.Time // of the current span
	lines   int
	dropped int
}

// NewTrickle returns a Trickle into out.
func NewTrickle(out io.Writer) *Trickle { return &Trickle{out: out} }

// Write implements io.Writer. Package log calls it once for each line.
func (t *Trickle) Write(line []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); now.Sub(t.began) >= trickleSpan {
		if t.dropped > 0 {
			fmt.Fprintf(t.out, "%d more lines like these were dropped\n", t.dropped)
		}
		t.began, t.lines, t.dropped = now, 0, 0
	}
	if t.lines++; t.lines > trickleLines {
		t.dropped++
		return len(line), nil
	}
	return t.out.Write(line)
}
