package satstore

import (
	"time"

	"github.com/spinneret-go/spinneret/satstore/internal/idset"
	"github.com/spinneret-go/spinneret/satstore/internal/wal"
)

// Every change has four steps: lockForChange may refuse it, logChanges writes it to the log, a
// method of state applies it, which cannot fail, and unlockAfterChange unlocks. So log and state
// never differ, and a replay sees the same state before each change.

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
// repeated in the batch. After an error, the items before the one that failed have been added.
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
	fresh, err := s.newKeys(items)
	if err != nil {
		return err
	}
	var id []byte
	for i, item := range items {
		if fresh[i] == (idset.Key{}) {
			continue
		}
		// Each item is a separate change: the log needs no room for all of them at once, and a
		// crash leaves a prefix of the batch.
		if err := s.lockForChange(wal.MaxSize(len(item.ID) + len(item.Data))); err != nil {
			return err
		}
		slot := max(slotOf(item.At, s.o.Unit), s.calendar.Now())
		survives, err := s.logChanges(
			&wal.Change{Kind: wal.Add, Slot: slot, ID: item.ID, Data: item.Data},
		)
		if err != nil {
			s.mu.Unlock()
			return err
		}
		id = append(id[:0], item.ID...)
		s.ids.Put(fresh[i], s.seq)
		s.idChanges++
		s.add(slot, id, item.Data)
		s.stats.Added++
		s.stats.UserBytes += int64(len(item.ID) + len(item.Data))
		err = s.unlockAfterChange(survives)
		done(item)
		if err != nil {
			return err
		}
	}
	return nil
}

// newKeys returns the key of each item that is new, and zero for the others. It requires that
// s.adding is held.
func (s *Store) newKeys(items []Item) ([]idset.Key, error) {
	keys := make([]idset.Key, len(items))
	for i := range items {
		keys[i] = idset.KeyOf(items[i].ID)
	}
	known, err := s.ids.Find(keys)
	if err != nil {
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
	return keys, nil
}

// A Message is a message that [Store.UpdateBatch] leaves for a record.
type Message struct {
	ID   string
	Data []byte
}

// Update leaves a message for the record with an id. [Options].Merge applies it when the record is
// next due. Messages for one record are applied in the order of the calls. If the record is out, a
// message waits until it is due again, and takes memory until the record is returned. Update
// returns [ErrUnknown] if no record has the id, and [ErrSize] if the message is larger than
// MaxData.
func (s *Store) Update(id string, message []byte) error {
	left, err := s.UpdateBatch([]Message{{id, message}})
	if left == 0 && err == nil {
		err = ErrUnknown
	}
	return err
}

// UpdateBatch is a faster Update for many messages. It skips unknown ids and returns how many
// messages it left. After an error, the messages before the one that failed have been left.
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
		if err = s.sendMessage(h, message{payload: h.Data}, nil); err == nil {
			left++
		}
	}
	if len(batch) > 0 && left == 0 && err == nil { // read-only is an error here, too
		s.mu.Lock()
		defer s.mu.Unlock()
		err = s.refusal()
	}
	return left, err
}

// Delete removes an id. It may be added again immediately. The old record is removed when it would
// next be due, or, if it is out, once it has been rescheduled. Delete returns [ErrUnknown] if no
// record has the id.
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
	// The record may not be read for a year. Until then the message, which names it by its
	// sequence number and not by its id, keeps it from being handed out.
	return s.sendMessage(&wal.Change{Kind: wal.Delete, Seq: seq}, message{delete: true}, &key)
}

// sendMessage leaves a message for a record, and removes an id unless forget is nil. It requires
// that s.adding is held.
func (s *Store) sendMessage(h *wal.Change, m message, forget *idset.Key) error {
	if err := s.lockForChange(wal.MaxSize(len(h.Data)) + wal.MaxSize(0)); err != nil {
		return err
	}
	changes := []*wal.Change{h}
	if forget != nil {
		changes = append(changes, &wal.Change{Kind: wal.Forget, Key: *forget})
	}
	survives, err := s.logChanges(changes...)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	s.addMessage(h.Seq, m)
	if forget != nil {
		s.ids.Delete(*forget)
		s.idChanges++
	}
	s.stats.Messages++
	return s.unlockAfterChange(survives)
}

// seqOf returns the sequence number of an id, or idset.None.
func (s *Store) seqOf(key idset.Key) (uint64, error) {
	seqs, err := s.ids.Find([]idset.Key{key})
	if err != nil {
		return idset.None, err
	}
	return seqs[0], nil
}
