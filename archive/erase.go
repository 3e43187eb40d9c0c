package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/archive/internal/lsm"
	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// Selection says what [Archive.Erase] removes: what all of the fields that are set select. At least
// one has to be.
type Selection struct {
	// URL selects one URL, Host those of a host, and Prefix those that begin with this one, as in a
	// [Query]. At most one may be set.
	URL, Host, Prefix string

	// Digest selects the captures with this body, in the form of [Version.Digest].
	Digest string

	// From and To delimit the time of the capture, which is cut to microseconds. To itself is not part of it. A zero From or To
	// means no limit.
	From, To time.Time
}

// matcher is a selection in the form of the index.
type matcher struct {
	spans    []urlkey.Span
	digest   digest
	from, to int64
}

func (s *Selection) matcher() (*matcher, error) {
	m := &matcher{spans: []urlkey.Span{urlkey.All}, from: -never, to: never}
	set := 0
	if s.URL != "" {
		key, _ := urlkey.Of(s.URL)
		m.spans, set = []urlkey.Span{{Low: key, High: key + "\x00"}}, 1
	}
	for _, by := range []struct {
		name  string
		spans func(string) []urlkey.Span
	}{{s.Host, urlkey.Host}, {s.Prefix, urlkey.Prefix}} {
		if by.name != "" {
			m.spans = by.spans(by.name)
			set++
		}
	}
	if m.digest = parseDigest(s.Digest); s.Digest != "" && m.digest == "" {
		return nil, fmt.Errorf("%w: Digest %.100q", ErrInvalid, s.Digest)
	}
	if !s.From.IsZero() {
		m.from = ceiling(s.From)
	}
	if !s.To.IsZero() {
		m.to = ceiling(s.To)
	}
	if set > 1 || *s == (Selection{}) {
		return nil, fmt.Errorf("%w: a Selection needs a field, and at most one of URL, Host and Prefix",
			ErrInvalid)
	}
	return m, nil
}

// covers reports whether a selection may select captures of a URL, whatever was asked of it.
func (m *matcher) covers(key string) bool {
	key, _ = cutAsked(key)
	return slices.ContainsFunc(m.spans, func(s urlkey.Span) bool { return s.Low <= key && key < s.High })
}

// during reports whether a selection may select captures of a time.
func (m *matcher) during(at int64) bool { return m.from <= at && at < m.to }

// matches reports whether a capture is selected.
func (m *matcher) matches(key string, at int64, d digest) bool {
	return m.covers(key) && m.during(at) && (m.digest == "" || m.digest == d)
}

// erasure is the plan of an erasure, which is on disk from the moment when it can only be completed, and
// what is known while that is made. It is not safe for concurrent use.
type erasure struct {
	ID        warc.ID // of File
	Selection Selection
	Time      time.Time
	File      string            // with the tombstone, and the records that have moved
	Sizes     map[string]int64  // of the other files when it began: what is appended later stays
	Holes     map[string][]hole // of these; sorted
	Sums      map[string]string // of what else is in those

	archive *Archive
	matcher *matcher
	reason  string
	erased  map[uint64]bool // hashes of the IDs of captures, if metadata needs them to be found
	kept    []warc.Field    // digests of what stays of the files with holes
	bytes   int64           // of all records that go
	report  Report
	moves   *mover
	listed  bool // the index has entries that are selected: their records may be damaged

	purged *lsm.Tree // the index without what goes
	keys   []string  // of URLs that lost some of their versions
}

// hole is a part of a file whose record has to go, or has gone.
type hole struct {
	Offset, Length int64
}

