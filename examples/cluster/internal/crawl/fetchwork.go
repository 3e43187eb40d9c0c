package crawl

import (
	"context"
	"errors"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/engine"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
	"github.com/spinneret-go/spinneret/scheduler"
)

// work does tasks until taking or ctx ends, or the partition cannot continue.
func (f *fetcher) work(ctx, taking context.Context) error {
	for f.unpaused(taking) && f.uplink.Wait(taking) {
		lease, err := f.queue.Next(taking)
		if err != nil {
			return nil
		}
		if f.settings.Load().Paused { // the pause began while this worker waited
			lease.Requeue(scheduler.Outcome{Skipped: true}, time.Time{})
			continue
		}
		// What the server answers now, such as a Retry-After, the next owner might never learn.
		if f.late.Load() {
			lease.Requeue(scheduler.Outcome{Skipped: true}, time.Now().Add(overduePause))
			continue
		}
		goOn, err := f.do(ctx, lease)
		if errors.Is(err, errAbandoned) {
			return nil
		}
		if err != nil || !goOn {
			return err
		}
	}
	return nil
}

// overduePause is how long a task waits if a commit is overdue.
const overduePause = 50 * time.Millisecond

// borrowPause is how long a task waits if another partition uses its address.
const borrowPause = 300 * time.Millisecond

// do performs the task of a lease, and reports whether the worker can continue.
func (f *fetcher) do(ctx context.Context, lease *scheduler.Lease[task]) (goOn bool, err error) {
	t := lease.Item()
	giveBack, ok := f.member.Borrow(ctx, f.claim, t.item.Addr,
		message.AddrPart(t.item.Addr, f.Parts) == f.claim.Part, max(f.Delay, 0))
	if !ok {
		lease.Requeue(scheduler.Outcome{Skipped: true}, time.Now().Add(borrowPause))
		return true, nil
	}
	defer giveBack()
	// The host may have moved since this task was queued, and the scheduler knows its latest address.
	if !lease.Reach(t.item.Addr) {
		lease.Requeue(scheduler.Outcome{Skipped: true}, time.Time{})
		return true, nil
	}
	begun := time.Now()
	v := f.visit(ctx, t.item)
	f.opts.Log.Debug("visit", "url", t.item.URL, "fate", v.fate, "took", time.Since(begun))
	if v.requeue {
		lease.Requeue(v.outcome, v.notBefore)
	} else {
		// The delays run from the request, so the host need not wait until the broker has answered.
		lease.Done(v.outcome)
	}
	if !v.requeue && v.err == nil && t.item.Kind != message.Rules {
		f.loads.done(lease.Host(), t.item.Addr, time.Now())
	}
	return f.deliver(ctx, t, v, learned(lease.Host(), t.item.Addr, v.outcome)), v.err
}

// deliver lets the loop of the partition settle a visit. If the scheduler has learned something that must
// not be lost, it waits until that is stored: the death of this process must not lead to an early
// request. It reports whether the worker can continue.
func (f *fetcher) deliver(ctx context.Context, t task, v visited, learned []scheduler.Entry) bool {
	if learned == nil && (v.requeue || v.err != nil) || errors.Is(v.err, errAbandoned) {
		return true
	}
	r := engine.Result{Apply: func(emit engine.Emit) { f.settle(t, v, learned, emit) }}
	if learned == nil {
		return f.hand(ctx, r)
	}
	committed := make(chan struct{})
	r.Committed = committed
	if !f.hand(ctx, r) {
		return false
	}
	select {
	case <-committed:
		return true
	case <-ctx.Done():
		return false
	}
}

// hand sends a result to the loop, unless the ownership is lost.
func (f *fetcher) hand(ctx context.Context, r engine.Result) bool {
	select {
	case f.results <- r:
		return true
	case <-ctx.Done():
		return false
	}
}
