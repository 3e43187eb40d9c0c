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

// Bounds of what is sent together. A broker takes 64 KiB at nearly the price of one URL, and a round
// trip to three brokers takes as long as dozens of messages.
const (
	maxMessage = 64 << 10
	window     = 32 // messages in flight
)

// A Parcel is a run of encoded items from one source.
type Parcel struct {
	From  message.Source
	First uint64 // number of the first item, see message.Parcel
	N     int
	Items []byte
	Acked func() // called once the broker has the parcel; nil means nothing to do
}

// A Pipe sends the parcels of all partitions of a process to one partition. It gathers parcels for a
// while, so that a message has many, and preserves their order in spite of failures: if a message
// is not acknowledged, it is sent again together with all later ones, and the reader ignores
// duplicates (see message.Marks). Its methods are safe for concurrent use.
type Pipe struct {
	bus     *Bus
	subject string
	linger  func() time.Duration
	full    atomic.Bool   // the stream has refused the last message
	sent    *atomic.Int64 // messages acknowledged to the process

	mu      sync.Mutex
	queue   []Parcel // not acknowledged, in order
	bytes   int
	due     time.Time // when to send what is queued
	changed chan struct{}
	closed  bool
	done    chan struct{} // closed when run has returned
	stop    context.CancelFunc
}

// NewPipe returns a pipe to a partition. Parcels wait for others for the time that linger returns;
// nil means that they do not.
func (b *Bus) NewPipe(m message.Module, part int, linger func() time.Duration) *Pipe {
	if linger == nil {
		linger = func() time.Duration { return 0 }
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &Pipe{
		bus: b, subject: b.subject(m, part), linger: linger, sent: &b.sent,
		changed: make(chan struct{}), done: make(chan struct{}), stop: stop,
	}
	go p.run(ctx)
	return p
}

// Send queues a parcel, which it takes over.
func (p *Pipe) Send(parcel Parcel) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		p.due = time.Now().Add(p.linger())
	}
	p.queue = append(p.queue, parcel)
	if p.bytes += len(parcel.Items); p.bytes >= maxMessage {
		p.due = time.Time{}
	}
	p.wake()
}

// Flush sends what is queued without waiting for more, and returns when the broker has stored it.
func (p *Pipe) Flush(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.due = time.Time{}
	p.wake()
	for len(p.queue) > 0 {
		if p.closed {
			return ErrClosed
		}
		if err := p.await(ctx, time.Time{}); err != nil {
			return err
		}
	}
	return nil
}

// ErrClosed means that a Pipe was closed before it had sent everything.
var ErrClosed = errors.New("jet: pipe is closed")

// Full reports whether the partition had no room for the last message.
func (p *Pipe) Full() bool { return p.full.Load() }

// Close ends the pipe. Unacknowledged parcels may or may not arrive.
func (p *Pipe) Close() {
	p.stop()
	<-p.done
}

// await releases the lock until something changes or, unless it is zero, until a time. It requires
// that p.mu is held.
func (p *Pipe) await(ctx context.Context, until time.Time) error {
	changed := p.changed
	var late <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		late = timer.C
	}
	p.mu.Unlock()
	defer p.mu.Lock()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-changed:
	case <-late:
	}
	return nil
}

// wake wakes all waiting calls. It requires that p.mu is held.
func (p *Pipe) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// run sends queued parcels until the pipe is closed.
func (p *Pipe) run(ctx context.Context) {
	defer close(p.done)
	for {
		batch, ok := p.next(ctx)
		if !ok {
			break
		}
		kept, err := p.sendBatch(ctx, batch)
		p.full.Store(errorCode(err) == codeFull)
		p.acknowledge(batch[:kept], kept == len(batch))
		if err != nil {
			pause := reconnectWait
			if p.Full() {
				pause /= 2
			}
			sleep(ctx, pause)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.wake()
}

// codeFull is the error code for a full stream.
const codeFull = 10077

// next waits until parcels are due and cuts them into messages, of a window at most.
func (p *Pipe) next(ctx context.Context) (batch [][]Parcel, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) == 0 || time.Now().Before(p.due) {
		until := p.due
		if len(p.queue) == 0 {
			until = time.Time{}
		}
		if p.await(ctx, until) != nil {
			return nil, false
		}
	}
	first, bytes := 0, 0
	for i := range p.queue {
		if i > first && bytes+len(p.queue[i].Items) > maxMessage {
			if batch = append(batch, p.queue[first:i:i]); len(batch) == window {
				return batch, true
			}
			first, bytes = i, 0
		}
		bytes += len(p.queue[i].Items)
	}
	return append(batch, p.queue[first:]), ctx.Err() == nil
}

// acknowledge removes the parcels of the first messages, which the broker has. After all of a batch,
// those that came meanwhile wait for others again.
func (p *Pipe) acknowledge(kept [][]Parcel, all bool) {
	for _, parcels := range kept {
		p.sent.Add(1)
		for _, parcel := range parcels {
			if parcel.Acked != nil {
				parcel.Acked()
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, parcels := range kept {
		for i := range parcels {
			p.bytes -= len(p.queue[i].Items)
			p.queue[i] = Parcel{}
		}
		p.queue = p.queue[len(parcels):]
	}
	if all && p.bytes < maxMessage {
		p.due = time.Now().Add(p.linger())
	}
	p.wake()
}

// errLate means that a message was neither acknowledged nor refused.
var errLate = errors.New("jet: message not acknowledged")

// errOrder means that messages were stored in another order than they were sent.
var errOrder = errors.New("jet: messages stored out of order")

// encode returns a message with parcels. Their headers tell the reader which source has sent
// nothing that is older and not acknowledged.
func encode(parcels []Parcel, heads map[message.Source]bool) []byte {
	data := message.AppendVersion(nil)
	for _, parcel := range parcels {
		header := message.Parcel{From: parcel.From, First: parcel.First, Head: !heads[parcel.From]}
		heads[parcel.From] = true
		data = append(header.AppendHeader(data, parcel.N), parcel.Items...)
	}
	return data
}

// sendBatch sends messages and returns how many of the first ones were acknowledged. It waits for
// the results of all: otherwise a late message could overtake its own repetition.
func (p *Pipe) sendBatch(ctx context.Context, batch [][]Parcel) (kept int, err error) {
	futures := make([]jetstream.PubAckFuture, 0, len(batch))
	heads := map[message.Source]bool{}
	for _, parcels := range batch {
		var future jetstream.PubAckFuture
		future, err = p.bus.js.PublishAsync(p.subject, encode(parcels, heads),
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
			if inOrder {
				err = failed
			}
			inOrder = false
		case <-ctx.Done():
			return kept, ctx.Err()
		}
	}
	return kept, err
}
