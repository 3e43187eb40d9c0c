package fetch

import (
	"context"
	"math"
	"math/bits"
	"sync"
	"time"
)

// watch ends an exchange that takes too long: in total, until its head has arrived, or for the part
// of the body that has arrived.
//
// Timeout alone must be generous enough for a large page, and a server that sends a byte a second
// would hold each connection that long. So n bytes of the body may take Grace plus n/MinRate.
//
// All deadlines share one timer. When a deadline moves out, the timer is not set again; it fires
// too early and is set then. Most exchanges have ended by that time, and setting timers is a good
// part of the cost of a Get.
type watch struct {
	opts   *Options
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	timer *time.Timer // nil before begin and after end
	start time.Time   // of the exchange
	wrote time.Time   // when the request was sent; zero before
	body  time.Time   // when the body began; zero before
	n     int64       // bytes of the body

	paused    time.Time // since when the server need not send: MinRate does not count; zero while it does
	pauses    int       // reasons for that: nobody reads the body, or the server waits for that of the request
	suspended time.Time // since when the request is held back: no limit counts; zero while they do
	holding   int       // layers that hold it back; several if one in between sends it more than once
}

// begin starts the watch.
func (w *watch) begin(opts *Options, start time.Time, cancel context.CancelCauseFunc) {
	w.opts, w.start, w.cancel = opts, start, cancel
	w.mu.Lock()
	defer w.mu.Unlock()
	w.set(start)
}

// end stops the watch.
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

// written records that the request was sent. The server's time to answer begins.
func (w *watch) written() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrote = time.Now()
}

// unwritten records that the request is to be sent, perhaps once more.
func (w *watch) unwritten() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrote = time.Time{}
}

// answered records that the head has arrived. The body's time begins.
func (w *watch) answered() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.body = time.Now()
	if w.pauses > 0 {
		w.paused = w.body
	}
	// This is the only deadline that can be earlier than those before it.
	if w.opts.MinRate > 0 {
		w.set(w.body)
	}
}

// pause stops the clock of the body until resume, while nobody waits for the server. Several may overlap.
func (w *watch) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pauses++; w.pauses == 1 {
		w.paused = time.Now()
	}
}

func (w *watch) resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pauses--; w.pauses > 0 {
		return
	}
	now, since := time.Now(), w.paused
	if w.paused = (time.Time{}); w.body.IsZero() {
		return
	}
	w.body = w.body.Add(now.Sub(since))
	if w.timer != nil && w.opts.MinRate > 0 {
		w.set(now)
	}
}

// waits reports whether the server need not send.
func (w *watch) waits() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pauses > 0
}

// suspend stops all clocks until proceed, while a layer above holds the request back.
func (w *watch) suspend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holding++; w.holding == 1 {
		w.suspended = time.Now()
	}
}

func (w *watch) proceed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holding--; w.holding > 0 {
		return
	}
	now := time.Now()
	w.start, w.suspended = w.start.Add(now.Sub(w.suspended)), time.Time{}
	if w.timer != nil {
		w.set(now)
	}
}

// add records n bytes of the body.
func (w *watch) add(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n += int64(n)
}

// decoding ends the watch, since the server has done its part. It returns until when the body may be
// decoded: to the end of Timeout, and if little or nothing of that is left, for as long as Grace. The
// zero time means without a limit.
func (w *watch) decoding() time.Time {
	w.end()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.opts.Timeout < 0 {
		return time.Time{}
	}
	end, least := w.start.Add(w.opts.Timeout), time.Now().Add(Grace)
	if end.Before(least) {
		return least
	}
	return end
}

func (w *watch) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	// The timer may have fired as the exchange ended. It must not be set again.
	if w.timer == nil {
		return
	}
	due, why := w.due(time.Now())
	if due <= 0 {
		if !w.paused.IsZero() {
			why = errReader
		}
		w.cancel(why)
		return
	}
	w.timer.Reset(due)
}

// never is longer than any exchange.
const never = time.Duration(math.MaxInt64)

// due returns the time from now to the next deadline, and the cause if that is missed. A deadline
// whose clock has not started counts as early as it can be. It requires that w.mu is held.
func (w *watch) due(now time.Time) (time.Duration, error) {
	due, why := never, errTime
	if !w.suspended.IsZero() {
		return due, why
	}
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
		if slow := Grace + w.earned() - now.Sub(w.body); slow < due {
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
