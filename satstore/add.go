package satstore

import (
	"time"

	"github.com/spinneret-go/spinneret/satstore/internal/idset"
	"github.com/spinneret-go/spinneret/satstore/internal/wal"
)

// Each change goes the same way: begin locks and may refuse; note writes it to the log; then the
// state is changed, which cannot fail; end unlocks. So the log never has what the state has not,
// nor the other way round, and a replay meets the same state at each change.

// An Item is a record to be added, or one as it is in the store.
type Item struct {
	ID   string
	At   time.Time // when it is due; a passed one means at once
	Data []byte
}

// Add adds one record, unless its id is known: that is no error. An id that is empty or longer
// than MaxID, or data longer than MaxData, are [ErrSize]. [Store.AddBatch] is faster for many.
func (s *Store) Add(id string, at time.Time, data []byte) (added bool, err error) {
	n, err := s.AddBatch([]Item{{id, at, data}})
	return n == 1, err
}

// AddBatch adds records, but for those whose id is known or was met earlier in the batch, and
// returns how many it added. After an error the first ones, in the order of items, have been
// added.
func (s *Store) AddBatch(items []Item) (added int, err error) {
	for _, item := range items {
		if len(item.ID) == 0 || len(item.ID) > MaxID || len(item.Data) > MaxData {
			return 0, ErrSize
		}
	}
	s.adding.Lock()
	defer s.adding.Unlock()
	fresh, err := s.sift(items)
	if err != nil {
		return 0, err
	}
	var id []byte
	for i, item := range items {
		if fresh[i] == (idset.Key{}) {
			continue
		}
		// Each item is a change of its own, so that the log needs no room for all at once, and a
		// crash leaves the first ones.
		if err := s.begin(wal.MaxSize(len(item.ID) + len(item.Data))); err != nil {
			return added, err
		}
		slot := max(slotOf(item.At, s.o.Unit), s.calendar.Now())
		survives, err := s.note(&wal.Change{Kind: wal.Add, Slot: slot, ID: item.ID, Data: item.Data})
		if err != nil {
			s.mu.Unlock()
			return added, err
		}
		id = append(id[:0], item.ID...)
		s.ids.Put(fresh[i], s.seq)
		s.add(slot, id, item.Data)
		s.stats.Added++
		s.stats.UserBytes += int64(len(item.ID) + len(item.Data))
		added++
		if err := s.end(survives); err != nil {
			return added, err
		}
	}
	return added, nil
}

// sift returns the keys of the items that are new; that of the others is zero. It requires that
// s.adding is held.
func (s *Store) sift(items []Item) ([]idset.Key, error) {
	keys := make([]idset.Key, len(items))
	for i := range items {
		keys[i] = idset.KeyOf(items[i].ID)
	}
	known, err := s.ids.Find(keys)
	if err != nil {
		return nil, err
	}
	// The zero key, which marks what is not new, no id has: it would take 2^127 tries to find one.
	met := make(map[idset.Key]bool, len(items))
	for i, key := range keys {
		if known[i] != idset.None || met[key] {
			keys[i] = idset.Key{}
		}
		met[key] = true
	}
	return keys, nil
}

// A Message is what [Store.UpdateBatch] leaves for a record.
type Message struct {
	ID   string
	Data []byte
}

// Update leaves a message for the record of an id. [Options.Merge] applies it when the record is
// next due; messages for one record are applied in their order. One that comes while the record
// is out waits for the time after. It is [ErrUnknown] if no record has the id, [ErrSize] if the
// message is larger than MaxData.
func (s *Store) Update(id string, message []byte) error {
	left, err := s.UpdateBatch([]Message{{id, message}})
	if left == 0 && err == nil {
		err = ErrUnknown
	}
	return err
}

// UpdateBatch leaves several messages as Update does, and is faster. It passes over ids that no
// record has, and returns how many messages it left. After an error the first ones, in the order
// of the batch, have been left.
func (s *Store) UpdateBatch(batch []Message) (left int, err error) {
	keys := make([]idset.Key, len(batch))
	for i := range batch {
		if len(batch[i].Data) > MaxData {
			return 0, ErrSize
		}
		keys[i] = idset.KeyOf(batch[i].ID)
	}
	s.adding.Lock()
	defer s.adding.Unlock()
	seqs, err := s.ids.Find(keys)
	for i := 0; i < len(batch) && err == nil; i++ {
		if seqs[i] == idset.None {
			continue
		}
		h := &wal.Change{Kind: wal.Update, Seq: seqs[i], Data: batch[i].Data}
		if err = s.send(h, message{payload: h.Data}, nil); err == nil {
			left++
		}
	}
	if len(batch) > 0 && left == 0 && err == nil { // whoever meets no record is told, too
		s.mu.Lock()
		defer s.mu.Unlock()
		err = s.refusal()
	}
	return left, err
}

// Delete lets the id be unknown from now on. The record itself goes when it would be due next; one
// that is out can still be given back, and goes then. The id may be added again at once. It is
// [ErrUnknown] if no record has it.
func (s *Store) Delete(id string) error {
	s.adding.Lock()
	defer s.adding.Unlock()
	key := idset.KeyOf(id)
	seq, err := s.seqOf(key)
	if err != nil {
		return err
	}
	if seq == idset.None {
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := s.refusal(); err != nil {
			return err
		}
		return ErrUnknown
	}
	// The id is free at once, though the record may be a year from being read again: until then
	// the message keeps it from being handed out, by its sequence number and not by its id.
	return s.send(&wal.Change{Kind: wal.Delete, Seq: seq}, message{delete: true}, &key)
}

// send leaves a message for a record and lets its id be unknown, if forget says so. It requires
// that s.adding is held.
func (s *Store) send(h *wal.Change, m message, forget *idset.Key) error {
	if err := s.begin(wal.MaxSize(len(h.Data)) + wal.MaxSize(0)); err != nil {
		return err
	}
	changes := []*wal.Change{h}
	if forget != nil {
		changes = append(changes, &wal.Change{Kind: wal.Forget, Key: *forget})
	}
	survives, err := s.note(changes...)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	s.deliver(h.Seq, m)
	if forget != nil {
		s.ids.Delete(*forget)
	}
	s.stats.Messages++
	return s.end(survives)
}

// seqOf returns the sequence number of an id, or idset.None.
func (s *Store) seqOf(key idset.Key) (uint64, error) {
	seqs, err := s.ids.Find([]idset.Key{key})
	if err != nil {
		return idset.None, err
	}
	return seqs[0], nil
}
