// Package manifest encodes checkpoints. A checkpoint determines the meaning of the other files of a
// store. Data that it does not refer to is ignored.
package manifest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/table"
	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/calendar"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
)

// The file is written under the second name and then renamed.
const (
	Name = "CHECKPOINT"
	Temp = Name + durable.NewName
)

// magic names the version of all files of a store. It is on disk. Do not change it; add a version.
const magic = "SATCHK9\n"

// Limits of a Manifest.
const (
	MaxBuckets = 60_000  // so that 16 bits number them
	MaxDue     = 50_000  // buckets that are due
	MaxAside   = 5_000   // buckets that are set aside
	MaxSeq     = 1 << 40 // sequence numbers
	MinUnit    = time.Millisecond
)

// A Manifest is the state of a store at a checkpoint. It is not safe for concurrent use.
type Manifest struct {
	Unit       time.Duration
	Shape      calendar.Shape
	Generation uint32 // number of the checkpoint
	Log        uint64 // number of the log that follows
	Now        int64
	NextBucket uint64
	NextSeq    uint64
	Records    int64
	Ends       []int64 // of the calendar's levels
	IDs        idset.State
	Pages      []extent.Extent // of the bucket index; those with Size 0 are not saved
	Due        int             // number of buckets that are due; they come first
	Split      *Split          // of the next bucket; nil if none is being split
	Aside      int             // number of buckets that are set aside; they come last
	Buckets    []Bucket
}

// A Split is the progress of the split of a bucket.
type Split struct {
	Moved     uint64 // records that have moved, or were skipped
	Forwarded uint64 // messages that have moved, after all records
	Into      int    // buckets over which it is spread; they are due
	At        int    // number of the first of those
}

// A Bucket describes the part of a bucket that is on disk. It is not safe for concurrent use.
type Bucket struct {
	ID       uint64
	Number   uint16
	Start    int64 // first slot
	Width    int64 // slots
	Records  Part
	Messages Part
	Gone     uint64   // records that are elsewhere or deleted
	Done     []uint64 // a bit per record that was returned or moved; empty means none
}

// A Part is a sequence of entries.
type Part struct {
	Count   uint64
	Extents []extent.Extent
}

// Spans returns all used space.
func (m *Manifest) Spans() (used []extent.Span) {
	for _, e := range m.Pages {
		if e.Size > 0 {
			used = append(used, e.Span())
		}
	}
	for i := range m.Buckets {
		for _, p := range []*Part{&m.Buckets[i].Records, &m.Buckets[i].Messages} {
			for _, e := range p.Extents {
				used = append(used, e.Span())
			}
		}
	}
	return used
}

// append appends the body.
func (m *Manifest) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(m.Unit))
	b = append(b, m.Shape.First, m.Shape.More)
	b = binary.AppendUvarint(b, uint64(m.Generation))
	b = binary.AppendUvarint(b, m.Log)
	b = binary.AppendVarint(b, m.Now)
	b = binary.AppendUvarint(b, m.NextBucket)
	b = binary.AppendUvarint(b, m.NextSeq)
	b = binary.AppendUvarint(b, uint64(m.Records))
	b = binary.AppendUvarint(b, uint64(len(m.Ends)))
	for _, end := range m.Ends {
		b = binary.AppendVarint(b, end)
	}
	b = m.IDs.Append(b)
	b = appendExtents(b, m.Pages)
	b = binary.AppendUvarint(b, uint64(m.Due))
	if m.Split == nil {
		b = append(b, 0)
	} else {
		b = binary.AppendUvarint(append(b, 1), m.Split.Moved)
		b = binary.AppendUvarint(b, m.Split.Forwarded)
		b = binary.AppendUvarint(b, uint64(m.Split.Into))
		b = binary.AppendUvarint(b, uint64(m.Split.At))
	}
	b = binary.AppendUvarint(b, uint64(m.Aside))
	b = binary.AppendUvarint(b, uint64(len(m.Buckets)))
	for i := range m.Buckets {
		b = m.Buckets[i].append(b)
	}
	return b
}

