package scan

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// worker processes documents. Send and Receive are each called from one goroutine at a time, and
// Kill from any.
type worker interface {
	// Send sends a document. It may return before the document is processed.
	Send(number int64, doc *Document) error

	// Finish says that there are no more documents. The worker ends after its last reply.
	Finish() error

	// Receive waits for the reply to the oldest document without one. An error that does not wrap
	// [ErrFailed] means that the worker is dead.
	Receive(number int64) ([]byte, error)

	// Kill ends the worker immediately and makes Send and Receive fail.
	Kill()

	// Wait waits for the end of the worker, after Finish or Kill.
	Wait() error
}

// work runs one worker after another until there are no more jobs.
func (r *run) work() {
	for more := true; more && r.ctx.Err() == nil; {
		first := r.next(r.ctx) // a worker is started only when there is a job
		if first == nil {
			return
		}
		w, err := r.do.start(r.opts)
		if err != nil {
			r.stop(fmt.Errorf("scan: start worker: %w", err))
			r.close()
			return
		}
		more = r.employ(w, first)
	}
}

// grace is how long a worker may take to end after its last reply.
const grace = 10 * time.Second

// employ sends jobs to one worker until it dies or is due for a restart, and reports whether there
// may be more.
func (r *run) employ(w worker, first *job) (more bool) {
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	context.AfterFunc(ctx, w.Kill)
	out := make(chan *job, r.opts.Depth)
	room := make(chan struct{}, r.opts.Depth)
	go func() {
		defer close(out)
		more = r.send(ctx, w, first, out, room)
	}()
	dead := r.receive(w, out, room)
	if dead != nil {
		cancel() // ends the sender, and the worker
		for j := range out {
			r.again <- j // the worker has not started it
		}
		_ = w.Wait()
		return true
	}
	timer := time.AfterFunc(grace, w.Kill)
	defer timer.Stop()
	_ = w.Wait() // its error does not matter: all its documents are done
	return more
}

// send sends jobs while the worker has room, and reports whether it stopped because the worker is
// due for a restart. It adds a job to out before sending it, so that no job is lost.
func (r *run) send(ctx context.Context, w worker, j *job, out chan<- *job,
	room chan<- struct{}) (enough bool) {
	for n := 1; ; n++ {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			if j != nil {
				out <- j
			}
			return false
		}
		if j == nil {
			if j = r.next(ctx); j == nil {
				break
			}
		}
		out <- j
		if err := w.Send(j.number, &j.doc); err != nil {
			w.Kill() // makes Receive return an error
			return false
		}
		j = nil
		if n == r.opts.RestartAfter {
			_ = w.Finish()
			return true
		}
	}
	_ = w.Finish()
	return false
}

// receive receives the replies of a worker. It returns the error that killed the worker, or nil if
// the worker has replied to all jobs.
func (r *run) receive(w worker, out <-chan *job, room <-chan struct{}) error {
	for j := range out {
		reply, err := r.reply(w, j)
		if err != nil && !errors.Is(err, ErrFailed) {
			r.died(err) // before its document has a result
			r.blame(j, err)
			return err
		}
		r.replied()
		r.finish(j, reply, err)
		<-room
	}
	return nil
}

// reply waits for one reply, at most Timeout.
func (r *run) reply(w worker, j *job) ([]byte, error) {
	if r.opts.Timeout > 0 {
		timer := time.AfterFunc(r.opts.Timeout, w.Kill)
		defer timer.Stop()
	}
	return w.Receive(j.number)
}

// blame handles the document that killed a worker. It is retried once, because the document may not
// be the cause.
func (r *run) blame(j *job, why error) {
	if j.deaths++; j.deaths < 2 && r.ctx.Err() == nil {
		r.again <- j
		return
	}
	r.finish(j, nil, fmt.Errorf("%w: it killed its worker twice: %w", ErrSkipped, why))
}
