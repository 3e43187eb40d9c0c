package satstore

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spinneret-go/spinneret/satstore/internal/disk"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
)

// maxFindings bounds what Check reports.
const maxFindings = 100

// Check reads all that is on disk and compares what should agree: checksums, the places of records,
// the index of ids. It returns nil, or the findings joined; each [CorruptError] says where. Other
// calls wait meanwhile.
func (s *Store) Check() error {
	s.lockAll()
	defer s.unlockAll()
	if s.closed {
		return ErrClosed
	}
	if s.split != nil { // which failed
		if err := s.settle(); err != nil {
			return s.fail(err)
		}
	}
	c := checker{s: s, seen: make([]uint64, s.nextSeq/64+1)}
	c.checkpoint()
	s.eachBucket(c.bucket)
	c.index()
	return errors.Join(c.found...)
}

// A checker adds up the records, and then the ids, which should come to the same.
type checker struct {
	s       *Store
	found   []error
	seen    []uint64 // bit by sequence number
	records int64
	sum     uint64 // of the checksums of ids and sequence numbers, in any order
	bad     bool   // some records were not seen, so the sums differ
}

func (c *checker) report(err error) {
	if len(c.found) < maxFindings {
		c.found = append(c.found, err)
	}
}

// checkpoint looks at both copies.
func (c *checker) checkpoint() {
	b, err := disk.ReadFile(c.s.fs, checkpointName)
	for i := range 2 {
		if err == nil {
			_, err = unseal(b, i)
		}
	}
	if err != nil {
		c.report(err)
	}
}

func (c *checker) bucket(b *bucket) {
	s := c.s
	table, err := s.mailOf(b, 0)
	if err == nil {
		_, err = s.eachRecord(b, 0, func(e entry) bool {
			c.record(b, e, table[e.seq])
			return true
		})
	}
	if err != nil {
		c.bad = true
		c.report(err)
	}
}

func (c *checker) record(b *bucket, e entry, m *mail) {
	c.records++
	if !c.s.o.indexed() {
		return
	}
	fail := func(reason string) {
		c.bad = true
		c.report(disk.Corrupt(dataName, 0, fmt.Sprintf("record %d (%q) %s", e.seq, e.id, reason)))
	}
	switch {
	case e.seq >= c.s.nextSeq:
		fail("has a number that was never given")
		return
	case c.seen[e.seq/64]&(1<<(e.seq%64)) != 0:
		fail("is there twice")
	case c.s.places.get(e.seq) != b.number:
		fail("is in another bucket than the bucket index says")
	}
	c.seen[e.seq/64] |= 1 << (e.seq % 64)
	for i := 0; m != nil && i < len(m.messages); i++ {
		if m.messages[i].kind == messageDelete {
			return // its id is gone already
		}
	}
	c.sum += sumOf(idset.KeyOf(string(e.id)), e.seq)
}

// sumOf tells pairs of an id and a sequence number apart.
func sumOf(key idset.Key, seq uint64) uint64 {
	var b [idset.KeySize + 8]byte
	copy(b[:], key[:])
	binary.LittleEndian.PutUint64(b[idset.KeySize:], seq)
	return uint64(disk.Sum(b[:]))
}

// index adds up the ids.
func (c *checker) index() {
	if c.records != c.s.records && !c.bad {
		c.report(disk.Corrupt(dataName, 0,
			fmt.Sprintf("%d records and not %d", c.records, c.s.records)))
	}
	if !c.s.o.indexed() {
		return
	}
	sum := uint64(0)
	err := c.s.ids.All(func(key idset.Key, seq uint64) { sum += sumOf(key, seq) })
	if err == nil && sum != c.sum && !c.bad {
		err = disk.Corrupt("ids-*", 0, "the ids are not those of the records")
	}
	if err != nil {
		c.report(err)
	}
}
