package satstore

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
	"github.com/spinneret-go/spinneret/satstore/internal/manifest"
	"github.com/spinneret-go/spinneret/satstore/internal/wal"
)

// maxFindings bounds the findings of Check and Repair.
const maxFindings = 100

// Check reads the whole store and verifies checksums, the bucket index, the id index and the logs. It
// returns nil, or its findings joined; each [CorruptError] says where. Other calls wait until it
// returns. It takes as much memory as the store does for its records, 4 bytes each.
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
	for _, b := range s.aside {
		c.report(asideError(b)) // it may be readable now
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
	if deletes(m) {
		return
	}
	reason := ""
	switch {
	case e.seq >= c.s.seq:
		reason = "has a number that was never given"
	case c.seen.get(e.seq) != 0:
		reason = "is there twice"
	case c.s.places.get(e.seq) != b.number:
		reason = "is in another bucket than the bucket index says"
	}
	if reason != "" {
		c.bad = true
		reason = fmt.Sprintf("record %d (%q) %s", e.seq, e.id, reason)
		c.report(durable.Corrupt(extent.Name, 0, reason))
	} else {
		c.seen.set(e.seq, 1)
		c.records++
		c.sum += sumOf(idset.KeyOf(string(e.id)), e.seq)
	}
}

// sumOf hashes an id and its sequence number.
func sumOf(key idset.Key, seq uint64) uint64 {
	return uint64(durable.Sum(binary.LittleEndian.AppendUint64(key[:], seq)))
}

// index compares the ids with the records, and their number with the counts.
func (c *checker) index() {
	if c.records != c.s.records && !c.bad {
		reason := fmt.Sprintf("%d records and not %d", c.records, c.s.records)
		c.report(durable.Corrupt(extent.Name, 0, reason))
	}
	sum, ids := uint64(0), int64(0)
	err := c.s.ids.All(func(key idset.Key, seq uint64) {
		ids++
		sum += sumOf(key, seq)
	})
	reason := ""
	switch {
	case err != nil:
		c.report(err)
	case ids != c.s.records:
		reason = fmt.Sprintf("%d ids of %d records", ids, c.s.records)
	case sum != c.sum && !c.bad:
		reason = "the ids are not those of the records"
	}
	if reason != "" {
		c.report(durable.Corrupt("ids-*", 0, reason))
	}
}
