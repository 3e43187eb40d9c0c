package fetch

import (
	"context"
	"io"
	"time"

	"github.com/spinneret-go/spinneret/internal/content"
)

// Decode is a Client's decoder without a connection, for fuzzing.
func Decode(raw []byte, coding string, opts Options) ([]byte, Kind) {
	c := &Client{opts: opts.withDefaults()}
	x := newExchange(context.Background())
	x.watch.begin(&c.opts, x.start, x.cancel)
	defer x.end()
	b := bodyReader{c: c, x: x, limit: c.opts.MaxBody, codings: content.Of([]string{coding})}
	return b.decode(raw, Whole)
}

// RequestURI returns the request target that a Get of raw sends.
func RequestURI(raw string) (string, error) {
	u, _, err := parseTarget(raw)
	if err != nil {
		return "", err
	}
	return wireURL(&u).RequestURI(), nil
}

// LateCheck ends a watch while the check of its timer is pending. cancel is called if the check
// sets the timer again.
func LateCheck(cancel context.CancelCauseFunc) {
	var w watch
	w.begin(&Options{Timeout: time.Minute, HeadTimeout: time.Second}, time.Now(), cancel)
	w.end()
	w.check()
}

// Grow reads at most most bytes of r into a buffer of the expected size, as Get reads a body.
func Grow(r io.Reader, limit, most int64) ([]byte, bool, error) {
	g := growth{new(buffers), limit, most, false}
	return g.read(nil, r, nil)
}

// RoundUp is roundUp.
var RoundUp = roundUp
