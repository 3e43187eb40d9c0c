package satstore

import (
	"encoding/binary"
	"fmt"

	"github.com/spinneret-go/spinneret/satstore/internal/disk"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
)

// These constants are on disk. Do not change them; add a version.
const (
	checkpointMagic = "SATCHK2\n"
	checkpointHead  = 8 + 8 + disk.SumSize // magic, length of the body, checksum of all that follows
)

// checkpointName is the file that says what the others mean. It is replaced as a whole.
const (
	checkpointName = "CHECKPOINT"
	checkpointTemp = "CHECKPOINT.tmp"
)

// A manifest is what a checkpoint says.
type manifest struct {
	options    Options // those that count at creation
	generation uint32
	log        uint64 // number of the log that follows; 0 if none
	now        int64
	nextBucket uint64
	nextSeq    uint64
	records    int64
	ends       []int64 // of the calendar's levels
	ids        idset.State
	places     savedPlaces
	due        int // so many of the buckets are due, the first ones
	split      *split
	buckets    []*bucket // those that are due, the one that is split, and the calendar's
}

// encode appends the body of a checkpoint.
func (m *manifest) encode(b []byte) []byte {
	b = binary.AppendVarint(b, int64(m.options.Unit))
	b = binary.AppendVarint(b, m.options.Horizon)
	b = binary.AppendVarint(b, int64(m.options.Radix))
	b = binary.AppendUvarint(b, uint64(m.options.Mode))
	b = binary.AppendUvarint(b, uint64(m.generation))
	b = binary.AppendUvarint(b, m.log)
	b = binary.AppendVarint(b, m.now)
	b = binary.AppendUvarint(b, m.nextBucket)
	b = binary.AppendUvarint(b, m.nextSeq)
	b = binary.AppendUvarint(b, uint64(m.records))
	b = binary.AppendUvarint(b, uint64(len(m.ends)))
	for _, end := range m.ends {
		b = binary.AppendVarint(b, end)
	}
	b = m.ids.Append(b)
	b = binary.AppendUvarint(b, m.places.number)
	b = binary.AppendUvarint(b, uint64(m.places.generation))
	b = binary.AppendUvarint(b, uint64(m.due))
	if m.split == nil {
		b = append(b, 0)
	} else {
		b = append(b, 1)
		if m.split.together {
			b[len(b)-1] = 2
		}
		b = binary.AppendUvarint(b, m.split.moved)
		b = binary.AppendUvarint(b, m.split.forwarded)
	}
	b = binary.AppendUvarint(b, uint64(len(m.buckets)))
	for i, bucket := range m.buckets {
		b = bucket.encode(b)
		if i < m.due {
			b = bucket.encodeDone(b)
		}
	}
	return b
}

func (b *bucket) encode(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, b.id)
	dst = binary.AppendUvarint(dst, uint64(b.number))
	dst = binary.AppendVarint(dst, b.start)
	dst = binary.AppendUvarint(dst, uint64(b.width))
	return b.messages.encode(b.records.encode(dst))
}

func (p *part) encode(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, p.disk)
	dst = binary.AppendUvarint(dst, uint64(len(p.extents)))
	next := uint64(0)
	for _, e := range p.extents {
		dst = binary.AppendUvarint(dst, uint64(e.at))
		dst = binary.AppendUvarint(dst, uint64(e.size))
		dst = binary.AppendUvarint(dst, e.first-next)
		dst = binary.AppendUvarint(dst, uint64(e.count))
		dst = binary.AppendUvarint(dst, uint64(e.generation))
		next = e.first + uint64(e.count)
	}
	return dst
}

func (b *bucket) encodeDone(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(b.done)))
	for _, word := range b.done {
		dst = binary.LittleEndian.AppendUint64(dst, word)
	}
	return dst
}

// decodeManifest undoes encode. It returns nil for what encode would not have written.
func decodeManifest(b []byte) *manifest {
	d := disk.Decoder{B: b}
	m := &manifest{}
	m.options.Unit = durationOf(d.Varint())
	m.options.Horizon = d.Varint()
	m.options.Radix = int(d.Varint())
	m.options.Mode = Mode(d.Length(int(Naive)))
	m.generation = uint32(d.Number(1<<32 - 1))
	m.log = d.Uvarint()
	m.now = d.Varint()
	m.nextBucket, m.nextSeq = d.Uvarint(), d.Uvarint()
	m.records = int64(d.Uvarint())
	for range d.Length(len(d.B)) {
		m.ends = append(m.ends, d.Varint())
	}
	m.ids = idset.TakeState(&d)
	m.places = savedPlaces{number: d.Uvarint(), generation: uint32(d.Number(1<<32 - 1))}
	m.due = d.Length(maxBuckets)
	switch kind := d.Byte(); kind {
	case 0:
	case 1, 2:
		m.split = &split{together: kind == 2, moved: d.Uvarint(), forwarded: d.Uvarint()}
	default:
		d.Bad = true
	}
	for n := d.Length(maxBuckets); len(m.buckets) < n && !d.Bad; {
		m.buckets = append(m.buckets, takeBucket(&d, len(m.buckets) < m.due))
	}
	if d.Bad || len(d.B) > 0 || !m.sound() {
		return nil
	}
	return m
}

