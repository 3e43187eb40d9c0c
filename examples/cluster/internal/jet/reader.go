package jet

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// A Delivery is one message of a stream.
type Delivery struct {
	Seq     uint64    // its place in the stream
	Time    time.Time // when the broker accepted it, the same for every reader
	Data    []byte
	Pending uint64 // messages after it, as far as the broker knew
}

// Bounds of read-ahead. A server drops a client with more than 64 MiB of pending data, and a
// process may read dozens of streams. A bound in bytes alone is not enough: the client library then
// reserves 8 MB for each reader, which also lets the collector tolerate that much garbage.
const (
	readAhead     = 1 << 20 // bytes of one request
	readMessages  = 256
	readHeartbeat = 500 * time.Millisecond
	readExpiry    = 10 * time.Second
)

// A Reader returns the messages of a partition in the order of the stream, each once. It survives
// the loss of servers. It is not safe for concurrent use.
type Reader struct {
	bus  *Bus
	name string
	next uint64
	iter jetstream.MessagesContext // nil if it must be set up
}

// Read returns a reader of the messages from a sequence on.
func (b *Bus) Read(m message.Module, part int, from uint64) *Reader {
	return &Reader{bus: b, name: b.stream(m, part), next: max(from, 1)}
}

// Next waits for the next message. Its only error is that of ctx.
func (r *Reader) Next(ctx context.Context) (Delivery, error) {
	for ctx.Err() == nil {
		if r.iter == nil && !r.open(ctx) {
			continue
		}
		msg, err := r.iter.Next(jetstream.NextContext(ctx))
		if err != nil {
			// The consumer lives in the memory of one server and is lost with it. This reader knows
			// its position, which is all that a new consumer needs.
			if ctx.Err() == nil {
				r.Stop()
				sleep(ctx, reconnectWait)
			}
			continue
		}
		meta, err := msg.Metadata()
		switch {
		case err != nil || meta.Sequence.Stream < r.next:
			continue // a duplicate, after the consumer was set up again
		case meta.Sequence.Stream > r.next && !r.gone(ctx, r.next, meta.Sequence.Stream-1):
			r.Stop()
			continue
		}
		r.next = meta.Sequence.Stream + 1
		return Delivery{meta.Sequence.Stream, meta.Timestamp, msg.Data(), meta.NumPending}, nil
	}
	return Delivery{}, ctx.Err()
}

// gone reports whether the stream has deleted the messages from one sequence to another, so that a
// gap is not the consumer's fault.
func (r *Reader) gone(ctx context.Context, from, to uint64) bool {
	stream, err := r.bus.js.Stream(ctx, r.name)
	if err != nil {
		return false
	}
	if stream.CachedInfo().State.FirstSeq > to {
		return true
	}
	for seq := from; seq <= to; seq++ {
		if _, err := stream.GetMsg(ctx, seq); !errors.Is(err, jetstream.ErrMsgNotFound) {
			return false
		}
	}
	return true
}

// open sets up a consumer at the next sequence, and reports whether that worked.
//
// The ordered consumers of the client library recover by themselves, but they retry with the same
// name forever, even after the end of ctx. The broker may have assigned that name to a server that
// has just died, and wait for its answer. Here each attempt has a new name, chosen by the library.
func (r *Reader) open(ctx context.Context) bool {
	consumer, err := r.bus.js.CreateConsumer(ctx, r.name, jetstream.ConsumerConfig{
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       r.next,
		AckPolicy:         jetstream.AckNonePolicy,
		InactiveThreshold: time.Minute,
		Replicas:          1,
		MemoryStorage:     true,
	})
	if err == nil {
		r.iter, err = consumer.Messages(
			jetstream.PullMaxMessagesWithBytesLimit(readMessages, readAhead),
			jetstream.PullHeartbeat(readHeartbeat), jetstream.PullExpiry(readExpiry))
	}
	if err != nil {
		r.iter = nil
		if !errors.Is(err, context.Canceled) {
			sleep(ctx, reconnectWait)
		}
		return false
	}
	return true
}

// Stop ends reading. A later Next resumes after the last message.
func (r *Reader) Stop() {
	if r.iter != nil {
		r.iter.Stop()
		r.iter = nil
	}
}
