package satstore

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
	"github.com/spinneret-go/spinneret/satstore/internal/wal"
)

// Every change goes through Store.change, which waits for room and takes the lock. Under it,
// logChange writes the change to the log, and a method of state applies it, which cannot fail. So
// log and state never differ, and a replay sees the same state before each change.

// An Item is a record to add, or a copy of one that is stored.
type Item struct {
	ID   string
	At   time.Time // when it is due; the past means now
	Data []byte
}

// Add adds a record. If its id is known, it does nothing and returns false. An id that is empty or
// longer than MaxID, or data longer than MaxData, is [ErrSize]. [Store.AddBatch] is faster for many
// records.
func (s *Store) Add(id string, at time.Time, data []byte) (added bool, err error) {
	n, err := s.AddBatch([]Item{{id, at, data}})
	return n == 1, err
}

// AddBatch adds records and returns how many it added. It skips known ids, and ids that are
// repeated in the batch. [ErrSize] means that it has added none. After another error, the items before
// the one that failed have been added. Items whose ids cannot be looked up, because of damage to the id
// index, are not added, but all others are, and the error is a [CorruptError].
func (s *Store) AddBatch(items []Item) (added int, err error) {
	err = s.AddEach(items, func(Item) { added++ })
	return added, err
}

// AddEach is AddBatch for callers that want to know which items it added: it calls done with each
// of them. The function must not call methods of the Store.
func (s *Store) AddEach(items []Item, done func(Item)) error {
	for _, item := range items {
		if len(item.ID) == 0 || len(item.ID) > MaxID || len(item.Data) > MaxData {
			return ErrSize
		}
	}
	s.adding.Lock()
	defer s.adding.Unlock()
	fresh, damage := s.newKeys(items)
	if fresh == nil {
		return damage
	}
	var id []byte
	for i, item := range items {
		if fresh[i] == (idset.Key{}) {
			continue
		}
		// Each item is a separate change: the log needs no room for all of them at once, and a
		// crash leaves a prefix of the batch.
		added := false
		s.awaitCheckpoint()
		err := s.change(wal.MaxSize(len(item.ID)+len(item.Data)), func() (survives bool, err error) {
			slot := max(slotOf(item.At, s.o.Unit), s.calendar.Now())
			survives, err = s.logChange(
				&wal.Change{Kind: wal.Add, Slot: slot, ID: item.ID, Data: item.Data})
			if added = err == nil; added {
				s.ids.Put(fresh[i], s.seq)
				s.idChanges++
				id = append(id[:0], item.ID...)
				s.add(slot, id, item.Data)
				s.stats.Added++
			}
			return survives, err
		})
		if added {
			done(item)
		}
		if err != nil {
			return err
		}
	}
	return damage
}

// newKeys returns the key of each item that is new, and zero for the others. If damage is not nil, some
// could not be looked up. It requires that s.adding is held.
func (s *Store) newKeys(items []Item) (keys []idset.Key, damage error) {
	keys = make([]idset.Key, len(items))
	for i := range items {
		keys[i] = idset.KeyOf(items[i].ID)
	}
	known, err := s.ids.Find(keys)
	if errors.Is(err, ErrCorrupt) {
		known, damage = s.findEach(keys)
	} else if err != nil {
		return nil, err
	}
	// No id has the zero key: it would take 2^127 attempts to find one.
	met := make(map[idset.Key]bool, len(items))
	for i, key := range keys {
		if known[i] != idset.None || met[key] {
			keys[i] = idset.Key{}
		}
		met[key] = true
	}
	return keys, damage
}

// findEach looks up keys one by one, so that damage affects only those in damaged blocks. The number of
// such a key is 0.
func (s *Store) findEach(keys []idset.Key) (seqs []uint64, damage error) {
	seqs = make([]uint64, len(keys))
	for i, key := range keys {
		seq, err := s.seqOf(key)
		if damage = cmp.Or(damage, err); err == nil {
			seqs[i] = seq
		}
	}
	return seqs, damage
}