func takeBucket(d *disk.Decoder, due bool) *bucket {
	b := &bucket{id: d.Uvarint(), number: uint16(d.Length(1<<16 - 1))}
	b.start, b.width = d.Varint(), int64(d.Uvarint())
	takePart(d, &b.records)
	takePart(d, &b.messages)
	if due {
		done := make([]uint64, 0, 16)
		for range d.Length(len(d.B) / 8) {
			done = append(done, d.Uint64())
		}
		b.setAllDone(done)
	}
	return b
}

func takePart(d *disk.Decoder, p *part) {
	p.disk = d.Uvarint()
	next := uint64(0)
	for n := d.Length(len(d.B)); len(p.extents) < n && !d.Bad; {
		e := extent{at: uint32(d.Number(maxGrains)), size: uint32(d.Number(maxExtent))}
		e.first = next + d.Uvarint()
		e.count = uint32(d.Number(1<<32 - 1))
		e.generation = uint32(d.Number(1<<32 - 1))
		next = e.first + uint64(e.count)
		d.Bad = d.Bad || e.size == 0 || e.count == 0 || next < e.first
		p.extents = append(p.extents, e)
	}
	d.Bad = d.Bad || next > p.disk
}

// sound checks what the rest of the package relies on.
func (m *manifest) sound() bool {
	o := m.options
	fits := o.Unit > 0 && o.Horizon > 0 && o.Horizon <= maxSlot && o.Radix != 0 &&
		m.due <= min(len(m.buckets), maxHeld) && m.now <= maxSlot && m.now >= -maxSlot &&
		(m.split == nil || m.due < len(m.buckets)) && m.records >= 0
	numbers := map[uint16]bool{0: true}
	for i, b := range m.buckets {
		fits = fits && !numbers[b.number] && b.width >= 0 && b.id < m.nextBucket
		fits = fits && (i >= m.due || b.width == 1 && uint64(len(b.done)) <= b.records.disk/64+1)
		// Whoever reads a part to its end relies on that there is one. Only of what is due may
		// extents be gone.
		fits = fits && b.messages.whole() && (i < m.due || b.records.whole())
		numbers[b.number] = true
	}
	return fits
}

// whole reports whether the extents of a part have all entries that are on disk.
func (p *part) whole() bool {
	next := uint64(0)
	for _, e := range p.extents {
		if e.first != next {
			return false
		}
		next += uint64(e.count)
	}
	return next == p.disk
}

// seal makes the file of a manifest: the same twice, so that Repair has a second one.
func (m *manifest) seal() []byte {
	b := make([]byte, checkpointHead, 4096)
	b = m.encode(b)
	copy(b, checkpointMagic)
	binary.LittleEndian.PutUint64(b[8:], uint64(len(b)-checkpointHead))
	sum := disk.Sum(b[:16])
	binary.LittleEndian.PutUint32(b[16:], disk.SumOn(sum, b[checkpointHead:]))
	return append(b, b...)
}

// unseal reads one of the two copies in a file.
func unseal(b []byte, copy int) (*manifest, error) {
	at := int64(len(b) / 2 * copy)
	fail := func(reason string) (*manifest, error) {
		return nil, disk.Corrupt(checkpointName, at, reason)
	}
	b = b[at:]
	if copy == 0 {
		b = b[:len(b)/2]
	}
	if len(b) < checkpointHead || string(b[:8]) != checkpointMagic {
		return fail("no checkpoint, or of another version")
	}
	// The sum goes over all that is there, before any length in it is believed.
	body := b[checkpointHead:]
	sum := disk.SumOn(disk.Sum(b[:16]), body)
	if binary.LittleEndian.Uint64(b[8:]) != uint64(len(body)) ||
		sum != binary.LittleEndian.Uint32(b[16:]) {
		return fail("wrong checksum")
	}
	m := decodeManifest(body)
	if m == nil {
		return fail("impossible contents")
	}
	return m, nil
}

