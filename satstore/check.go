package satstore

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spinneret-go/spinneret/satstore/internal/disk"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
	"github.com/spinneret-go/spinneret/satstore/internal/manifest"
	"github.com/spinneret-go/spinneret/satstore/internal/wal"
)

// maxFindings bounds the findings of Check and Repair.
const maxFindings = 100

// Check reads the whole store and verifies checksums, the bucket index, the id index and the logs. It
// returns nil, or its findings joined; each [CorruptError] says where. Other calls wait until it
// returns. It takes as much memory for the filters of ids as the store does.
func (s *Store) Check() error {
	s.adding.Lock()
	defer s.adding.Unlock()
	s.checkpoints.Lock()
	defer s.checkpoints.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	c := checker{s: s}
	c.v = view{s: s, split: s.split, damaged: func(_ uint64, err error) error {
		c.bad = true
		c.report(err)
		return nil
	}}
	c.files()
	if _, err := s.losses(); err != nil {
		c.bad = s.split != nil && s.split.skipped > 0 // the walk leaves them out
		c.report(err)
	}
	for i, p := range s.places.pages {
		if p.saved.Size > 0 {
			if err := s.readPage(&page{}, i, p.saved); err != nil {
				c.report(err)
			}
		}
	}
	for b := range s.buckets {
		if _, err := c.v.each(b, func(e entry, m []message) bool {
			c.record(b, e, m)
			return true
		}); err != nil {
			return errors.Join(append(c.found, err)...)
		}
	}
	c.index()
	return errors.Join(c.found...)
}

// files reads what only Open needs: the checkpoint, the header of the data file, the filters and indexes
// of the ids, and the logs. The end of the newest log may just be written; Open gets it from memory then.
func (c *checker) files() {
	m, damage, err := manifest.Load(c.s.fs)
	if err != nil || damage != nil {
		c.report(errors.Join(err, damage))
	}
	if err := c.s.file.CheckHeader(); err != nil {
		c.report(err)
	}
	if m == nil {
		return
	}
	if ids, err := idset.Open(c.s.fs, m.IDs); err != nil {
		c.report(err)
	} else {
		ids.Close()
	}
	if _, err := wal.Replay(c.s.fs, m.Log, func([]wal.Change) {}, func(*wal.Change) error { return nil }); err != nil {
		c.report(err)
	}
}

// A checker sums up the records and then the ids. Both sums must agree.
type checker struct {
	s       *Store
	v       view
	found   []error
	gone    uint64 // records that were deleted, although no message says so
	seen    places // 1 for each record that was met
	records int64
	sum     uint64 // of a hash of each id and sequence number
	bad     bool   // some records could not be read, so the sums differ
}

func (c *checker) report(err error) {
	if len(c.found) < maxFindings {
		c.found = append(c.found, err)
	}
}

func (c *checker) record(b *bucket, e entry, m []message) {
	at, key := c.s.places.get(e.seq), idset.KeyOf(string(e.id))
	if deletes(m) {
		return
	}
	if at == 0 { // perhaps it was a stray when it was deleted
		if seq, err := c.s.seqOf(key); err == nil && seq != e.seq {
			c.gone++
			return
		}
	}
	reason := ""
	switch {
	case e.seq >= c.s.seq:
		reason = "has a number that was never given"
	case c.seen.get(e.seq) != 0:
		reason = "is there twice"
	case at != b.number && at != strayNumber:
		reason = "is in another bucket than the bucket index says"
	}
	if reason != "" {
		c.bad = true
		reason = fmt.Sprintf("record %d (%q) %s", e.seq, e.id, reason)
		c.report(disk.Corrupt(extent.Name, 0, reason))
	} else {
		c.seen.set(e.seq, 1)
		c.records++
		c.sum += sumOf(key, e.seq)
	}
}

// sumOf hashes an id and its sequence number.
func sumOf(key idset.Key, seq uint64) uint64 {
	return uint64(disk.Sum(binary.LittleEndian.AppendUint64(key[:], seq)))
}

// index compares the ids with the records, and their number with the counts. Ids of lost records are
// known and counted, but lead nowhere. So are those of strays in damaged blocks.
func (c *checker) index() {
	// A stray that is deleted may be in a bucket or in none. Until that is read, another one may count for it.
	other := int64(c.gone) - int64(c.s.excess())
	if c.records+other != c.s.records && !c.bad {
		reason := fmt.Sprintf("%d records and not %d", c.records, c.s.records)
		c.report(disk.Corrupt(extent.Name, 0, reason))
	}
	sum, ids, lost := uint64(0), uint64(0), uint64(0)
	err := c.s.ids.All(func(key idset.Key, seq uint64) {
		ids++
		if c.s.places.get(seq) >= strayNumber && c.seen.get(seq) == 0 {
			lost++
		} else {
			sum += sumOf(key, seq)
		}
	})
	counted, reason := c.s.lost.Records, ""
	switch {
	case err != nil:
		c.report(err)
	case ids != uint64(c.s.records)+counted:
		reason = fmt.Sprintf("%d ids of %d records and %d lost ones", ids, c.s.records, counted)
	case int64(lost) != int64(counted)+other && !c.bad:
		reason = fmt.Sprintf("the ids of %d lost records and not %d", lost, counted)
	case sum != c.sum && !c.bad:
		reason = "the ids are not those of the records"
	}
	if reason != "" {
		c.report(disk.Corrupt("ids-*", 0, reason))
	}
}