// Erase removes what a selection selects, for good: the records of the captures, their requests, their
// metadata and conversions, and those of all URLs that are selected at any time, from the files, and the
// entries from the index. In the files a record without content takes the place of each, of the same
// length, so that all others stay where they are, byte for byte. reason is for a tombstone: a metadata
// record that says when, why and how much was erased, but not what. [Archive.Verify] proves by it that the
// rest has not changed.
//
// A revisit whose original goes becomes an original if it stays, with a copy of the body; others then
// refer to it. These records move to a new file, each with its request, and count as the last of several versions
// of one URL and one instant. Their digest is that of the bytes that Erase has read: what another program claims is
// not believed. A request belongs to its capture, and stays or goes with that. The content of other pages stays,
// and may name what was erased, as does a revisit whose body was never in the archive. Names of files, exported files and backups are out of reach.
//
// Imported files are never changed. If one of them has anything that is selected or refers to it, or
// cannot be read, nothing is erased, and the error names it. Nor is anything erased while a disk cannot
// read some file of the archive: what was selected might be there.
//
// Erase reads all files, twice with a Digest, a time or metadata that names no URL, and writes those anew that have something to
// erase; each replaces the old one at once. So no other program may still be writing to a file in the directory:
// what it writes afterwards is lost. Erase takes some 100 bytes of memory for each record that goes:
// select one span of time after the other if that is too much. Captures may be appended meanwhile, and
// are not erased. Other goroutines and processes see the archive before or after it. If the process ends,
// the archive is closed, or Erase fails, then either nothing was erased, or [Open] or the next Erase
// first completes it.
//
// The report has the number of versions Erased, of Records and of Files that were written anew, and
// the damage in files, which is kept, since it cannot be read.
func (a *Archive) Erase(ctx context.Context, s Selection, reason string) (Report, error) {
	switch {
	case a.readOnly:
		return Report{}, ErrReadOnly
	case fieldFault("reason", reason) != "":
		return Report{}, fmt.Errorf("%w: the reason %s", ErrInvalid, fieldFault("reason", reason))
	}
	a.imports.adding.Lock() // neither another erasure nor an import, and Close waits
	defer a.imports.adding.Unlock()
	if a.files.isClosed() {
		return Report{}, ErrClosed
	}
	e := &erasure{ID: warc.NewID(), Selection: s, Time: time.Now().UTC(), Holes: map[string][]hole{},
		Sums: map[string]string{}, archive: a, reason: reason}
	err := a.resumeErase(ctx)
	if err == nil {
		e.matcher, err = s.matcher()
	}
	if err == nil {
		err = e.begin(ctx)
	}
	if err != nil {
		return e.report, fmt.Errorf("archive: erase: %w", err)
	}
	return e.report, nil
}

// begin decides what has to go, and makes that known to the disk before anything changes.
func (e *erasure) begin(ctx context.Context) error {
	a := e.archive
	o := a.files.another()
	o.id.Store(&e.ID)
	e.File = o.newName(time.Now())
	a.erasing.Store(e.matcher) // no capture refers to what is erased from here on
	err := cmp.Or(a.files.settle(e.measure), e.reachable())
	if err == nil {
		err = e.plan(ctx)
	}
	some := len(e.Holes) > 0 || e.listed
	if err == nil && some {
		err = e.commit()
	}
	if err != nil || !some {
		return errors.Join(err, e.abandon())
	}
	return e.run(ctx)
}

// run erases what was planned. Each step may be repeated.
func (e *erasure) run(ctx context.Context) error {
	a := e.archive
	if err := a.purge(e); err != nil {
		return err
	}
	if err := e.name(); err != nil {
		return err
	}
	names, err := a.files.list()
	if err != nil {
		return err
	}
	for _, name := range names {
		final := strings.TrimSuffix(name, unfinished)
		if len(e.Holes[final]) == 0 {
			continue
		}
		if err := a.stopped(ctx); err != nil {
			return err
		}
		if err := e.rewrite(name, e.Holes[final]); err != nil {
			return err
		}
		if name == final { // else a disk failure has left it unfinished
			a.announce(final)
		}
	}
	// An index that was damaged may have been made anew from the files as they were.
	if err := a.purge(e); err != nil {
		return err
	}
	if err := a.fs.Sync(); err != nil { // an earlier attempt may have failed after a rename
		return err
	}
	return errors.Join(e.remove(eraseName), a.forgetErase())
}

