package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"net/http"
	"slices"
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

	// From and To delimit the time of the capture, which is cut to microseconds. To itself is not part of it. A
	// zero From or To means no limit.
	From, To time.Time
}

// matcher is a selection in the form of the index.
type matcher struct {
	spans    []urlkey.Span
	digest   digest
	from, to int64
}

func (s *Selection) matcher() (*matcher, error) {
	q := Query{From: s.From, To: s.To, Host: s.Host, Prefix: s.Prefix}
	spans, err := q.spans()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if s.URL != "" && s.Host+s.Prefix != "" || *s == (Selection{}) {
		return nil, fmt.Errorf("%w: a Selection needs a field, and at most one of URL, Host and Prefix",
			ErrInvalid)
	}
	if s.URL != "" {
		key, _ := urlkey.Of(s.URL)
		spans = []urlkey.Span{{Low: key, High: key + "\x00"}}
	}
	m := &matcher{spans: spans, digest: parseDigest(s.Digest)}
	m.from, m.to = q.span()
	if s.Digest != "" && m.digest == "" {
		return nil, fmt.Errorf("%w: Digest %.100q", ErrInvalid, s.Digest)
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
	Holes     map[string][]hole // in some of these, sorted
	Sums      map[string]string // of what else is in these

	archive *Archive
	matcher *matcher
	reason  string
	gone    map[uint64]bool   // hashes of the IDs of records that go, and of their places
	asked   map[uint64]string // keys of versions that repeat others and answer no plain GET, by hashes of their places
	kept    []warc.Field      // digests of what stays of the files with holes
	bytes   int64             // of all records that go
	report  Report
	moves   *mover
	listed  bool // the index has entries that are selected: their records may be damaged

	purged *lsm.Tree // the index without what goes
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
// not believed. Of the revisits of other programs that name no original, some move although theirs stays. A request
// belongs to its capture, and stays or goes with that. The content of other pages stays, and may name what was
// erased, as does a revisit whose body was never in the archive. Names of files, exported files and backups are out
// of reach.
//
// Imported files are never changed. If one of them has anything that is selected or refers to it, or
// cannot be read, nothing is erased, and the error names it. Nor is anything erased while a disk cannot
// read some file of the archive: what was selected might be there; or if another program has written a URL with
// a control character that would have to move.
//
// Erase reads all files twice, and writes those anew that have something to erase; each replaces the old one
// at once. So no other program may be writing to a file in the directory: what it writes afterwards is lost.
// If a file is not finished, or grows while it is read, nothing is erased, and the error names it. Erase
// takes some 100 bytes of memory for each record that goes, or that repeats another as an answer to anything
// but a plain GET: select one span of time after the other if that is too much. Captures may be appended
// meanwhile, and are not erased. Other goroutines and processes see the archive before or after it. A version
// that was found before may have moved, or be gone: reading it then fails with [ErrNotFound], until it is
// looked up again: in an archive that is only read, a second later. If the process ends, the archive is
// closed, or Erase fails, then either nothing was erased, or [Open] or the next Erase first completes it.
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
		Sums: map[string]string{}, archive: a, reason: reason, gone: map[uint64]bool{}, asked: map[uint64]string{}}
	defer a.files.announce() // the file that is finished first
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
	e.moves = &mover{erasure: e, promoted: map[address]newOriginal{}, out: a.files.another()}
	e.moves.out.id.Store(&e.ID)
	e.File = e.moves.out.newName(time.Now())
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
	for _, name := range slices.Sorted(maps.Keys(e.Holes)) {
		if err := a.stopped(ctx); err != nil {
			return err
		}
		if err := e.rewrite(name); err != nil {
			return err
		}
		a.announce(name)
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
	if e.moves.out.file != nil {
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

// plan reads all files, and collects what has to go, and then what has to move or go because of that.
func (e *erasure) plan(ctx context.Context) error {
	if err := e.moves.out.createAs(e.File, e.File+moving, time.Now()); err != nil {
		return err
	}
	names := append(e.archive.imports.list(), slices.Sorted(maps.Keys(e.Sizes))...)
	for _, first := range []bool{true, false} {
		for _, name := range names {
			if err := e.scan(ctx, name, first); err != nil {
				return err
			}
		}
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
	x.lend(fresh)
	fresh.files[e.File].end = 0
	if err := fresh.lsm().Load(e.without(x)); err != nil {
		_ = fresh.close(false) // nothing of it is on disk, and the old one stays
		return x.notice(err)
	}
	// From here on the new one may be on disk, even if this fails: a later commit completes that.
	incomplete := (&Archive{environment: a.environment, index: fresh}).indexMoved(e.File)
	fresh.ended.Wait()
	err = errors.Join(incomplete, fresh.write(false))
	x.adopt(fresh, e.File, incomplete)
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
// those of selected versions whose records are damaged. Other versions of their URLs forget them.
func (e *erasure) without(x *index) iter.Seq2[lsm.Pair, error] {
	return func(yield func(lsm.Pair, error) bool) {
		url, lost, last := "", false, change{}
		for p, err := range x.lsm().Scan(nil, []byte{bodyMark, 0xff}) {
			var l entry
			gone := false
			switch {
			case err != nil:
			case p.Key[0] == bodyMark:
				c := cutter{p.Value, true}
				if at := c.address(); c.ok {
					gone = e.drops(x, at.file, at.offset)
				} else {
					err = errEntry
				}
			default:
				var key []byte
				key, err = l.cutKey(p.Key)
				if err = cmp.Or(err, l.cutValue(p.Value)); err != nil {
					break
				}
				if string(key) != url { // does not allocate
					url, lost, last = string(key), false, change{}
				}
				name := x.name(l.file)
				gone = e.drops(x, l.file, l.offset) ||
					l.offset < e.Sizes[name] && e.matcher.matches(url, l.time, l.digest)
				if gone {
					lost = true
					break
				}
				// A 304 that was appended since names no body, but a new index has found the one that goes.
				orphan := l.content.length > 0 && x.name(l.content.file) != e.File && e.drops(x, l.content.file, l.content.offset)
				if orphan {
					l.kind, l.content, l.digest, l.media, l.truncated, l.coded = Unchanged, address{}, "", "", false, false
				}
				if last.corrects(&l) && lost || orphan {
					p.Value = l.appendValue(nil)
				}
			}
			if !gone && !yield(p, err) || err != nil {
				return
			}
		}
	}
}

// drops reports whether a record goes, or was in the file of moved records before that was complete.
func (e *erasure) drops(x *index, file uint32, offset int64) bool {
	name := x.name(file)
	_, found := slices.BinarySearchFunc(e.Holes[name], offset, func(h hole, offset int64) int {
		return cmp.Compare(h.Offset, offset)
	})
	return found || name == e.File
}

// reachable returns an error if a file with selected captures is missing: it may come back. It notes whether there
// are any.
func (e *erasure) reachable() error {
	x := e.archive.index
	for l, err := range x.scan(urlkey.All) {
		if err != nil {
			return err
		}
		if !isPlain(l.url) && (l.entry.kind == Unchanged || l.entry.content.length > 0) {
			e.asked[placeOf(l.entry.file, l.entry.offset)] = l.url
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

// change is the last change of a URL, if there is some.
type change struct {
	of   entry
	some bool
}

// decides sets the kind of an entry that has its body elsewhere: it is a change if the last one had another body, or
// the same bytes as part of one, or with another status. A revisit need not have a status.
func (c *change) decides(e *entry) {
	if e.content.length == 0 || e.status == http.StatusNotModified {
		return
	}
	e.kind = Unchanged
	if !c.some || c.of.digest != e.digest || c.of.truncated != e.truncated || c.of.coded != e.coded ||
		e.status != 0 && c.of.status != e.status {
		e.kind = Changed
	}
}

// corrects corrects what an entry says of the last change before it, if that may be gone, or have moved. It takes the
// entries of a URL in their order, and reports whether the entry had to be corrected.
func (c *change) corrects(e *entry) bool {
	kind, time, some := e.kind, e.prior, e.hasPrior
	if e.status == http.StatusNotModified && some && c.of.time > time && c.of.digest.contradicts(e.digest) {
		c.of = *e // the body that it confirmed is older than a change that was found since, and stays the last one
		c.of.time, c.of.status = time, e.content.status
		return false
	}
	c.decides(e)
	if e.prior, e.hasPrior = c.of.time, c.some; e.kind == Changed {
		e.prior, e.hasPrior = 0, false
		*c = change{*e, true}
	}
	return kind != e.kind || time != e.prior || some != e.hasPrior
}

// correctPriors corrects the entries of a key.
func (x *index) correctPriors(key string) error {
	var last change
	for l, err := range x.scan(urlkey.Span{Low: key + "\x00", High: key + "\x01"}) {
		if err != nil {
			return err
		}
		if e := l.entry; last.corrects(&e) {
			x.replace(key, &e)
			if err := x.admit(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Erasing reports whether an erasure is under way, or was interrupted and will be completed.
func (a *Archive) Erasing() bool {
	return a.erasing.Load() != nil || a.readOnly && exists(a.fs, eraseName)
}