func (k *Bucket) append(b []byte) []byte {
	b = binary.AppendUvarint(b, k.ID)
	b = binary.AppendUvarint(b, uint64(k.Number))
	b = binary.AppendVarint(b, k.Start)
	b = binary.AppendUvarint(b, uint64(k.Width))
	for _, p := range []*Part{&k.Records, &k.Messages} {
		b = binary.AppendUvarint(b, p.Count)
		b = appendExtents(b, p.Extents)
	}
	b = binary.AppendUvarint(b, k.Gone)
	b = binary.AppendUvarint(b, uint64(len(k.Done)))
	for _, word := range k.Done {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	return b
}

func appendExtents(b []byte, all []extent.Extent) []byte {
	b = binary.AppendUvarint(b, uint64(len(all)))
	next := uint64(0)
	for _, e := range all {
		b = binary.AppendUvarint(b, uint64(e.At))
		b = binary.AppendUvarint(b, uint64(e.Size))
		b = binary.AppendUvarint(b, e.First-next)
		b = binary.AppendUvarint(b, uint64(e.Count))
		b = binary.AppendUvarint(b, uint64(e.Generation))
		next = e.First + uint64(e.Count)
	}
	return b
}

// decode undoes append. It rejects impossible states. The offset is for errors.
func decode(b []byte, at int64) (*Manifest, error) {
	d := &durable.Decoder{B: b}
	m := &Manifest{
		Unit:       time.Duration(d.Number(math.MaxInt64)),
		Shape:      calendar.Shape{First: d.Byte(), More: d.Byte()},
		Generation: uint32(d.Number(1<<32 - 2)), // so that there is a next one
		Log:        d.Uvarint(),
		Now:        d.Varint(),
		NextBucket: d.Uvarint(),
		NextSeq:    d.Number(MaxSeq),
		Records:    int64(d.Number(MaxSeq)),
	}
	for n := d.Length(64); len(m.Ends) < n && !d.Bad; {
		m.Ends = append(m.Ends, d.Varint())
	}
	var err error
	if m.IDs, d.B, err = table.TakeState(d.B, Name); errors.Is(err, durable.ErrVersion) {
		return nil, err
	}
	d.Bad = d.Bad || err != nil
	m.Pages = takeExtents(d)
	m.Due = d.Length(MaxDue)
	if d.Byte() != 0 {
		m.Split = &Split{
			Moved: d.Uvarint(), Forwarded: d.Uvarint(),
			Into: d.Length(m.Due), At: d.Length(m.Due),
		}
	}
	m.Aside = d.Length(MaxAside)
	for n := d.Length(MaxBuckets); len(m.Buckets) < n && !d.Bad; {
		m.Buckets = append(m.Buckets, takeBucket(d))
	}
	if d.Bad || len(d.B) > 0 || !m.sound() {
		return nil, durable.Corrupt(Name, at, "an impossible checkpoint")
	}
	return m, nil
}

func takeBucket(d *durable.Decoder) Bucket {
	k := Bucket{ID: d.Uvarint(), Number: uint16(d.Length(1<<16 - 1))}
	k.Start, k.Width = d.Varint(), int64(d.Number(2*calendar.MaxSlot))
	for _, p := range []*Part{&k.Records, &k.Messages} {
		p.Count = d.Number(1 << 62)
		p.Extents = takeExtents(d)
	}
	k.Gone = d.Number(k.Records.Count)
	for n := d.Length(len(d.B) / 8); len(k.Done) < n && !d.Bad; {
		k.Done = append(k.Done, d.Uint64())
	}
	return k
}

func takeExtents(d *durable.Decoder) (all []extent.Extent) {
	next := uint64(0)
	for n := d.Length(len(d.B)); len(all) < n && !d.Bad; {
		e := extent.Extent{
			At: uint32(d.Number(extent.MaxGrains)), Size: uint32(d.Number(extent.MaxSize)),
			First: next + d.Number(1<<62), Count: uint32(d.Number(1<<32 - 1)),
			Generation: uint32(d.Number(1<<32 - 2)),
		}
		next = e.First + uint64(e.Count)
		d.Bad = d.Bad || next > 1<<62
		all = append(all, e)
	}
	return all
}

// sound checks the invariants that the rest of satstore relies on, except for two that are checked
// where they are used: extents do not overlap, and buckets fit the calendar.
func (m *Manifest) sound() bool {
	fits := m.Unit >= MinUnit && m.Shape.First >= 1 && m.Shape.First <= 16 &&
		m.Shape.More >= 1 && m.Shape.More <= 16 && m.Due+m.Aside <= len(m.Buckets) &&
		m.Now <= calendar.MaxSlot && m.Now >= -calendar.MaxSlot && m.Log > 0 &&
		len(m.Pages) <= int(m.NextSeq>>16)+1
	for _, e := range m.Pages {
		fits = fits && e.Generation <= m.Generation
	}
	if m.Split != nil {
		fits = fits && m.Due+m.Aside < len(m.Buckets) &&
			m.Split.Moved <= m.Buckets[m.Due].Records.Count &&
			m.Split.Forwarded <= m.Buckets[m.Due].Messages.Count
	}
	return fits && m.soundBuckets()
}

func (m *Manifest) soundBuckets() bool {
	numbers := map[uint16]bool{0: true}
	for i := range m.Buckets {
		k := &m.Buckets[i]
		fits := false // in its place
		switch {
		case i < m.Due:
			fits = k.Width == 1 && k.Start <= m.Now
		case i >= len(m.Buckets)-m.Aside:
			fits = true
		case m.Split != nil && i == m.Due && m.Split.Into > 0:
			fits = k.spread(m)
		case m.Split != nil && i == m.Due:
			fits = k.Start > m.Now
		default:
			fits = k.Start > m.Now && len(k.Done) == 0
		}
		if !fits || numbers[k.Number] || k.ID >= m.NextBucket || !k.sound(m) {
			return false
		}
		numbers[k.Number] = true
	}
	return true
}

func (k *Bucket) sound(m *Manifest) bool {
	// Readers rely on the entries of a part being complete. Only buckets with records elsewhere may lack
	// extents.
	fits := k.Messages.sound(m, true) && k.Records.sound(m, len(k.Done) == 0)
	words := uint64(len(k.Done))
	fits = fits && words <= k.Records.Count/64+1
	if left := k.Records.Count % 64; fits && words == k.Records.Count/64+1 {
		fits = k.Done[words-1]>>left == 0
	}
	done := 0
	for _, word := range k.Done {
		done += bits.OnesCount64(word)
	}
	return fits && uint64(done) <= k.Gone
}

// spread reports whether a bucket may be a due one that is being spread because it has too many
// messages.
func (k *Bucket) spread(m *Manifest) bool {
	from, to := m.Split.At, m.Split.At+m.Split.Into
	if k.Width != 1 || k.Start > m.Now || to > m.Due {
		return false
	}
	for i := from; i < to; i++ {
		if m.Buckets[i].Start != k.Start {
			return false
		}
	}
	return true
}

func (p *Part) sound(m *Manifest, whole bool) bool {
	next := uint64(0)
	for _, e := range p.Extents {
		if e.Size == 0 || e.At == 0 || e.Count == 0 || e.Generation > m.Generation ||
			whole && e.First != next {
			return false
		}
		next = e.First + uint64(e.Count)
	}
	return next <= p.Count && (!whole || next == p.Count)
}

// copySize is the unit of the size of a copy, so that no page of a disk has parts of both.
const copySize = 4 << 10

// Seal returns the content of the file: the same twice, so that one damaged copy loses nothing.
func (m *Manifest) Seal() []byte {
	b := durable.Seal(magic, m.append(make([]byte, 0, 4096)))
	b = append(b, make([]byte, -len(b)&(copySize-1))...)
	return append(b, b...)
}

// unseal reads the copy at an offset of the file. Zeros follow it.
func unseal(file []byte, at int) (*Manifest, error) {
	b := file[at:]
	if n := durable.FrameSize(b); n < int64(len(b)) {
		b = b[:n]
	}
	body, err := durable.Unseal(Name, int64(at), magic, b)
	if err != nil {
		return nil, err
	}
	return decode(body, int64(at))
}

// Load reads the file. If one copy is damaged or unreadable, it returns the other one, and the damage.
func Load(fs vfs.FS) (m *Manifest, damage, err error) {
	b, err := durable.ReadFile(durable.Salvage(fs), Name)
	if err != nil {
		return nil, nil, fmt.Errorf("satstore: %w", err)
	}
	m, err = unseal(b, 0)
	second, also := unseal(b, len(b)/2)
	if err == nil && also == nil && !bytes.Equal(b, m.Seal()) {
		also = durable.Corrupt(Name, int64(len(b)/2), "the copies differ, or something is between them")
	}
	switch {
	case errors.Is(err, durable.ErrVersion):
		return nil, nil, fmt.Errorf("satstore: %w", err)
	case errors.Is(also, durable.ErrVersion):
		return nil, nil, fmt.Errorf("satstore: %w", also)
	case err != nil:
		return second, err, also
	}
	return m, also, nil
}

// Save replaces the file. After an error, either the old or the new one is there. A manifest that
// Load would refuse never replaces one that it accepts.
func (m *Manifest) Save(fs vfs.FS) error {
	sealed := m.Seal()
	if _, err := unseal(sealed, 0); err != nil {
		return fmt.Errorf("satstore: the state is damaged, so the last checkpoint stays: use Repair: %w", err)
	}
	if err := durable.Replace(fs, Name, sealed); err != nil {
		return fmt.Errorf("satstore: write checkpoint: %w", err)
	}
	return nil
}
