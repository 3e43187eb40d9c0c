package satstore

import "github.com/spinneret-go/spinneret/satstore/internal/idset"

// Each change goes the same way: begin locks, makes room for it in the log, and may refuse; note
// writes it down; then memory is changed, which cannot fail any more; end lets it count and unlocks.
// So the log never has what memory has not, nor the other way round, and a replay meets the same
// state at each change.

// AddBatch adds records, but for those whose id is known or was met earlier in the batch, and
// returns how many it added. In a basic store it adds all. After an error the first ones, in the
// order of items, have been added.
func (s *Store) AddBatch(items []Item) (added int, err error) {
	for _, item := range items {
		if len(item.ID) == 0 || len(item.ID) > MaxID || len(item.Data) > MaxData {
			return 0, ErrSize
		}
	}
	s.idsMu.Lock()
	defer s.idsMu.Unlock()
	var fresh []idset.Key
	if s.o.indexed() {
		if fresh, err = s.sift(items); err != nil {
			return 0, err
		}
	}
	for i, item := range items {
		if fresh != nil && fresh[i] == (idset.Key{}) {
			continue
		}
		if err := s.begin(true, len(item.ID)+len(item.Data)); err != nil {
			return added, err
		}
		// Each item is a change of its own, so that the log needs no room for all at once, and a
		// crash leaves the first ones.
		h := change{kind: changeAdd, id: []byte(item.ID), data: item.Data}
		h.slot = min(max(item.Slot, s.calendar.now), maxSlot)
		s.note(&h, nil)
		s.add(&h)
		added++
		// The index has it before anybody else can look: s.idsMu is held since the look-up.
		if fresh != nil {
			s.ids.Put(fresh[i], s.nextSeq-1)
		}
		if err := s.end(true, nil); err != nil {
			return added, err
		}
	}
	return added, nil
}

// sift returns the keys of the items that are new; that of the others is zero. It requires that
// s.idsMu is held.
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

// seqOf returns the sequence number of an id, or idset.None. It requires that s.idsMu is held.
func (s *Store) seqOf(key idset.Key) (uint64, error) {
	seqs, err := s.ids.Find([]idset.Key{key})
	if err != nil {
		return idset.None, err
	}
	return seqs[0], nil
}

// add makes a new record of a changeAdd.
func (s *Store) add(h *change) {
	s.place(s.target(h.slot), entry{s.nextSeq, h.slot, h.id, h.data})
	s.nextSeq++
	s.records++
	s.stats.Added++
	s.stats.UserBytes += int64(len(h.id) + len(h.data))
}

// Update leaves a message for the record of an id. [Options.Merge] applies it when the record is
// next due; messages for one record are applied in their order. One that comes while the record is
// out waits for the time after. It is [ErrUnknown] if no record has the id, [ErrSize] if the payload
// is larger than MaxData.
func (s *Store) Update(id string, payload []byte) error {
	return s.send(id, message{messageUpdate, payload})
}

// A Message is what [Store.UpdateBatch] leaves for a record.
type Message struct {
	ID      string
	Payload []byte
}

// UpdateBatch leaves several messages as Update does, and is faster: each block of the index of ids
// is read once. It passes over ids that no record has, and returns how many messages it left. After
// an error the first ones, in the order of the batch, have been left.
func (s *Store) UpdateBatch(batch []Message) (left int, err error) {
	if !s.o.indexed() {
		return 0, ErrNoIndex
	}
	keys := make([]idset.Key, len(batch))
	for i := range batch {
		if len(batch[i].Payload) > MaxData {
			return 0, ErrSize
		}
		keys[i] = idset.KeyOf(batch[i].ID)
	}
	s.idsMu.Lock()
	defer s.idsMu.Unlock()
	seqs, err := s.ids.Find(keys)
	for i := 0; i < len(batch) && err == nil; i++ {
		if seqs[i] == idset.None {
			continue
		}
		if err = s.leaveMessage(seqs[i], message{messageUpdate, batch[i].Payload}); err == nil {
			left++
		}
	}
	return left, err
}

// leaveMessage requires that s.idsMu is held.
func (s *Store) leaveMessage(seq uint64, m message) error {
	if err := s.begin(true, len(m.payload)); err != nil {
		return err
	}
	s.stats.Messages++
	s.forward(seq, []message{m})
	return s.end(true, nil)
}

// Delete lets the id be unknown from now on. The record itself goes when it would be due next; one
// that is out can still be given back, and goes then. The id may be added again at once. It is
// [ErrUnknown] if no record has it.
func (s *Store) Delete(id string) error {
	return s.send(id, message{messageDelete, nil})
}

func (s *Store) send(id string, m message) error {
	switch {
	case len(m.payload) > MaxData:
		return ErrSize
	case !s.o.indexed():
		return ErrNoIndex
	}
	s.idsMu.Lock()
	defer s.idsMu.Unlock()
	key := idset.KeyOf(id)
	seq, err := s.seqOf(key)
	if err != nil {
		return err
	}
	if err := s.begin(true, len(m.payload)); err != nil {
		return err
	}
	if seq == idset.None {
		return s.end(true, ErrUnknown)
	}
	// The id is free at once, though the record may be a year from being read again: until then
	// the message keeps it from being handed out, by its sequence number and not by its id.
	if m.kind == messageDelete {
		s.forget(key, seq)
	}
	s.stats.Messages++
	s.forward(seq, []message{m})
	return s.end(true, nil)
}

// forget lets an id be unknown. It requires that s.idsMu and s.mu are held.
func (s *Store) forget(key idset.Key, seq uint64) {
	s.note(&change{kind: changeForget, key: key, seq: seq}, nil)
	s.ids.Delete(key)
}
