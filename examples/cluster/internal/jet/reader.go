package jet

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// A Delivery is one message to a partition.
type Delivery struct {
	Seq     uint64    // its place in the stream, which others share
	Time    time.Time // when the broker accepted it, the same for every reader
	Data    []byte
	Pending uint64 // messages to the partition after it, as far as the broker knew
}

// Bounds of read-ahead. A server drops a client with more than 64 MiB of pending data, and a
// process may read dozens of streams. A bound in bytes alone is not enough: the client library then
// reserves 8 MB for each reader, which also lets the collector tolerate that much garbage.
//
// The readers of a process share its link. If what they have asked for takes longer than a heartbeat or
// two, each of them takes the others' messages for the silence of a lost server, and asks again.
const (
	readAhead     = 1 << 20 // bytes of one request
	readMessages  = 256
	readHeartbeat = 2 * time.Second
	readExpiry    = 10 * time.Second
)

// A Reader returns the messages to a partition in the order of the stream, each once. It survives the
// loss of servers. It is not safe for concurrent use.
type Reader struct {
	bus   *Bus
	of    message.Dest
	next  uint64
	iter  jetstream.MessagesContext // nil if it must be set up
	count uint64                    // of messages that iter has delivered
}

// Read returns a reader of the messages to a partition from a sequence on.
func (b *Bus) Read(of message.Dest, from uint64) *Reader {
	return &Reader{bus: b, of: of, next: max(from, 1)}
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
		case err != nil:
			continue
		case meta.Sequence.Consumer != r.count+1: // one before it was lost on the way
			r.Stop()
			continue
		}
		r.count++
		r.next = meta.Sequence.Stream + 1
		return Delivery{meta.Sequence.Stream, meta.Timestamp, msg.Data(), meta.NumPending}, nil
	}
	return Delivery{}, ctx.Err()
}

// open sets up a consumer at the next sequence, and reports whether that worked.
//
// The ordered consumers of the client library recover by themselves, but they retry with the same
// name forever, even after the end of ctx. The broker may have assigned that name to a server that
// has just died, and wait for its answer. Here each attempt has a new name, chosen by the library.
func (r *Reader) open(ctx context.Context) bool {
	consumer, err := r.bus.js.CreateConsumer(ctx, r.bus.crawl, jetstream.ConsumerConfig{
		FilterSubject:     r.bus.subject(r.of),
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       r.next,
		AckPolicy:         jetstream.AckNonePolicy,
		InactiveThreshold: time.Minute,
		Replicas:          1,
		MemoryStorage:     true,
	})
	if r.count = 0; err == nil {
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
