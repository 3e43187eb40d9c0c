package robots

import (
	"context"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/internal/httpctx"
)

// A limited context ends when a request has taken too long, without the time for which a layer below
// keeps it waiting. It has no deadline, as that would include the wait: the layer would refuse at once
// what is to wait for longer.
type limited struct {
	context.Context // of the caller
	done            chan struct{}
	end             func(error)
	err             error // once done is closed
	pause           func() (resume func())
}

// limit returns such a context. No time means no limit. stop must be called when the request is over.
func limit(ctx context.Context, most time.Duration) (c *limited, stop func()) {
	c = &limited{Context: ctx, done: make(chan struct{})}
	var once sync.Once
	c.end = func(err error) {
		once.Do(func() {
			c.err = err
			close(c.done)
		})
	}
	if err := ctx.Err(); err != nil {
		c.end(err) // at once
	}
	unbind := context.AfterFunc(ctx, func() { c.end(ctx.Err()) })
	var timer *time.Timer // which keeps the context in memory until it fires or is stopped
	if most > 0 {
		timer = time.AfterFunc(most, func() { c.end(context.DeadlineExceeded) })
		c.pause = func() func() {
			timer.Stop()
			resume := pause(ctx)
			return sync.OnceFunc(func() {
				resume()
				if timer.Reset(most); c.Err() != nil {
					timer.Stop()
				}
			})
		}
	}
	return c, func() {
		unbind()
		if c.end(context.Canceled); timer != nil {
			timer.Stop()
		}
	}
}

// pause stops the clocks of the layers above, which limit the time of their requests, until resume.
func pause(ctx context.Context) (resume func()) {
	if pause, ok := ctx.Value(httpctx.Pause{}).(func() (resume func())); ok {
		return pause()
	}
	return func() {}
}

// Done implements context.Context.
func (c *limited) Done() <-chan struct{} { return c.done }

// Err implements context.Context.
func (c *limited) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// Value implements context.Context.
func (c *limited) Value(key any) any {
	if key == (httpctx.Pause{}) && c.pause != nil {
		return c.pause
	}
	return c.Context.Value(key)
}
