package jet

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// ErrClosed means that a Pipe accepts no more messages.
var ErrClosed = errors.New("jet: pipe is closed")

// window is how many messages of a Pipe are in flight at a time, and how many more may wait.
const window = 32

// A Pipe sends the messages of one source to one partition, and preserves their order in spite of
// failures: if a message is not acknowledged, it is sent again together with all later ones, and
// the reader ignores duplicates (see message.Marks). If the partition is full, Send waits. Its
// methods are safe for concurrent use.
type Pipe struct {
	bus     *Bus
	subject string
	guard   func() error // fails when the source may no longer write
	header  message.Message
	waits   atomic.Int64 // times that the stream was full

	mu      sync.Mutex
	queue   []parcel // not acknowledged, in order; the first ones are in flight
	next    uint64   // number of the next message
	acked   uint64   // number of the last acknowledged one
	err     error    // why it has ended
	changed chan struct{}
	done    chan struct{} // closed when run has returned
	stop    context.CancelFunc
}

// A parcel is a message before it has a header.
type parcel struct {
	number uint64
	count  int
	items  []byte
}

// NewPipe returns a pipe for messages from a source, numbered from first on. Before each message it
// calls guard; an error of guard ends the pipe.
func (b *Bus) NewPipe(
	m message.Module, part int, from message.Source, epoch, first uint64, guard func() error,
) *Pipe {
	// A pipe lives until it is closed, whatever becomes of ctx: queued messages must arrive even
	// while their owner shuts down.
	ctx, stop := context.WithCancel(context.Background())
	p := &Pipe{
		bus: b, subject: b.subject(m, part), guard: guard,
		header: message.Message{From: from, Epoch: epoch},
		next:   first, acked: first - 1,
		changed: make(chan struct{}), done: make(chan struct{}), stop: stop,
	}
	go p.run(ctx)
	return p
}

// Send queues a message of n encoded items, which it takes over. It waits while too many are
// queued.
func (p *Pipe) Send(ctx context.Context, n int, items []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) >= 2*window && p.err == nil {
		if err := p.await(ctx); err != nil {
			return err
		}
	}
	if p.err != nil {
		return p.err
	}
	p.queue = append(p.queue, parcel{p.next, n, items})
	p.next++
	p.wake()
	return nil
}

// Flush waits until the broker has stored all messages sent before.
func (p *Pipe) Flush(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for last := p.next - 1; p.acked < last; {
		if p.err != nil {
			return p.err
		}
		if err := p.await(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Next returns the number that the next message will have.
func (p *Pipe) Next() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.next
}

// Waits returns how often the partition had no room.
func (p *Pipe) Waits() int64 { return p.waits.Load() }

// Close ends the pipe. Unacknowledged messages may or may not arrive.
func (p *Pipe) Close() {
	p.stop()
	<-p.done
}

// await releases the lock until something changes. It requires that p.mu is held.
func (p *Pipe) await(ctx context.Context) error {
	changed := p.changed
	p.mu.Unlock()
	defer p.mu.Lock()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-changed:
		return nil
	}
}

// wake wakes all waiting calls. It requires that p.mu is held.
func (p *Pipe) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// run sends queued messages, a window at a time, until the pipe is closed.
func (p *Pipe) run(ctx context.Context) {
	defer close(p.done)
	err := p.sendAll(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
	p.wake()
}

func (p *Pipe) sendAll(ctx context.Context) error {
	for {
		p.mu.Lock()
		for len(p.queue) == 0 {
			if p.await(ctx) != nil {
				p.mu.Unlock()
				return ErrClosed
			}
		}
		batch, base := p.queue[:min(len(p.queue), window)], p.acked+1
		p.mu.Unlock()
		kept, err := p.sendBatch(ctx, batch, base)
		p.mu.Lock()
		p.queue = p.queue[kept:]
		p.acked += uint64(kept)
		p.wake()
		p.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return ErrClosed
		case errors.Is(err, errForbidden):
			return err
		case err != nil && !sleep(ctx, p.pause(err)):
			return ErrClosed
		}
	}
}

// errLate means that a message was neither acknowledged nor refused.
var errLate = errors.New("jet: message not acknowledged")

// errOrder means that messages were stored in another order than they were sent.
var errOrder = errors.New("jet: messages stored out of order")

// errForbidden marks the errors of guard.
var errForbidden = errors.New("jet: no longer allowed to write")

// pause returns how long to wait before messages are sent again.
func (p *Pipe) pause(err error) time.Duration {
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == codeFull {
		p.waits.Add(1)
		return reconnectWait / 2
	}
	return reconnectWait
}

// codeFull is the error code for a full stream.
const codeFull = 10077

// sendBatch sends messages and returns how many of the first ones were acknowledged. It waits for
// the results of all: otherwise a late message could overtake its own repetition.
func (p *Pipe) sendBatch(ctx context.Context, batch []parcel, base uint64) (kept int, err error) {
	// Send the whole batch before waiting for the first answer: a round trip to three servers takes
	// as long as dozens of messages.
	futures := make([]jetstream.PubAckFuture, 0, len(batch))
	for _, parcel := range batch {
		if err = p.guard(); err != nil {
			err = errors.Join(errForbidden, err)
			break
		}
		m := p.header
		m.Number, m.Base = parcel.number, base
		data := m.AppendHeader(make([]byte, 0, len(parcel.items)+48), parcel.count)
		var future jetstream.PubAckFuture
		future, err = p.bus.js.PublishAsync(p.subject, append(data, parcel.items...),
			jetstream.WithStallWait(ackTimeout))
		if err != nil {
			break
		}
		futures = append(futures, future)
	}
	inOrder, place := true, uint64(0)  // in the stream, of the last acknowledged message of the batch
	late := time.After(2 * ackTimeout) // by when the client library has reported each, or never will
	for _, future := range futures {
		select {
		case <-late:
			return kept, errLate
		case ack := <-future.Ok():
			// Two that went through different servers may have been stored in reverse order. Then
			// the reader has ignored this one, as it came too early.
			if ack.Sequence <= place {
				inOrder = false
				err = errOrder
			}
			if inOrder {
				kept++
				place = ack.Sequence
			}
		case failed := <-future.Err():
			if inOrder && !errors.Is(err, errForbidden) {
				err = failed
			}
			inOrder = false
		case <-ctx.Done():
			return kept, ctx.Err()
		}
	}
	return kept, err
}