// writeManifest replaces the checkpoint. It reports whether the new one may be in effect although
// there was an error.
func (s *Store) writeManifest(m *manifest) (inEffect bool, err error) {
	// The contents are synced before the name: a journal may bring the rename to the disk first, and
	// the name would then stand for a file that is empty or torn.
	f, err := s.fs.Create(checkpointTemp)
	if err != nil {
		return false, fmt.Errorf("satstore: create checkpoint: %w", err)
	}
	_, err = f.WriteAt(m.seal(), 0)
	if err == nil && !s.o.NoSync {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil && !s.o.NoSync {
		err = s.fs.Sync() // the files that it names come first
	}
	if err == nil {
		inEffect = true // an error may come after the deed, as of a disk that is not there any more
		err = s.fs.Rename(checkpointTemp, checkpointName)
	}
	if err == nil && !s.o.NoSync {
		err = s.fs.Sync() // from here on no crash goes back to the old one
	}
	if err != nil {
		err = fmt.Errorf("satstore: write checkpoint: %w", err)
	}
	return inEffect, err
}

// checkpoint brings everything to disk, so that a log can begin anew and what was released can be
// used again. It requires all locks but dueMu. After an error the old checkpoint and its log still
// hold everything, unless the store is broken.
func (s *Store) checkpoint() error {
	// The order is what makes a crash harmless. Everything new is written to places that the old
	// checkpoint does not know; then it is synced; then one rename lets the new checkpoint count.
	// Only when that is on disk is anything removed or used again that the old one needs.
	//
	// Until the rename a crash so finds the old checkpoint, with its log and what is pending for it,
	// and new files that nothing names, which the next Open removes. After the rename it finds the
	// new one, an empty log, and nothing pending that fits it.
	if err := s.flushAll(); err != nil {
		return err
	}
	for _, b := range s.due {
		s.trim(b)
	}
	s.ids.Freeze()
	if err := s.ids.Flush(); err != nil {
		return err
	}
	if s.o.inline {
		if err := s.mergeIDs(); err != nil {
			return err
		}
	}
	ids := s.ids.State()
	saved, err := s.savePlaces()
	if err == nil && !s.o.NoSync {
		if err = s.data.Sync(); err != nil {
			s.broken = true // what is on disk nobody knows, and asking again would not tell
			err = fmt.Errorf("satstore: sync %s: %w", dataName, err)
		}
	}
	var log *updateLog
	if err == nil && !s.o.NoLog {
		err = s.mapPending()
	}
	if err == nil && !s.o.NoLog {
		log, err = createLog(s.fs, s.logNumber()+1, !s.o.NoSync)
	}
	if err == nil {
		s.broken, err = s.writeManifest(s.manifest(log, ids, saved))
	}
	if err != nil {
		s.discard(log, saved)
		return err
	}
	// Without an error the new one is in effect for sure.
	s.broken = false
	s.adopt(log, ids, saved)
	return nil
}

func (s *Store) logNumber() uint64 {
	if s.log == nil {
		return s.oldLog
	}
	return s.log.number
}

// manifest describes the store as it is. Buffers have to be empty.
func (s *Store) manifest(log *updateLog, ids idset.State, saved savedPlaces) *manifest {
	m := &manifest{
		options: s.o, generation: s.generation + 1, now: s.calendar.now,
		nextBucket: s.nextBucket, nextSeq: s.nextSeq, records: s.records,
		ids: ids, places: saved, due: len(s.due), split: s.split,
	}
	if log != nil {
		m.log = log.number
	}
	for _, l := range s.calendar.levels {
		m.ends = append(m.ends, l.end)
	}
	s.eachBucket(func(b *bucket) { m.buckets = append(m.buckets, b) })
	return m
}

// adopt goes on from a checkpoint that is on disk. What it made superfluous may stay behind if it
// cannot be removed: the next Open tries again.
func (s *Store) adopt(log *updateLog, ids idset.State, saved savedPlaces) {
	s.ids.Saved(ids)
	s.wakeMerger()
	var old []string
	if s.saved.number != saved.number && s.saved.number != 0 {
		old = append(old, placesName(s.saved.number))
	}
	if n := s.logNumber(); n != 0 {
		old = append(old, logName(n))
	}
	if s.log != nil {
		_ = s.log.file.Close() // nothing in it is needed
	}
	for _, name := range old {
		_ = s.fs.Remove(name)
	}
	// The old log goes before what is pending for it: a crash in between finds changes that belong to
	// a log which no checkpoint names.
	s.log, s.oldLog, s.logEnd, s.saved = log, 0, logHeader, saved
	if log != nil {
		log.attach(s.pending)
	}
	s.flushed = 0
	s.generation++
	s.pool.limit = int(s.o.Buffer / int64(s.o.Page)) // a replay may have needed more
	s.space.settle()
	s.stats.Checkpoints++
}

// discard closes what a checkpoint that failed has made, and removes it. If the rename may have
// taken effect, either checkpoint may be found later: then the files of both have to stay.
func (s *Store) discard(log *updateLog, saved savedPlaces) {
	made := []string{checkpointTemp}
	if log != nil {
		_ = log.file.Close()
		made = append(made, logName(log.number))
	}
	if saved.number != s.saved.number {
		made = append(made, placesName(saved.number))
	}
	for _, name := range made {
		if !s.broken {
			_ = s.fs.Remove(name)
		}
	}
}
