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
	"github.com/spinneret-go/spinneret/internal/table"
	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/calendar"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
	"github.com/spinneret-go/spinneret/satstore/internal/manifest"
	"github.com/spinneret-go/spinneret/satstore/internal/wal"
)

// recover loads the store from disk, or creates it. It ends with a checkpoint, since a log whose
// end may be torn is never continued. If the disk is full, the store is read-only, and Sync tries again.
func (s *Store) recover() error {
	names, err := s.fs.List()
	if err != nil {
		return fmt.Errorf("satstore: list directory: %w", err)
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
		// There is no gap between logs. One beyond may be the log of the caller, named after the date.
		for s.lastLog = m.Log; slices.Contains(names, wal.FileName(s.lastLog+1)); {
			s.lastLog++
		}
		err = s.load(names, m)
	}
	if err != nil {
		return err
	}
	if err := s.checkpoint(false); err != nil {
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
		case max(logNumber(name), numberOf(name, idset.FileName)) > table.MaxLeft: // the caller's
			continue
		case name == wal.PendingName: // its content belongs to a log or is void
			continue
		case name == extent.Name:
			limit = int64(len(extent.FileHeader))
		case logNumber(name) > 0:
			limit = wal.Header
		}
		size, err := sizeOf(s.fs, name)
		if err != nil {
			return err
		}
		if size > limit {
			return durable.Corrupt(name, 0, "the file has content, but CHECKPOINT is missing")
		}
		s.leftovers = append(s.leftovers, name)
		s.lastLog = max(s.lastLog, logNumber(name))
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

func sizeOf(fs vfs.FS, name string) (int64, error) {
	f, err := fs.Open(name)
	if err != nil {
		return 0, err
	}
	size, err := f.Size()
	return size, errors.Join(err, f.Close())
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
	s.bucketID, s.seq, s.records = m.NextBucket, m.NextSeq, m.Records
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
			s.split = &split{bucket: b, moved: m.Split.Moved, forwarded: m.Split.Forwarded}
		case i >= len(m.Buckets)-m.Aside:
			s.aside = append(s.aside, b)
			s.keepDamage(asideError(b))
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
	for i := range s.numbers {
		if i > 0 && s.numbers[i] == nil {
			s.spare = append(s.spare, uint16(i))
		}
	}
	if !fits {
		return durable.Corrupt(manifest.Name, 0, "a bucket does not fit the calendar")
	}
	return nil
}

// asideError returns the error that says that a bucket is aside.
func asideError(b *bucket) error {
	at := int64(0)
	if e := b.records.Extents(); len(e) > 0 {
		at = e[0].Offset()
	}
	return durable.Corrupt(extent.Name, at, fmt.Sprintf(
		"%d records were in blocks that could not be read when they were to move: use Repair", b.left()))
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
		switch log := logNumber(name); {
		case log > s.lastLog: // the caller's
		case log >= m.Log:
			s.leftovers = append(s.leftovers, name)
		case numberOf(name, idset.FileName) > m.IDs.Last+table.MaxLeft:
		case log > 0 || name == manifest.Temp,
			numberOf(name, idset.FileName) > 0 && !slices.Contains(ids, name):
			_ = s.fs.Remove(name)
		}
	}
}

// loadPlaces reads the saved pages of the bucket index.
func (s *Store) loadPlaces(m *manifest.Manifest) error {
	s.places.pages = make([]*page, len(m.Pages))
	for i, e := range m.Pages {
		if e.Generation < m.Pages[s.places.turn].Generation {
			s.places.turn = i // otherwise frequent kills would leave some pages unsaved for ever
		}
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
		return cmp.Or(unread, durable.Corrupt(extent.Name, e.Offset(), reason))
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
	for _, l := range records {
		if err := s.findRecords(r, l); err != nil {
			return err
		}
	}
	for _, l := range messages {
		if err := s.findDeletions(r, l); err != nil {
			return err
		}
	}
	return nil
}

// A later extent of a bucket is newer than pages of the bucket index.
type later struct {
	b *bucket
	e extent.Extent
}

func (s *Store) findRecords(r *extent.Reader, l later) error {
	bad := error(nil)
	_, err := walkRecords(r, l.b, l.e.First, l.e.First+uint64(l.e.Count), nil, func(n uint64, found entry) bool {
		if found.seq >= s.seq {
			bad = r.Misfit(n)
		} else if !s.hasMoved(l.b, n) && l.e.Generation > s.places.since(found.seq) {
			s.places.set(found.seq, l.b.number)
		}
		return bad == nil
	})
	return cmp.Or(err, bad)
}

func (s *Store) findDeletions(r *extent.Reader, l later) error {
	_, err := walkMessages(r, l.b, l.e.First, l.e.First+uint64(l.e.Count), nil, func(_, seq uint64, m message) bool {
		if m.delete && seq < s.seq {
			s.places.set(seq, 0)
		}
		return true
	})
	return err
}
