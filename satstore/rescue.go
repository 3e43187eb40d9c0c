package satstore

import (
	"fmt"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
	"github.com/spinneret-go/spinneret/satstore/internal/wal"
)

// A rescuer repeats changes for Repair, despite damage in the blocks that they refer to. The log names
// a record that was due by its position in a bucket, so a record that cannot be read must not shift
// the positions of others. A visit to such a record puts an entry of noRecord in the place where the
// record went. Later splits move that entry, as its slot is known.
//
// If a split meets damage, it is unknown how many records went to each bucket, and all positions after
// that. The same holds if there was a message for a record that cannot be read, and it may be in the
// bucket that is split: then a record was not to move, or a message was. Then the rescuer changes to a
// mode in which it repeats only what does not depend on positions: additions, messages and deletions. A
// record whose visit it skips has the data and the time from before the visit.
type rescuer struct {
	*replayer
	report  func(error)
	bad     extent.Block // position of the last block that was unreadable
	unknown uint64       // messages for records that cannot be read
	stopped error        // why visits are skipped; nil if they are not
	skipped int64        // visits and steps of splits
}

// rescue repeats the changes of a log and of the logs that continue it, and reports what it could not
// repeat. At the beginning, there are unknown messages for records that cannot be read.
func (s *Store) rescue(log, unknown uint64, report func(error)) {
	x := &rescuer{replayer: s.newReplayer(), report: report, unknown: unknown}
	// Changes after an unreadable sector are lost, but not those before it.
	report(x.run(durable.Salvage(s.fs), log, x.repeat))
	if x.stopped != nil {
		report(x.stopped)
		report(fmt.Errorf("satstore: %d visits and steps of splits in the log could not be repeated "+
			"after that: their records have older times and data", x.skipped))
	}
}

func (x *rescuer) repeat(h *wal.Change) (err error) {
	if x.s.pool.Full(8) {
		x.relieve()
	}
	switch h.Kind {
	case wal.Update, wal.Again, wal.Delete:
		if x.s.bucketOf(h.Seq) == nil {
			x.unknown++
		}
	}
	switch {
	case x.stopped != nil:
		return x.repeatAnywhere(h)
	case x.unknown > 0 && (h.Kind == wal.Split || h.Kind == wal.Skip) && x.mayDiffer():
		err = wal.Misfit("a split of records whose positions are unknown")
	case h.Kind == wal.Move || h.Kind == wal.Drop:
		err = x.visit(h)
	default:
		err = x.replayer.repeat(h)
	}
	if err != nil {
		x.stopped = durable.Corrupt(wal.FileName(h.Log), h.End, "before this: "+err.Error())
		return x.repeatAnywhere(h)
	}
	return nil
}

// visit repeats the change of a record that was due, which may be unreadable.
func (x *rescuer) visit(h *wal.Change) error {
	b := x.bucket(h)
	if b == nil {
		return x.replayer.visit(h) // which says why
	}
	if !x.bad.Has(b.id, h.Record) {
		e, err := x.entry(b, h)
		if err == nil && e.seq != noRecord {
			return x.replayer.visit(h)
		}
		if err != nil {
			x.report(err)
			x.bad = x.last
		}
	}
	if h.Kind == wal.Drop {
		x.s.ids.Delete(h.Key)
		x.s.markGone(b, h.Record)
	} else {
		x.s.move(b, h.Record, entry{seq: noRecord, slot: h.Slot})
	}
	return nil
}

// mayDiffer reports whether the log may have been split differently: a message for a record that cannot
// be read is perhaps in the bucket that is split, or one that has many deleted records without our
// knowledge was split instead.
func (x *rescuer) mayDiffer() bool {
	for b := range x.s.buckets {
		if b.holes && !x.s.isAside(b) && (x.s.split == nil || x.s.split.bucket == b || b.gone+x.unknown > minGone) {
			return true
		}
	}
	return false
}

// repeatAnywhere repeats a change if it does not depend on positions, and counts it if it does.
func (x *rescuer) repeatAnywhere(h *wal.Change) error {
	switch h.Kind {
	case wal.Add, wal.Update, wal.Delete:
		return x.replayer.repeat(h)
	case wal.Drop: // as if by its id
		seq, err := x.s.seqOf(h.Key)
		if err == nil && seq != idset.None {
			x.s.remove(seq)
			x.s.ids.Delete(h.Key)
			return nil
		}
	}
	if h.Kind != wal.Advance && h.Kind != wal.Again {
		x.skipped++
	}
	return nil
}
