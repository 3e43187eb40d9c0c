package jet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A Table is a set of values by key, stored by the broker. Its methods are safe for concurrent use.
type Table struct {
	bus    *Bus
	kv     jetstream.KeyValue
	stream jetstream.Stream // that stores the values
}

// ErrNoTable means that the table has not been created yet.
var ErrNoTable = errors.New("jet: no such table")

// Table opens a table of the crawl, or fails with [ErrNoTable].
func (b *Bus) Table(ctx context.Context, name string) (*Table, error) {
	return b.table(ctx, name, b.js.KeyValue)
}

// MakeTable creates a table with the replicas of this connection's options. An existing table gets
// that many.
func (b *Bus) MakeTable(ctx context.Context, name string) (*Table, error) {
	return b.table(ctx, name, func(ctx context.Context, bucket string) (jetstream.KeyValue, error) {
		return b.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: bucket, History: 1, Storage: jetstream.FileStorage, Replicas: b.opts.Replicas,
			LimitMarkerTTL: time.Minute, // watchers learn that a value has expired
		})
	})
}

func (b *Bus) table(
	ctx context.Context, name string, bucket func(context.Context, string) (jetstream.KeyValue, error),
) (*Table, error) {
	t := &Table{bus: b}
	name = b.crawl + "-" + name
	err := b.within(ctx, 5*requestTimeout, func(ctx context.Context) (err error) { // of up to five requests
		if t.kv, err = bucket(ctx, name); err == nil {
			err = b.readLeader(ctx, t)
		}
		return err
	})
	switch {
	case errors.Is(err, jetstream.ErrBucketNotFound):
		return nil, fmt.Errorf("%w: %s", ErrNoTable, name)
	case err != nil:
		return nil, fmt.Errorf("jet: table %s: %w", name, err)
	}
	return t, nil
}

// readLeader finds the stream of a table, and ensures that values are read from its leader: other
// servers may lag behind. By default any of them may answer.
func (b *Bus) readLeader(ctx context.Context, t *Table) (err error) {
	if t.stream, err = b.js.Stream(ctx, "KV_"+t.kv.Bucket()); err != nil {
		return err
	}
	config := t.stream.CachedInfo().Config
	if !config.AllowDirect {
		return nil
	}
	config.AllowDirect = false
	if t.stream, err = b.js.UpdateStream(ctx, config); err != nil {
		return err
	}
	t.kv, err = b.js.KeyValue(ctx, t.kv.Bucket())
	return err
}

// Put writes a value unconditionally.
func (t *Table) Put(ctx context.Context, key string, value []byte) error {
	return t.bus.untilAnswered(ctx, func(ctx context.Context) error {
		_, err := t.kv.Put(ctx, key, value)
		return err
	})
}

// Get returns a value, or nil if there is none.
func (t *Table) Get(ctx context.Context, key string) (value []byte, err error) {
	_, value, err = t.Look(ctx, key)
	return value, err
}

// Delete removes a value. Watchers of the table do not learn of it: the broker's own deletion would
// leave a marker behind forever.
func (t *Table) Delete(ctx context.Context, key string) error {
	subject := "$KV." + t.kv.Bucket() + "." + key
	return t.bus.untilAnswered(ctx, func(ctx context.Context) error {
		return t.stream.Purge(ctx, jetstream.WithPurgeSubject(subject))
	})
}

// Look returns a value and its revision, or nil and 0 if there is none.
func (t *Table) Look(ctx context.Context, key string) (revision uint64, value []byte, err error) {
	err = t.bus.untilAnswered(ctx, func(ctx context.Context) error {
		entry, err := t.kv.Get(ctx, key)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			revision, value = 0, nil
			return nil
		}
		if err == nil {
			revision, value = entry.Revision(), entry.Value()
		}
		return err
	})
	return revision, value, err
}

// An Entry is a value as delivered to a watcher.
type Entry struct {
	Key      string
	Value    []byte // nil if it has expired, or was deleted other than by Delete
	Revision uint64
	Seen     time.Time // when this process saw it
	Stored   time.Time // by the clock of the broker
}

// Try tries once to replace the value of a revision, 0 for none, and reports whether it did.
func (t *Table) Try(ctx context.Context, key string, value []byte, revision uint64) (bool, uint64) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	next, err := t.kv.Update(ctx, key, value, revision)
	switch {
	case err == nil:
		t.bus.answered()
	case transient(err):
		t.bus.wait(err)
	}
	return err == nil, next
}

// TryFor is Try for a value that the broker removes after a time, in whole seconds. Watchers see that
// as an entry without a value.
func (t *Table) TryFor(ctx context.Context, key string, value []byte, revision uint64, ttl time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := t.bus.js.Publish(ctx, "$KV."+t.kv.Bucket()+"."+key, value,
		jetstream.WithExpectLastSequencePerSubject(revision), jetstream.WithMsgTTL(ttl))
	return err == nil
}

// Watch calls see with all values and then with each change, until ctx ends. A nil entry follows
// the initial values. After an outage of the servers it starts again.
func (t *Table) Watch(ctx context.Context, see func(*Entry)) {
	for ctx.Err() == nil {
		if watcher, err := t.kv.WatchAll(ctx); err == nil {
			t.follow(ctx, watcher, see)
			_ = watcher.Stop() // it may have ended already
		}
		sleep(ctx, reconnectWait)
	}
}

func (t *Table) follow(ctx context.Context, watcher jetstream.KeyWatcher, see func(*Entry)) {
	for {
		select {
		case <-ctx.Done():
			return
		case update, ok := <-watcher.Updates():
			switch {
			case !ok:
				return
			case update == nil:
				see(nil)
			case update.Operation() != jetstream.KeyValuePut:
				see(&Entry{update.Key(), nil, update.Revision(), time.Now(), update.Created()})
			default:
				see(&Entry{update.Key(), update.Value(), update.Revision(), time.Now(), update.Created()})
			}
		}
	}
}
