package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/engine"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// A load has the parameters of a measurement of the message path.
type load struct {
	brokers, parts, messages, size, batch int
}

// benchMessages measures the path of every URL: committed in batches, stored by the broker, read in
// order, applied to a state that is checkpointed each second. The broker is a process of its own.
// Writers and readers are in this process, each side with its own connection.
func benchMessages(fs *flag.FlagSet) action {
	var l load
	fs.IntVar(&l.brokers, "brokers", 1, "1, or 3 with as many replicas")
	fs.IntVar(&l.parts, "parts", 16, "partitions")
	fs.IntVar(&l.messages, "messages", 2_000_000, "total number of messages")
	fs.IntVar(&l.size, "size", 500, "bytes of a message")
	fs.IntVar(&l.batch, "batch", 64, "messages in one message of the broker")
	rounds := fs.Int("rounds", 3, "number of measurements")
	return func(ctx context.Context, _ []string, out, log io.Writer) error {
		fmt.Fprintln(out, "brokers  partitions  bytes  batch  messages  seconds  messages/s   MB/s")
		for range *rounds {
			took, err := l.run(ctx, log)
			if err != nil {
				return err
			}
			rate := float64(l.messages) / took.Seconds()
			fmt.Fprintf(out, "%7d  %10d  %5d  %5d  %8d  %7.2f  %10.0f  %5.0f\n", l.brokers, l.parts,
				l.size, l.batch, l.messages, took.Seconds(), rate, rate*float64(l.size)/1e6)
		}
		return nil
	}
}

// run sends all messages and waits until the last one is part of a checkpoint.
func (l load) run(ctx context.Context, log io.Writer) (time.Duration, error) {
	urls, stop, err := servers(ctx, l.brokers, log)
	if err != nil {
		return 0, err
	}
	defer stop()
	bus, err := reach(ctx, urls, l.brokers, 1<<30)
	if err != nil {
		return 0, err
	}
	defer bus.Close()
	if err := bus.CreateStream(ctx); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	defer running.Wait()
	reading, err := reach(ctx, urls, l.brokers, 0)
	if err != nil {
		return 0, err
	}
	defer reading.Close()
	states, err := reading.MakeTable(ctx, "states")
	if err != nil {
		return 0, err
	}
	post := engine.NewPost(reading, engine.DefaultEvery)
	go post.Run(ctx)
	quit := make(chan struct{})
	fold := engine.Fold(engine.FoldOptions{
		Bus: reading, States: states, Post: post,
		New: func(engine.Claim) engine.State { return &tally{counts: map[string]int64{}} },
	})
	for part := range l.parts {
		running.Go(func() {
			c := engine.Claim{
				Dest: message.Dest{To: message.Dedupe, Part: part}, Epoch: 1, Quit: quit,
				Guard: func() error { return nil },
			}
			if err := fold(ctx, c); err != nil {
				cancel(err)
			}
		})
	}
	defer close(quit)
	began := time.Now()
	if err := l.send(ctx, bus); err != nil {
		return 0, err
	}
	err = l.arrived(ctx, bus)
	return time.Since(began), err
}

// perBatch is how many messages of the broker one writer commits together.
const perBatch = 16

// send commits the messages to each partition from a goroutine of its own.
func (l load) send(ctx context.Context, bus *jet.Bus) error {
	it := message.Item{Kind: message.Page, URL: strings.Repeat("u", max(l.size-4, 1))}
	errs := make(chan error, l.parts)
	for part := range l.parts {
		go func() {
			record := []jet.Record{{Of: message.Dest{To: message.Fetch, Part: part}}}
			var err error
			for left := l.share(part); left > 0 && err == nil; {
				var batch []jet.Message
				for ; left > 0 && len(batch) < perBatch; left -= l.batch {
					var data []byte
					for range min(left, l.batch) {
						data = message.Encode(data, it)
					}
					batch = append(batch, jet.Message{To: message.Dest{To: message.Dedupe, Part: part}, Data: data})
				}
				record[0].Value = fmt.Append(nil, left)
				_, _, err = bus.Commit(ctx, record, batch)
			}
			errs <- err
		}()
	}
	var err error
	for range l.parts {
		err = errors.Join(err, <-errs)
	}
	return err
}

// share returns the number of messages for one partition.
func (l load) share(part int) int {
	return l.messages*(part+1)/l.parts - l.messages*part/l.parts
}

// arrived waits until the states have all messages.
func (l load) arrived(ctx context.Context, bus *jet.Bus) error {
	for part := 0; part < l.parts; {
		root, err := engine.ReadRoot(ctx, bus, message.Dest{To: message.Dedupe, Part: part})
		switch {
		case err != nil:
			return err
		case root.Counts[arrivedCount] == int64(l.share(part)):
			part++
			continue
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}

const arrivedCount = "messages"

// A tally is a state that counts messages.
type tally struct{ counts map[string]int64 }

// Apply counts a message.
func (s *tally) Apply(message.Item, time.Time, engine.Emit) { s.counts[arrivedCount]++ }

// Wants returns nothing.
func (s *tally) Wants() []string { return nil }

// Open returns 0.
func (s *tally) Open() int { return 0 }

// Counts returns the number of applied messages.
func (s *tally) Counts() map[string]int64 { return s.counts }

// Changes returns a chunk of eight bytes, so that a checkpoint has all of its steps.
func (s *tally) Changes(bool, int) [][]byte {
	return [][]byte{binary.LittleEndian.AppendUint64(nil, uint64(s.counts[arrivedCount]))}
}

// Load does nothing: the count is stored in the root.
func (s *tally) Load([]byte) error { return nil }