// Update leaves a message for the record with an id. [Options].Merge applies it when the record is
// next due. Messages for one record are applied in the order of the calls. If the record is out, a
// message waits until it is due again.
//
// Update returns [ErrUnknown] if no record has the id, and [ErrSize] if the message is larger than
// MaxData. For a record in a damaged block that the store had to move before it was due, see [Store.Due], the
// first is also a [CorruptError]. A message for one that was due waits until [Repair].
//
// Messages for records that are out, or in a part of a unit that Due has begun to read, also before the last
// Open, are in memory, about 160 bytes more than their data each. Together they may take [Options].Buffer, at
// least MaxData and at most a GiB: one more is ErrSize until records are returned. All others are on disk.
// Due, Scan, Get and Repair hold all messages for one record in memory at once, whatever they take.
// So a caller should not send without end to a record that is not due.
func (s *Store) Update(id string, data []byte) error {
	if len(data) > MaxData {
		return ErrSize
	}
	return s.changeKnown(id, len(data), func(_ idset.Key, seq uint64) (survives bool, err error) {
		if b := s.bucketOf(seq); b == nil || s.isAside(b) {
			return true, errAstray(id)
		}
		m := message{payload: data}
		if memory := s.memoryFor(seq, m); memory > 0 && s.waiting+memory > s.maxWaiting() {
			return true, ErrSize
		}
		survives, err = s.logChange(&wal.Change{Kind: wal.Update, Seq: seq, Data: data})
		if err == nil {
			s.addMessage(seq, m)
		}
		return survives, err
	})
}

// Delete removes the record with an id, which may be added again immediately. If the record is out,
// it need not be returned. Delete returns [ErrUnknown] if no record has the id.
func (s *Store) Delete(id string) error {
	return s.changeKnown(id, 0, func(key idset.Key, seq uint64) (survives bool, err error) {
		survives, err = s.logChange(&wal.Change{Kind: wal.Delete, Seq: seq, Key: key})
		if err != nil {
			return false, err
		}
		b := s.bucketOf(seq)
		s.remove(seq)
		s.ids.Delete(key)
		s.idChanges++
		if b == nil || b.dead || s.isAside(b) || b.start > s.calendar.Now() || b.loaded || !b.wasteful() ||
			s.split != nil || !s.spreadable(b) {
			return survives, nil
		}
		// It is due, but Due has not begun to read it.
		return s.spreadOver(b, 1)
	})
}

// changeKnown makes a change for the record with an id, or returns ErrUnknown.
func (s *Store) changeKnown(
	id string, size int, do func(key idset.Key, seq uint64) (survives bool, err error),
) error {
	s.adding.Lock()
	defer s.adding.Unlock()
	s.awaitCheckpoint()
	key := idset.KeyOf(id)
	seq, err := s.seqOf(key)
	if err != nil {
		return err
	}
	return s.change(wal.MaxSize(size), func() (survives bool, err error) {
		// Record.Delete may have removed it since. A change of a record that is gone must not get into the
		// log: the bucket index from which a replay begins may be older, and lead to another one's bucket.
		if seq == idset.None || s.places.get(seq) == 0 {
			return true, ErrUnknown
		}
		return do(key, seq)
	})
}

// errAstray is the error for a record that is set aside, where nobody would read the message.
func errAstray(id string) error {
	return fmt.Errorf("%w: %w", ErrUnknown, durable.Corrupt(extent.Name, 0, fmt.Sprintf(
		"a damaged block hides the record of %.100q: use Repair", id)))
}

// memoryFor returns how much memory a message for a record takes now or at the next Due, or 0 if Due can
// read it in a part that fits. A bucket of which records were returned before Open has no parts.
func (s *Store) memoryFor(seq uint64, m message) int64 {
	switch b := s.bucketOf(seq); {
	case b.start > s.calendar.Now() || !b.loaded && s.spreadable(b):
		return 0
	case b.loaded:
		return m.size()
	default:
		return b.mailBytes() + m.size()
	}
}

// maxWaiting bounds the messages in memory. Those for a record are logged together with its visit, and
// the length of a group of the log has 32 bits.
func (s *Store) maxWaiting() int64 { return min(max(s.o.Buffer, MaxData+mailSize), 1<<30) }

// seqOf returns the sequence number of an id, or idset.None.
func (s *Store) seqOf(key idset.Key) (uint64, error) {
	seqs, err := s.ids.Find([]idset.Key{key})
	if err != nil {
		return idset.None, err
	}
	return seqs[0], nil
}