// abandon removes what was prepared. Whether the plan is on disk may be unknown: as long as it may be, the
// erasure is one that will be completed.
func (e *erasure) abandon() error {
	if e.moves != nil && e.moves.out.file != nil {
		_ = e.moves.out.file.Close() // it is removed
	}
	if err := e.remove(eraseName); err != nil {
		return err
	}
	if err := e.archive.forgetErase(); err != nil {
		return err
	}
	return e.remove(e.File + moving)
}

// remove removes a file that may not exist.
func (e *erasure) remove(name string) error {
	err := e.archive.fs.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// name gives the file of moved records its final name, now that the index has its entries.
func (e *erasure) name() error {
	names, err := e.archive.fs.List()
	if err != nil || !slices.Contains(names, e.File+moving) && slices.Contains(names, e.File) {
		return err
	}
	if err := e.archive.rename(e.File+moving, e.File); err != nil {
		return err
	}
	e.archive.announce(e.File)
	return nil
}

// plan reads all files, and collects what has to go and what has to move.
func (e *erasure) plan(ctx context.Context) error {
	// The metadata of a capture may come before it, and has neither its digest nor its date.
	if m := e.matcher; m.digest != "" || m.from > -never || m.to < never {
		e.erased = map[uint64]bool{}
	}
	err := e.collect(ctx)
	if !errors.Is(err, errNameless) {
		return err
	}
	err = errors.Join(e.moves.out.file.Close(), e.remove(e.File+moving))
	e.erased, e.report, e.bytes, e.kept = map[uint64]bool{}, Report{}, 0, nil
	clear(e.Holes)
	clear(e.Sums)
	if err == nil {
		err = e.collect(ctx)
	}
	return err
}

// collect is plan with or without the IDs of captures.
func (e *erasure) collect(ctx context.Context) (err error) {
	if e.moves, err = newMover(e); err != nil {
		return err
	}
	names := append(e.archive.imports.list(), slices.Sorted(maps.Keys(e.Sizes))...)
	if e.erased != nil {
		for _, name := range names {
			if _, err := e.scan(ctx, name, true); err != nil {
				return err
			}
		}
	}
	for _, name := range names {
		s, err := e.scan(ctx, name, false)
		if err != nil {
			return err
		}
		if len(s.holes) == 0 {
			continue
		}
		e.Holes[name] = s.holes
		e.report.Files++
		sum, err := e.archive.keptSum(ctx, name, s.size, s.all)
		if e.Sums[name] = sum; err == nil && len(s.all) > len(s.holes) {
			e.Sums[name], err = e.archive.keptSum(ctx, name, s.size, s.holes)
		}
		if err != nil {
			return err
		}
		e.kept = append(e.kept, warc.Field{Name: "kept", Value: fmt.Sprint(sum, " ", s.size, " ", name)})
	}
	return nil
}

// purge replaces the index by one without the entries of holes, and with those of the file of moved
// records, which may have been indexed when the old ones were still there. It does nothing if the index is the one
// that it made. Look-ups use the old one until then. It stays if the new one cannot be filled: the new one has
// the lengths of all files from the start, so that a part of it must never be written.
func (a *Archive) purge(e *erasure) error {
	x := a.index
	x.file(e.File) // has a number from now on
	x.writing.Lock()
	defer x.writing.Unlock()
	if e.purged == x.lsm() {
		return nil
	}
	if err := x.writeLocked(); err != nil {
		return err
	}
	fresh, err := openIndex(a.fs, newIndex)
	if err != nil {
		return err
	}
	for name, end := range x.lend(fresh) {
		fresh.files[name].end = end
	}
	fresh.files[e.File].end, e.keys = 0, nil
	if err := fresh.lsm().Load(e.without(x)); err != nil {
		_ = fresh.close(false) // nothing of it is on disk, and the old one stays
		return x.notice(err)
	}
	shadow := &Archive{environment: a.environment, index: fresh}
	var incomplete error
	for _, key := range e.keys {
		incomplete = cmp.Or(incomplete, shadow.noteMoved(key))
	}
	incomplete = cmp.Or(incomplete, shadow.indexMoved(e.File))
	fresh.ended.Wait()
	// From here on the new index may be on disk, even if this fails: a later commit completes that.
	err = errors.Join(incomplete, fresh.write(false))
	x.adopt(fresh, map[string]int64{e.File: fresh.files[e.File].end}, incomplete)
	e.purged = fresh.lsm()
	return err
}

// indexMoved indexes the file of moved records.
func (a *Archive) indexMoved(name string) error {
	f, err := a.openFile(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err = a.update(f, name, f.size); err != nil {
		return err
	}
	return a.resolveDeferred()
}

// without returns the pairs of an index without those that lead to a hole or to the file of moved records, and
// those of selected versions whose records are damaged. It notes the keys that lose some versions, but not all.
func (e *erasure) without(x *index) iter.Seq2[lsm.Pair, error] {
	return func(yield func(lsm.Pair, error) bool) {
		key, lost, left := "", false, false
		for p, err := range x.lsm().Scan(nil, []byte{bodyMark, 0xff}) {
			gone := false
			if err == nil {
				gone, err = e.drops(x, p)
			}
			if n := len(p.Key) - tailSize - 1; err == nil && p.Key[0] != bodyMark {
				if string(p.Key[:n]) != key { // does not allocate
					key, lost, left = string(p.Key[:n]), false, false
				}
				was := lost && left
				if lost, left = lost || gone, left || !gone; lost && left && !was {
					e.keys = append(e.keys, key)
				}
			}
			if !gone && !yield(p, err) || err != nil {
				return
			}
		}
	}
}

// drops reports whether a pair of the index goes.
func (e *erasure) drops(x *index, p lsm.Pair) (bool, error) {
	var l entry
	selected := false
	if p.Key[0] == bodyMark {
		c := cutter{p.Value, true}
		at := c.address()
		if l.file, l.offset = at.file, at.offset; !c.ok {
			return false, errEntry
		}
	} else {
		url, err := l.cutKey(p.Key)
		if err := cmp.Or(err, l.cutValue(p.Value)); err != nil {
			return false, err
		}
		selected = e.matcher.matches(string(url), l.time, l.digest)
	}
	name := x.name(l.file)
	_, found := slices.BinarySearchFunc(e.Holes[name], l.offset, func(h hole, offset int64) int {
		return cmp.Compare(h.Offset, offset)
	})
	return found || name == e.File || selected && l.offset < e.Sizes[name], nil
}

// reachable returns an error if a file with selected captures is missing: it may come back. It notes whether there
// are any.
func (e *erasure) reachable() error {
	x := e.archive.index
	for l, err := range x.scan(urlkey.All) {
		if err != nil {
			return err
		}
		if !e.matcher.matches(l.url, l.entry.time, l.entry.digest) {
			continue
		}
		name := x.name(l.entry.file)
		size, here := e.Sizes[name]
		if !here {
			return fmt.Errorf("%s: %w", name, errAway)
		}
		e.listed = e.listed || l.entry.offset < size
	}
	return nil
}

// correctPriors corrects what entries say of the last change before them. It may be gone, or have moved
// and be a change only now.
func (x *index) correctPriors(s urlkey.Span) error {
	url, changed, some := "", int64(0), false
	for l, err := range x.scan(s) {
		if err != nil {
			return err
		}
		if l.url != url {
			url, changed, some = l.url, 0, false
		}
		e := l.entry
		switch {
		case e.kind == Changed:
			changed, some = e.time, true
		case e.prior != changed || e.hasPrior != some:
			e.prior, e.hasPrior = changed, some
			x.replace(url, &e)
			if err := x.admit(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Erasing reports whether an erasure is under way, or was interrupted and will be completed.
func (a *Archive) Erasing() bool { return a.erasing.Load() != nil }
