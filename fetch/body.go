package fetch

import (
	"context"
	"io"
	"math"
	"math/bits"
	"net/http"
	"slices"
	"sync"
	"time"
)

// The first buffer for a body. A server may promise any length and send nothing, so a promise is
// believed up to maxFirstBuffer only.
const (
	minFirstBuffer = 16 << 10
	maxFirstBuffer = 256 << 10
)

// readBody reads the body up to MaxBody bytes, while its pace is watched. ctx is that of the
// request and cancel ends it.
func (c *Client) readBody(
	ctx context.Context, resp *http.Response, cancel context.CancelCauseFunc,
) ([]byte, Truncation) {
	// An exchange without a body needs neither a buffer nor a timer; with conditional requests
	// it is the common case.
	if resp.Body == http.NoBody {
		return nil, Whole
	}
	p := newPace(c.opts.MinRate, c.opts.Grace, cancel)
	defer p.stop()
	// One more byte than promised, so that the end is seen without growing.
	first := min(resp.ContentLength+1, maxFirstBuffer)
	if resp.ContentLength < 0 {
		first = minFirstBuffer
	}
	raw, over, err := readUpTo(resp.Body, int(first), c.opts.MaxBody, p.add)
	switch {
	case over:
		return raw, CutLength
	case err == nil:
		return raw, Whole
	case context.Cause(ctx) == errTime:
		return raw, CutTime
	case context.Cause(ctx) == errSlow:
		return raw, CutSlow
	}
	return raw, CutDisconnect
}

// readUpTo reads r to its end or to limit bytes, and reports whether there was more than that. It
// tells progress, if not nil, of each piece. What was read is returned with an error, too.
func readUpTo(
	r io.Reader, first int, limit int64, progress func(n int),
) (buf []byte, over bool, err error) {
	buf = make([]byte, 0, first)
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

// pace exists beside Timeout because the latter must be generous enough for a large page, and a
// server that sends a byte a second would hold each connection for all of it.
//
// It ends a request whose body comes too slowly: n bytes may take grace plus n/rate. That is a
// deadline which each byte moves, so a timer that is set again when it fires too early is enough.
type pace struct {
	start  time.Time
	rate   int64
	grace  time.Duration
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	n     int64
	timer *time.Timer
}

// newPace starts to watch, unless rate is negative.
func newPace(rate int64, grace time.Duration, cancel context.CancelCauseFunc) *pace {
	p := &pace{start: time.Now(), rate: rate, grace: grace, cancel: cancel}
	if rate > 0 {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.timer = time.AfterFunc(grace, p.check)
	}
	return p
}

func (p *pace) add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n += int64(n)
}

func (p *pace) check() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if left := p.grace + p.earned() - time.Since(p.start); left > 0 {
		p.timer.Reset(left)
		return
	}
	p.cancel(errSlow)
}

// earned returns n/rate as a time. It requires that p.mu is held.
func (p *pace) earned() time.Duration {
	const most = math.MaxInt64 / 4
	hi, lo := bits.Mul64(uint64(p.n), uint64(time.Second))
	if hi >= uint64(p.rate) {
		return most
	}
	ns, _ := bits.Div64(hi, lo, uint64(p.rate))
	return time.Duration(min(ns, most))
}

func (p *pace) stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
}
