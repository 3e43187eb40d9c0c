package satstore

import (
	"errors"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
)

// Everything that reads more than one block of a bucket reads it here: Scan, Check, Repair,
// recovery and the messages of a bucket that is due.

// A damageFunc is called with the range of entries that cannot be read, and the reason. It returns
// nil to continue with the entries after them.
type damageFunc func(from, to uint64, err error) error

// keepDamage collects the damage, up to a limit.
func keepDamage(found *[]error) damageFunc {
	return func(_, _ uint64, err error) error {
		if !errors.Is(err, ErrCorrupt) {
			return err
		}
		if len(*found) < maxFindings {
			*found = append(*found, err)
		}
		return nil
	}
}

// walkRecords visits the records of a bucket from one number up to another, until visit returns
// false. It skips those that are gone. Entries share memory that is valid until visit returns. The
// bucket must not change during the walk, unless the reader has a lock.
func walkRecords(
	r *extent.Reader, b *bucket, from, to uint64, damaged damageFunc,
	visit func(at uint64, e entry) (more bool),
) (more bool, err error) {
	r.Open(&b.records, b.id, extent.Records)
	return walk(r, from, to, damaged, b.takeRecords(from, visit))
}

// walkMessages is walkRecords for messages.
func walkMessages(
	r *extent.Reader, b *bucket, from, to uint64, damaged damageFunc,
	visit func(at, seq uint64, m message) (more bool),
) (more bool, err error) {
	r.Open(&b.messages, b.id, extent.Messages)
	return walk(r, from, to, damaged, takeMessages(from, visit))
}

// A takeFunc decodes an entry, and visits it if it is valid and wanted. It reports whether to go on.
type takeFunc func(at uint64, d *durable.Decoder) (more bool)

func (b *bucket) takeRecords(from uint64, visit func(at uint64, e entry) bool) takeFunc {
	return func(at uint64, d *durable.Decoder) bool {
		e := b.takeEntry(d)
		return d.Bad || at < from || visit(at, e)
	}
}

func takeMessages(from uint64, visit func(at, seq uint64, m message) bool) takeFunc {
	return func(at uint64, d *durable.Decoder) bool {
		seq, m := takeMessage(d)
		return d.Bad || at < from || visit(at, seq, m)
	}
}

func walk(
	r *extent.Reader, from, to uint64, damaged damageFunc, take takeFunc,
) (more bool, err error) {
	for from < to {
		got, err := walkBlock(r, from, to, take)
		if err != nil && got.lost > 0 && damaged != nil {
			err = damaged(got.next-got.lost, got.next, err)
		}
		if err != nil || !got.more {
			return false, err
		}
		if got.next == from {
			break // the rest is gone
		}
		from = got.next
	}
	return true, nil
}

// A walked is the result of walkBlock.
type walked struct {
	next uint64 // entry to visit next
	lost uint64 // entries before it that cannot be read
	more bool   // visit has not returned false
}

// walkBlock visits the entries from one number up to another that are in the block of the first of
// them, or in the next block if that one is gone.
func walkBlock(r *extent.Reader, from, to uint64, take takeFunc) (walked, error) {
	found, err := r.Next(from)
	first := min(max(found.First, from), to)
	end := min(found.First+uint64(found.Count), to)
	next := max(end, from)
	if err != nil {
		return walked{next, next - first, true}, err
	}
	d := durable.Decoder{B: found.Raw}
	for at := found.First; at < end; at++ {
		more := take(at, &d)
		if d.Bad {
			return walked{next, next - max(at, from), true}, r.Misfit(at)
		}
		if !more {
			return walked{at + 1, 0, false}, nil
		}
	}
	return walked{next, 0, true}, nil
}
