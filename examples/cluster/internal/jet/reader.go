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
	Time    time.Time // when the broker took it, the same for whoever reads it
	Data    []byte
	Pending uint64 // how many are behind it, as far as the broker knew
}

// Bounds of what the broker sends ahead. A server drops a client to which it owes more than 64 MiB,
// and a process may read dozens of streams. A bound of the bytes alone will not do: the client
// library then reserves 8 MB for each reader, so that the collector lets that much garbage lie about.
const (
	readAhead     = 1 << 20 // bytes of one request
	readMessages  = 256
	readHeartbeat = 500 * time.Millisecond
	readExpiry    = 10 * time.Second
)

// A Reader gives the messages of a partition in the order of the stream, each once. It survives
// that servers go away. It is not safe for concurrent use.
type Reader struct {
	bus  *Bus
	name string
	next uint64
	iter jetstream.MessagesContext // nil if it has to be set up
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
			// The consumer lives in the memory of one server and goes with it. This reader knows where
			// it was, which is all that a new one needs.
			if ctx.Err() == nil {
				r.Stop()
				sleep(ctx, reconnectWait)
			}
			continue
		}
		meta, err := msg.Metadata()
		switch {
		case err != nil || meta.Sequence.Stream < r.next:
			continue // a repeat, after the consumer was set up anew
		case meta.Sequence.Stream > r.next && !r.gone(ctx, r.next, meta.Sequence.Stream-1):
			r.Stop()
			continue
		}
		r.next = meta.Sequence.Stream + 1
		return Delivery{meta.Sequence.Stream, meta.Timestamp, msg.Data(), meta.NumPending}, nil
	}
	return Delivery{}, ctx.Err()
}

// gone reports whether the stream has forgotten the messages from one sequence to another, so that
// a gap is no fault of the consumer's.
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
// The client library has ordered consumers that set themselves up anew, but they go on asking for
// the one name, without end and whatever becomes of ctx. The broker may have given that name to a
// server that has just died, and waits for its answer. Here each attempt has a new name, which the
// library makes up.
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

// Stop ends reading. A later Next goes on where the last one was.
func (r *Reader) Stop() {
	if r.iter != nil {
		r.iter.Stop()
		r.iter = nil
	}
}
