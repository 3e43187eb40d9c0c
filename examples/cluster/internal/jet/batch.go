package jet

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// MaxBatch is how many records and messages the broker commits together at most.
const MaxBatch = 1000

// MaxMessage bounds a message that is made of several items. A broker takes 64 KiB at nearly the
// price of one URL.
const MaxMessage = 64 << 10

// LargestMessage bounds one that is made of several items if there are very many.
const LargestMessage = 896 << 10

// A Record is the state of a partition. No two writers may store equal values: a writer recognizes
// its own by them if the answer was lost.
type Record struct {
	Of       message.Dest
	Value    []byte
	Revision uint64 // of the record that it replaces; 0 if there is none
}

// A Message has items for a partition; see package message.
type Message struct {
	To   message.Dest
	Data []byte
}

// slowest is the rate of a link, in bytes per second, that can still send a batch. An attempt that ended
// earlier would be repeated for ever.
const slowest = 512 << 10

// afloat is how much of a batch is on its way at once. The pings that tell a lost server wait behind it,
// so more of it would make a slow link look like one.
const afloat = slowest / 2

// ErrFull means that the stream has no room for a batch. A smaller one may still fit.
var ErrFull = errors.New("jet: the stream has no room")

// Commit stores records and sends messages, all or none of them: the broker commits the batch only if
// each record still has the revision that it is to replace. It sets the revisions of the records, and
// waits while servers are away. The error is [ErrFull] if the stream has no room. If others have
// replaced some of the records, it returns these as fenced; usually nothing was stored then.
//
// If an answer is lost, the same batch is sent again. Whichever comes first is stored, and the other
// one is refused because of its revisions, so nothing is sent twice. That also holds for a batch that
// is sent again after ErrFull, or in parts of whole records with their messages.
func (b *Bus) Commit(
	ctx context.Context, records []Record, messages []Message,
) (stored bool, fenced []message.Dest, err error) {
	size := 0
	for _, m := range messages {
		size += len(m.Data)
	}
	limit := requestTimeout + time.Duration(size)*time.Second/slowest
	for {
		var last uint64
		err := b.within(ctx, limit, func(ctx context.Context) (err error) {
			if last, err = b.sendBatch(ctx, records, messages); errorCode(err) == codeFull {
				b.wait(err)
				return ErrFull
			}
			return err
		})
		switch code := errorCode(err); {
		case err == nil:
			b.sent.Add(int64(len(messages)))
			for i := range records {
				records[i].Revision = last - uint64(len(records)-1-i)
			}
			return true, nil, nil
		case errors.Is(err, ErrFull):
			return false, nil, err
		case code == codeBusy || code == codeIncomplete:
			b.wait(err)
		case code == codeRevision || code == codeInFlight:
			stored, fenced, err := b.inspect(ctx, records)
			if stored {
				b.sent.Add(int64(len(messages)))
			}
			if err != nil || stored || len(fenced) > 0 {
				return stored, fenced, err
			}
			// Another write of a record is still in progress, which may be this one.
		default:
			return false, nil, fmt.Errorf("jet: commit: %w", err)
		}
		if !sleep(ctx, reconnectWait) {
			return false, nil, ctx.Err()
		}
	}
}

// Error codes of the brokers for a batch.
const (
	codeFull       = 10077 // the stream has no room
	codeRevision   = 10071 // another revision
	codeInFlight   = 10164 // the record is just being written
	codeIncomplete = 10176 // a part of the batch is missing
	codeBusy       = 10210 // too many batches at once
)

// inspect finds out what has become of a batch that was refused because of its revisions: an earlier
// attempt has stored it, or others have replaced some of the records, or both, in this order.
func (b *Bus) inspect(ctx context.Context, records []Record) (stored bool, fenced []message.Dest, err error) {
	found := make([]uint64, len(records))
	for i, r := range records {
		value, revision, err := b.Record(ctx, r.Of)
		switch {
		case err != nil:
			return false, nil, err
		case bytes.Equal(value, r.Value):
			stored = true
		case revision != r.Revision:
			fenced = append(fenced, r.Of)
		}
		found[i] = revision
	}
	for i := range records {
		if stored {
			records[i].Revision = found[i]
		}
	}
	return stored, fenced, nil
}

// sendBatch sends a batch and returns the sequence of its last record. The broker answers only the
// last part, and refuses that if an earlier one has not arrived.
func (b *Bus) sendBatch(ctx context.Context, records []Record, messages []Message) (last uint64, err error) {
	id, n, sent := rand.Text(), 0, 0
	publish := func(m *nats.Msg) error {
		if sent += len(m.Data); sent > afloat {
			if err := b.conn.FlushWithContext(ctx); err != nil {
				return err
			}
			sent = len(m.Data)
		}
		return b.conn.PublishMsg(m)
	}
	part := func(subject string, data []byte) *nats.Msg {
		n++
		m := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{}}
		m.Header.Set("Nats-Batch-Id", id)
		m.Header.Set("Nats-Batch-Sequence", strconv.Itoa(n))
		return m
	}
	for _, m := range messages {
		if err := publish(part(b.subject(m.To), m.Data)); err != nil {
			return 0, err
		}
	}
	for i, r := range records {
		m := part(b.recordSubject(r.Of), r.Value)
		m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(r.Revision, 10))
		m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
		if i < len(records)-1 {
			if err := publish(m); err != nil {
				return 0, err
			}
			continue
		}
		m.Header.Set("Nats-Batch-Commit", "1")
		answer, err := b.conn.RequestMsgWithContext(ctx, m)
		if err != nil {
			return 0, err
		}
		var ack struct {
			Seq   uint64              `json:"seq"`
			Error *jetstream.APIError `json:"error"`
		}
		if err := json.Unmarshal(answer.Data, &ack); err != nil {
			return 0, fmt.Errorf("answer of the broker: %w", err)
		}
		if ack.Error != nil {
			return 0, ack.Error
		}
		last = ack.Seq
	}
	return last, nil
}

// Send stores messages that are part of no batch. It waits while servers are away or the stream has
// no room. If an answer is lost, a message may be stored twice.
func (b *Bus) Send(ctx context.Context, m Message) error {
	return b.untilAnswered(ctx, func(ctx context.Context) error {
		_, err := b.js.Publish(ctx, b.subject(m.To), m.Data)
		return err
	})
}

// Record returns the record of a partition and its revision, or nil and 0 if there is none.
func (b *Bus) Record(ctx context.Context, of message.Dest) (value []byte, revision uint64, err error) {
	return b.lastOf(ctx, b.recordSubject(of))
}

// End returns the sequence of the last message to a partition, or 0 if there is none.
func (b *Bus) End(ctx context.Context, to message.Dest) (seq uint64, err error) {
	_, seq, err = b.lastOf(ctx, b.subject(to))
	return seq, err
}

// lastOf reads the last message of a subject from the leader of the stream.
func (b *Bus) lastOf(ctx context.Context, subject string) (data []byte, seq uint64, err error) {
	err = b.untilAnswered(ctx, func(ctx context.Context) error {
		stream, err := b.opened(ctx)
		if err != nil {
			return err
		}
		m, err := stream.GetLastMsgForSubject(ctx, subject)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			data, seq = nil, 0
			return nil
		case err == nil:
			data, seq = m.Data, m.Sequence
		}
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("jet: read %s: %w", subject, err)
	}
	return data, seq, nil
}
