package satstore

import (
	"fmt"

	"github.com/spinneret-go/spinneret/satstore/internal/disk"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
	"github.com/spinneret-go/spinneret/satstore/internal/wal"
)

// A rescuer repeats changes for Repair, despite damage in the blocks that they refer to. The log names
// a record that was due by its position in a bucket, so a record that cannot be read must not shift
// the positions of others. A visit to such a record puts an entry of noRecord in the place where the
// record went.
//
// If a split meets damage, or moves such entries, it is unknown how many records went to each bucket,
// and all positions after that. Then the rescuer changes to a mode in which it repeats only what does
// not depend on positions: additions, messages and deletions. A record whose visit it skips has the
// data and the time from before the visit.
type rescuer struct {
	*replayer
	report  func(error)
	bad     extent.Block // position of the last block that was unreadable
	shifted bool         // entries in buckets are not those of the log, so a split cannot be repeated
	stopped error        // why visits are skipped; nil if they are not
	skipped int64        // visits and steps of splits
}

// noRecord is the number of an entry that stands for a record in a damaged block.
const noRecord = 1<<64 - 1

// rescue repeats the changes of a log and of the logs that continue it, and reports what it could not
// repeat.
func (s *Store) rescue(log uint64, report func(error)) {
	x := &rescuer{replayer: s.newReplayer(), report: report}
	report(x.run(log, x.repeat))
	if x.stopped != nil {
		report(x.stopped)
		report(fmt.Errorf("satstore: %d visits and steps of splits in the log could not be repeated "+
			"after that: their records have older times and data", x.skipped))
	}
}

func (x *rescuer) repeat(h *wal.Change) (err error) {
	if s := x.s; (h.Kind == wal.Update || h.Kind == wal.Delete) && s.bucketOf(h.Seq) == nil &&
		s.places.get(h.Seq) != lostNumber {
		x.shifted = true // a message was counted, or a record was not to move
		if h.Kind == wal.Delete {
			s.lost.Records -= min(1, s.lost.Records)
		}
	}
	switch {
	case x.stopped != nil:
		return x.repeatAnywhere(h)
	case x.shifted && (h.Kind == wal.Split || h.Kind == wal.Skip):
		err = wal.Misfit("a split of records whose positions are unknown")
	case h.Kind == wal.Move || h.Kind == wal.Drop:
		err = x.visit(h)
	default:
		err = x.replayer.repeat(h)
	}
	if err != nil {
		x.stopped = disk.Corrupt(wal.FileName(h.Log), h.End, "before this: "+err.Error())
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
	if !x.isBad(b, h.Record) {
		e, err := x.entry(b, h.Record)
		if err == nil && e.seq != noRecord {
			return x.replayer.visit(h)
		}
		if err != nil {
			x.report(err)
			x.bad = x.last
		}
	}
	x.shifted = true
	if h.Kind == wal.Drop {
		x.s.ids.Delete(h.Key)
	} else {
		to := x.s.bucketFor(max(h.Slot, x.s.calendar.Now()+1))
		x.s.scratch = to.place(x.s.pool, entry{seq: noRecord, slot: h.Slot}, x.s.scratch)
	}
	x.s.markGone(b, h.Record)
	return nil
}

func (x *rescuer) isBad(b *bucket, record uint64) bool {
	return x.bad.Bucket == b.id && x.bad.First <= record &&
		record < x.bad.First+uint64(x.bad.Count)
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
