package fetch

import (
	"context"
	"math"
	"math/bits"
	"sync"
	"time"
)

// watch ends an exchange that takes too long: as a whole, until its head is there, or for its body
// so far.
//
// The last of these exists beside Timeout because that one must be generous enough for a large
// page, and a server that sends a byte a second would hold each connection for all of it: n bytes
// may take Grace plus n/MinRate.
//
// All deadlines share one timer, which is not set again when a deadline moves away, but when it
// fires too early. Most exchanges are over by then, and timers are a good part of what a Get
// costs.
type watch struct {
	opts   *Options
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	timer *time.Timer // nil before begin and after end
	start time.Time   // of the exchange
	wrote time.Time   // when the request was sent; zero before
	body  time.Time   // when the body began; zero before
	n     int64       // bytes of the body

	paused time.Time // since when nobody reads the body; zero while somebody does
}

// begin starts to watch.
func (w *watch) begin(opts *Options, start time.Time, cancel context.CancelCauseFunc) {
	w.opts, w.start, w.cancel = opts, start, cancel
	w.mu.Lock()
	defer w.mu.Unlock()
	w.set(start)
}

// end stops to watch.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}

// set sets the timer. It requires that w.mu is held.
func (w *watch) set(now time.Time) {
	due, _ := w.due(now)
	switch {
	case due == never:
	case w.timer == nil:
		w.timer = time.AfterFunc(due, w.check)
	default:
		w.timer.Reset(due)
	}
}

// written notes that the request was sent: the server's time to answer begins.
func (w *watch) written() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrote = time.Now()
}

// answered notes that the head is there: the body's time begins.
func (w *watch) answered() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.body = time.Now()
	// Its deadline is the only one that can come earlier than those before it.
	if w.opts.MinRate > 0 {
		w.set(w.body)
	}
}

// pause lets the time of the body stand still: until resume, nobody waits for the server.
func (w *watch) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paused = time.Now()
}

func (w *watch) resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.body, w.paused = w.body.Add(now.Sub(w.paused)), time.Time{}
	if w.timer != nil && w.opts.MinRate > 0 {
		w.set(now)
	}
}

// add notes that n bytes of the body came.
func (w *watch) add(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n += int64(n)
}

func (w *watch) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	// It may have been on its way when the exchange ended, and would set the timer once more.
	if w.timer == nil {
		return
	}
	due, why := w.due(time.Now())
	if due <= 0 {
		w.cancel(why)
		return
	}
	w.timer.Reset(due)
}

// never is longer than any exchange.
const never = time.Duration(math.MaxInt64)

// due returns how long after now the exchange must have got further, and what it is guilty of if
// it has not. A deadline whose time has not begun is taken for as early as it can be. It requires
// that w.mu is held.
func (w *watch) due(now time.Time) (time.Duration, error) {
	due, why := never, errTime
	if w.opts.Timeout > 0 {
		due = w.opts.Timeout - now.Sub(w.start)
	}
	if w.body.IsZero() {
		if w.opts.HeadTimeout > 0 {
			due = min(due, w.opts.HeadTimeout-elapsed(w.wrote, now))
		}
		return due, why
	}
	if w.opts.MinRate > 0 && w.paused.IsZero() {
		if slow := w.opts.Grace + w.earned() - now.Sub(w.body); slow < due {
			due, why = slow, errSlow
		}
	}
	return due, why
}

// elapsed returns how long ago at was; 0 if it has not been yet.
func elapsed(at, now time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}
	return now.Sub(at)
}

// earned returns n/rate as a time. It requires that w.mu is held.
func (w *watch) earned() time.Duration {
	const most = math.MaxInt64 / 4
	rate := uint64(w.opts.MinRate)
	hi, lo := bits.Mul64(uint64(w.n), uint64(time.Second))
	if hi >= rate {
		return most
	}
	ns, _ := bits.Div64(hi, lo, rate)
	return time.Duration(min(ns, most))
}
