package satstore

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/satstore/internal/calendar"
	"github.com/spinneret-go/spinneret/satstore/internal/disk"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
	"github.com/spinneret-go/spinneret/satstore/internal/manifest"
	"github.com/spinneret-go/spinneret/satstore/internal/wal"
)

// recover loads the store from disk, or creates it. It ends with a checkpoint, since a log whose
// end may be torn is never continued. If it met damage, that checkpoint has all of the bucket index, and
// the next Open need not read there. If the disk is full, the store is read-only, and Sync tries again.
func (s *Store) recover() error {
	names, err := s.fs.List()
	if err != nil {
		return fmt.Errorf("satstore: list directory: %w", err)
	}
	for _, name := range names {
		s.lastLog = max(s.lastLog, logNumber(name))
	}
	m, damage, err := manifest.Load(s.fs)
	if err == nil {
		// A process that was killed may have left names that are not durable. Until they are, a power
		// failure may bring back the checkpoint before, so nothing that it needs may go.
		if err = s.fs.Sync(); err != nil {
			return fmt.Errorf("satstore: sync directory: %w", err)
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = s.create(names)
	case err == nil:
		s.stats.Damage = damage
		s.lastLog = max(s.lastLog, m.Log)
		err = s.load(names, m)
	}
	if err != nil {
		return err
	}
	if err := s.checkpoint(s.unsure); err != nil {
		if errors.Is(err, wal.ErrBroken) {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		_ = s.fail(err)
	}
	return nil
}

// create creates a store. Files without a checkpoint are left from a crash during an earlier
// creation, unless they have content.
func (s *Store) create(names []string) (err error) {
	for _, name := range names {
		limit := int64(-1)
		switch {
		case !isOurs(name) || name == manifest.Temp:
			continue
		case name == wal.PendingName: // its content belongs to a log or is void
			continue
		case name == extent.Name:
			limit = int64(len(extent.FileHeader))
		case logNumber(name) > 0:
			limit = wal.Header
		}
		b, err := durable.ReadFile(s.fs, name)
		if err != nil {
			return err
		}
		if int64(len(b)) > limit {
			return disk.Corrupt(name, 0, "the file has content, but CHECKPOINT is missing")
		}
		s.leftovers = append(s.leftovers, name)
	}
	s.leftovers = slices.DeleteFunc(s.leftovers, func(name string) bool {
		return name == extent.Name
	})
	if s.o, err = s.o.create(); err != nil {
		return err
	}
	s.calendar = calendar.New(s.o.test.shape, slotOf(s.o.Start, s.o.Unit), s.newBucket)
	s.generation = 1
	s.file, err = extent.Create(s.fs, s.o.test.writers)
	return err
}

// load reads an existing store.
func (s *Store) load(names []string, m *manifest.Manifest) (err error) {
	if s.o, err = s.o.adopt(m); err != nil {
		return err
	}
	if err := s.adoptManifest(m); err != nil {
		return err
	}
	// After the checkpoint has been validated, and before a file with a new name is created.
	s.removeLeftovers(names, m)
	if s.file, err = extent.OpenFile(s.fs, m.Spans(), s.o.test.writers); err != nil {
		return err
	}
	ids, err := idset.Open(s.fs, m.IDs)
	if err != nil {
		return err
	}
	s.ids = ids
	if err := s.loadPlaces(m); err != nil {
		return err
	}
	if err := s.findPlaces(); err != nil {
		return err
	}
	return s.replay(m.Log)
}

// adoptManifest sets the state to that of a checkpoint.
func (s *Store) adoptManifest(m *manifest.Manifest) error {
	s.generation = m.Generation + 1
	s.bucketID, s.seq, s.records, s.lost = m.NextBucket, m.NextSeq, m.Records, m.Lost
	s.calendar = calendar.New(m.Shape, m.Now, s.newBucket)
	// The ends of levels depend on when buckets were split. A replay must split the next ones at
	// the same changes.
	fits := s.calendar.SetEnds(m.Ends)
	for i := range m.Buckets {
		k := &m.Buckets[i]
		b := &bucket{
			id: k.ID, number: k.Number, start: k.Start, width: k.Width,
			done: k.Done, gone: k.Gone,
			records:  extent.NewPart(k.Records.Extents, k.Records.Count),
			messages: extent.NewPart(k.Messages.Extents, k.Messages.Count),
		}
		switch {
		case i < m.Due:
			s.due = append(s.due, b)
		case i == m.Due && m.Split != nil:
			s.split = &split{
				bucket: b, moved: m.Split.Moved, skipped: m.Split.Skipped,
				forwarded: m.Split.Forwarded,
			}
		default:
			fits = fits && s.calendar.Put(b, b.start, b.width)
		}
		s.number(b.number, b)
		s.byID[b.id] = b
	}
	if p := s.split; p != nil {
		p.into = slices.Clone(s.due[m.Split.At:][:m.Split.Into])
		fits = fits && (len(p.into) > 0 || s.calendar.Fits(p.bucket.start, p.bucket.width))
	}
	if _, err := s.losses(); err != nil {
		s.keepDamage(err)
	}
	for i := range s.numbers {
		if i > 0 && s.numbers[i] == nil {
			s.spare = append(s.spare, uint16(i))
		}
	}
	if !fits {
		return disk.Corrupt(manifest.Name, 0, "a bucket does not fit the calendar")
	}
	return nil
}

func (s *state) number(n uint16, b *bucket) {
	for len(s.numbers) <= int(n) {
		s.numbers = append(s.numbers, nil)
	}
	s.numbers[n] = b
}

// logNumber returns the number of the log file with a name, or 0 if it is not one.
func logNumber(name string) uint64 { return numberOf(name, wal.FileName) }

// numberOf returns the number for which nameOf returns the name, or 0.
func numberOf(name string, nameOf func(uint64) string) uint64 {
	n, err := strconv.ParseUint(name[strings.IndexByte(name, '-')+1:], 10, 64)
	if err != nil || name != nameOf(n) {
		return 0
	}
	return n
}

// isOurs reports whether a file name belongs to a store. Other files in the directory are not
// touched.
func isOurs(name string) bool {
	return name == extent.Name || name == manifest.Name || name == manifest.Temp ||
		name == wal.PendingName || logNumber(name) > 0 || numberOf(name, idset.FileName) > 0
}

// removeLeftovers removes files that the checkpoint does not name. Logs that may still be needed
// are removed after the next checkpoint. A file that cannot be removed does no harm.
func (s *Store) removeLeftovers(names []string, m *manifest.Manifest) {
	ids := idset.Names(m.IDs)
	for _, name := range names {
		switch {
		case logNumber(name) >= m.Log:
			s.leftovers = append(s.leftovers, name)
		case logNumber(name) > 0 || name == manifest.Temp,
			numberOf(name, idset.FileName) > 0 && !slices.Contains(ids, name):
			_ = s.fs.Remove(name)
		}
	}
}

// loadPlaces reads the saved pages of the bucket index.
func (s *Store) loadPlaces(m *manifest.Manifest) error {
	s.places.pages = make([]*page, len(m.Pages))
	for i, e := range m.Pages {
		p := &page{saved: e}
		s.places.pages[i] = p
		if e.Size == 0 {
			continue
		}
		if err := s.readPage(p, i, e); err != nil {
			return err
		}
	}
	return nil
}

// exists reports whether a bucket has a number.
func (s *state) exists(number uint16) bool {
	return int(number) < len(s.numbers) && s.numbers[number] != nil
}

// readPage reads a saved page.
func (s *Store) readPage(p *page, index int, e extent.Extent) error {
	image := make([]byte, e.Size)
	unread := s.file.Read(image, e)
	b, _, reason := extent.Open(image)
	if reason == "" && (b.Magic != extent.Places || b.Bucket != uint64(index) || !p.decode(b.Raw, s.exists)) {
		reason = "a page of the bucket index is misplaced"
	}
	if reason != "" {
		return cmp.Or(unread, disk.Corrupt(extent.Name, e.Offset(), reason))
	}
	return nil
}

// since returns the generation of the saved page that contains a record.
func (p *places) since(seq uint64) uint32 {
	if i := seq / pageNumbers; i < uint64(len(p.pages)) {
		return p.pages[i].saved.Generation
	}
	return 0
}

// findPlaces updates the bucket index with the records and deletions written since its pages were
// saved.
func (s *Store) findPlaces() error {
	since := s.generation
	for seq := uint64(0); seq < s.seq; seq += pageNumbers {
		since = min(since, s.places.since(seq))
	}
	var records, messages []later
	for b := range s.buckets {
		for _, e := range b.records.Extents() {
			if e.Generation > since {
				records = append(records, later{b, e})
			}
		}
		for _, e := range b.messages.Extents() {
			if e.Generation > since {
				messages = append(messages, later{b, e})
			}
		}
	}
	// The newest extent comes last: until a split is done, its records are in two buckets.
	slices.SortStableFunc(records, func(x, y later) int {
		return cmp.Compare(x.e.Generation, y.e.Generation)
	})
	r := extent.NewReader(s.file, nil, nil)
	var damage []error
	damaged := map[*bucket]bool{}
	find := func(all []later, find func(*extent.Reader, later, damageFunc) error) (err error) {
		for i := 0; i < len(all) && err == nil; i++ {
			err = find(r, all[i], func(_, _ uint64, err error) error {
				damaged[all[i].b] = true
				return keepDamage(&damage)(0, 0, err)
			})
		}
		return err
	}
	if err := cmp.Or(find(records, s.findRecords), find(messages, s.findDeletions)); err != nil {
		return err
	}
	if len(damage) == 0 {
		return nil
	}
	s.unsure = true
	s.keepDamage(damage...)
	return s.correctPlaces(damaged)
}

// A later extent of a bucket is newer than pages of the bucket index.
type later struct {
	b *bucket
	e extent.Extent
}

func (s *Store) findRecords(r *extent.Reader, l later, damaged damageFunc) error {
	bad := error(nil)
	_, err := walkRecords(r, l.b, l.e.First, l.e.First+uint64(l.e.Count), damaged, func(n uint64, found entry) bool {
		if found.seq >= s.seq {
			bad = r.Misfit(n)
		} else if !s.hasMoved(l.b, n) && l.e.Generation > s.places.since(found.seq) {
			s.places.set(found.seq, l.b.number)
		}
		return bad == nil
	})
	return cmp.Or(err, bad)
}

func (s *Store) findDeletions(r *extent.Reader, l later, damaged damageFunc) error {
	_, err := walkMessages(r, l.b, l.e.First, l.e.First+uint64(l.e.Count), damaged, func(_, seq uint64, m message) bool {
		if m.delete && seq < s.seq {
			s.places.set(seq, 0)
		}
		return true
	})
	return err
}

// correctPlaces corrects the bucket index after findPlaces has met damage. A record that came to a
// damaged block still has its older place, and so has one whose deletion is in such a block. Then a
// bucket has more places than records, or damage of its own. Records that cannot be found there, and all
// others without a place whose ids are known, are strays from now on: the damage may be gone when their
// bucket is read the next time.
func (s *Store) correctPlaces(damaged map[*bucket]bool) error {
	counts := make([]uint64, len(s.numbers))
	for _, p := range s.places.pages {
		for i := 0; p.numbers != nil && i < pageNumbers; i++ {
			if n := int(p.numbers[i]); n < len(counts) {
				counts[n]++
			}
		}
	}
	for b := range s.buckets {
		if !damaged[b] && counts[b.number] <= b.left() {
			continue
		}
		if err := s.correctPlacesIn(b); err != nil {
			return err
		}
	}
	return s.ids.All(func(_ idset.Key, seq uint64) {
		if seq < s.seq && s.places.get(seq) == 0 {
			s.places.set(seq, strayNumber)
		}
	})
}

// correctPlacesIn corrects the places of records of a bucket.
func (s *Store) correctPlacesIn(b *bucket) error {
	found, err := s.recordsOf(b)
	for seq := uint64(0); seq < s.seq && err == nil; seq++ {
		if s.places.get(seq) == b.number && found.get(seq) == 0 {
			s.places.set(seq, 0)
		}
	}
	return err
}

// recordsOf returns the records that are readable in a bucket, and have a known id.
func (s *Store) recordsOf(b *bucket) (found places, err error) {
	var keys []idset.Key
	var seqs []uint64
	check := func() error {
		known, err := s.ids.Find(keys)
		for i, seq := range seqs {
			if err == nil && known[i] == seq {
				found.set(seq, 1)
			}
		}
		keys, seqs = keys[:0], seqs[:0]
		return err
	}
	skip := func(_, _ uint64, _ error) error { return nil }
	r, bad := extent.NewReader(s.file, nil, nil), error(nil)
	_, err = walkRecords(r, b, 0, b.records.Count(), skip, func(at uint64, e entry) bool {
		if !s.hasMoved(b, at) && s.places.get(e.seq) == b.number {
			keys, seqs = append(keys, idset.KeyOf(string(e.id))), append(seqs, e.seq)
		}
		if len(keys) == 1000 {
			bad = check()
		}
		return bad == nil
	})
	return found, cmp.Or(err, bad, check())
}
