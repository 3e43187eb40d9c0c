package robots

import (
	"context"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/internal/httpctx"
)

// limit returns a context that ends, with the cause context.DeadlineExceeded, when a request has taken
// too long, without the time for which a layer below keeps it waiting. It has no deadline, as that would
// include the wait: the layer would refuse at once what is to wait for longer. No time means no limit.
// stop must be called when the request is over.
func limit(parent context.Context, most time.Duration) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	if most <= 0 {
		return ctx, func() { cancel(nil) }
	}
	// The timer keeps the context in memory until it fires or is stopped.
	timer := time.AfterFunc(most, func() { cancel(context.DeadlineExceeded) })
	pause := func() (resume func()) {
		timer.Stop()
		return sync.OnceFunc(func() {
			if timer.Reset(most); ctx.Err() != nil {
				timer.Stop()
			}
		})
	}
	ctx = context.WithValue(ctx, httpctx.Pause{}, pause)
	return ctx, func() {
		cancel(nil)
		timer.Stop()
	}
}
