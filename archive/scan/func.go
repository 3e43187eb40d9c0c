package scan

import (
	"context"
	"errors"
	"fmt"
)

// errKilled is returned by the methods of a killed worker.
var errKilled = errors.New("the worker was killed")

// Func starts workers that call work in a goroutine of this process. The slices of the document and
// the result must not be shared with another call.
func Func(work func(*Document) ([]byte, error)) Work {
	return Work{func(o Options) (worker, error) {
		return startFunc(o, func(_ context.Context, doc *Document) ([]byte, error) { return work(doc) }), nil
	}}
}

// startFunc starts a worker that calls work. The context ends when the worker is killed.
func startFunc(o Options, work func(context.Context, *Document) ([]byte, error)) *funcWorker {
	w := &funcWorker{work: work, docs: make(chan *Document, o.Depth),
		replies: make(chan funcReply, o.Depth), ended: make(chan struct{})}
	w.ctx, w.kill = context.WithCancel(context.Background())
	go w.run()
	return w
}

// funcWorker is a goroutine. Its methods are safe as [worker] requires.
type funcWorker struct {
	work    func(context.Context, *Document) ([]byte, error)
	docs    chan *Document
	replies chan funcReply
	ctx     context.Context // of the worker
	kill    context.CancelFunc
	ended   chan struct{}
}

type funcReply struct {
	out []byte
	err error
}

// run processes documents until there are no more, the function panics, or the worker is killed. A
// function that hangs cannot be stopped; if it returns later, run ends then.
func (w *funcWorker) run() {
	defer close(w.ended)
	for {
		if w.ctx.Err() != nil {
			return // the remaining documents have been sent to others
		}
		select {
		case doc, ok := <-w.docs:
			if !ok {
				return
			}
			out, err := w.call(doc)
			w.replies <- funcReply{out, err} // has room for all documents in flight
			if err != nil && !errors.Is(err, ErrFailed) {
				return
			}
		case <-w.ctx.Done():
			return
		}
	}
}

// call turns a panic into a death.
func (w *funcWorker) call(doc *Document) (out []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if out, err = w.work(w.ctx, doc); err != nil {
		err = fmt.Errorf("%w: %w", ErrFailed, err)
	}
	return out, err
}

// Send queues the document.
func (w *funcWorker) Send(_ int64, doc *Document) error {
	select {
	case w.docs <- doc:
		return nil
	case <-w.ctx.Done():
		return errKilled
	}
}

// Finish ends the goroutine after its last document.
func (w *funcWorker) Finish() error {
	close(w.docs)
	return nil
}

// Receive waits for a reply.
func (w *funcWorker) Receive(int64) ([]byte, error) {
	select {
	case reply := <-w.replies:
		return reply.out, reply.err
	case <-w.ended:
	case <-w.ctx.Done():
		return nil, errKilled
	}
	select {
	case reply := <-w.replies: // its last reply
		return reply.out, reply.err
	default:
		return nil, errors.New("the function ended its goroutine")
	}
}

// Kill abandons the goroutine.
func (w *funcWorker) Kill() { w.kill() }

// Wait does not wait for an abandoned goroutine, which may hang forever.
func (w *funcWorker) Wait() error {
	defer w.kill() // releases the context
	select {
	case <-w.ended:
	case <-w.ctx.Done():
	}
	return nil
}
