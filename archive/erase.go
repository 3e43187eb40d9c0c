package archive

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/archive/internal/extsort"
	"github.com/spinneret-go/spinneret/archive/internal/lsm"
	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/internal/durable"
)

// Selection says what [Archive.Erase] removes: what all of the fields that are set select. At least
// one has to be.
type Selection struct {
	// URL selects one URL, Host those of a host, and Prefix those that begin with this one, as in a
	// [Query]. At most one may be set.
	URL, Host, Prefix string

	// Digest selects the captures with this body, in the form of [Version.Digest].
	Digest string

	// From and To delimit the time of the capture. To itself is not part of it. A zero From or To
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
		m.from = microseconds(s.From)
	}
	if !s.To.IsZero() {
		m.to = microseconds(s.To)
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

// erasure is what is known of an erasure that has begun. It is not safe for concurrent use.
type erasure struct {
	Version   int
	ID        warc.ID // of File
	Selection Selection
	Reason    string
	Time      time.Time
	File      string           // with the tombstone, and the records that must change
	Files     map[string]int64 // the others, and their sizes, when it began

	archive *Archive
	matcher *matcher
	known   bool             // File is complete: this or an earlier attempt got so far
	copied  map[copied]bool  // the versions in File, if an earlier attempt got so far
	erased  map[string]bool  // IDs of the records, if they are selected by their digest
	dropped *extsort.Sorter  // keys of the index
	holes   map[string]holes // of the files that have some
	kept    []warc.Field     // digests of what stays of these files
	bytes   int64            // of all holes
	report  Report
	moves   *mover
}

// Erase removes what a selection selects, for good: the records of the captures, their requests, and
// the metadata and conversions of these URLs, from the files, and their entries from the index. In
// the files a record without content takes the place of each, of the same length, so that all others
// stay where they are, byte for byte. reason is for a tombstone: a metadata record that says when, why
// and how much was erased, but not what. [Archive.Verify] proves by it that the rest has not changed.
//
// A revisit whose original goes becomes an original if it stays, with a copy of the body; others then
// refer to it. These records move to a new file. The content of other pages stays, and may name what
// was erased. Names of files, exported files and backups are out of reach.
//
// Erase reads all files, and writes those anew that have something to erase; each replaces the old one
// at once. Captures may be appended meanwhile, and are not erased. Other goroutines and processes see
// the archive before or after it. If the process ends, or Erase fails, [Open] or the next Erase first
// completes what was begun. Imported files are never changed: if they have selected captures, nothing is
// erased, and the error names them.
//
// The report has the number of versions Erased, of Records and of Files that were written anew, and
// the damage in files, which is kept, since it cannot be read.
func (a *Archive) Erase(ctx context.Context, s Selection, reason string) (Report, error) {
	switch {
	case a.readOnly:
		return Report{}, ErrReadOnly
	case a.files.isClosed():
		return Report{}, ErrClosed
	case fieldFault("reason", reason) != "":
		return Report{}, fmt.Errorf("%w: the reason %s", ErrInvalid, fieldFault("reason", reason))
	}
	a.imports.adding.Lock() // neither another erasure nor an import
	defer a.imports.adding.Unlock()
	e := &erasure{Version: eraseVersion, ID: warc.NewID(), Selection: s, Reason: reason,
		Time: time.Now().UTC(), archive: a}
	err := a.resumeErase(ctx)
	if err == nil {
		err = e.prepare()
	}
	if err == nil {
		err = e.run(ctx)
	}
	if err != nil {
		return e.report, fmt.Errorf("archive: erase: %w", err)
	}
	return e.report, nil
}

// prepare makes the erasure known to the disk, unless it cannot be done.
func (e *erasure) prepare() (err error) {
	a := e.archive
	if e.matcher, err = e.Selection.matcher(); err != nil {
		return err
	}
	if len(a.imports.list()) > 0 {
		for l, err := range a.index.scan(urlkey.All) {
			if err != nil {
				return err
			}
			name := a.index.name(l.entry.file)
			if isImport(name) && e.matcher.matches(l.url, l.entry.time, l.entry.digest) {
				return fmt.Errorf("%s has selected captures, and imported files are never changed: "+
					"move it into the directory of the archive", name)
			}
		}
	}
	o := a.files.another()
	o.id.Store(&e.ID)
	e.File = o.newName(time.Now())
	a.erasing.Store(e.matcher) // no capture refers to what is erased from here on
	if e.Files, err = a.files.settle(a.openFile); err == nil {
		var data []byte
		if data, err = json.Marshal(e); err == nil {
			err = durable.Replace(a.fs, eraseName, data)
		}
	}
	if err != nil {
		return errors.Join(err, e.abandon())
	}
	return nil
}

// run erases. Up to the change of the index it can be abandoned. Each step may be repeated: what is
// erased already is not found again.
func (e *erasure) run(ctx context.Context) (err error) {
	a := e.archive
	e.dropped = extsort.New(defaultMemory)
	defer e.dropped.Close()
	e.erased, e.holes = map[string]bool{}, map[string]holes{}
	names, err := a.files.list()
	if err == nil {
		err = e.plan(ctx, names)
	}
	if err == nil && len(e.holes) == 0 && !e.known { // nothing is selected
		return e.abandon()
	}
	if err == nil {
		err = e.moves.complete()
	}
	if err != nil {
		return errors.Join(err, e.abandon())
	}
	if err := a.purge(e.dropped, e.File); err != nil {
		return err
	}
	if err := e.name(); err != nil {
		return err
	}
	// The last file comes first: records belong to earlier ones, by which they are found again if this
	// has to be repeated.
	for _, name := range slices.Backward(names) {
		if len(e.holes[name].erased) == 0 {
			continue
		}
		if err := e.rewrite(name, e.holes[name]); err != nil {
			return err
		}
		a.announce(strings.TrimSuffix(name, unfinished))
	}
	if err := a.fs.Sync(); err != nil { // an earlier attempt may have failed after a rename
		return err
	}
	return errors.Join(e.remove(eraseName), a.forgetErase())
}

// abandon removes what was prepared, before anything was erased. An erasure that an earlier attempt
// has begun stays known.
func (e *erasure) abandon() error {
	if e.moves != nil && e.moves.out != nil && e.moves.out.file != nil {
		_ = e.moves.out.file.Close() // it is removed
	}
	if e.known {
		return nil
	}
	err := errors.Join(e.remove(e.File+moving), e.remove(e.File+moved), e.remove(eraseName))
	if err != nil {
		return err
	}
	return e.archive.forgetErase()
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
	if exists(e.archive.fs, e.File) {
		return nil
	}
	if err := e.archive.rename(e.File+moved, e.File); err != nil {
		return err
	}
	e.archive.announce(e.File)
	return nil
}

// plan reads all files, and collects what has to go and what has to move.
func (e *erasure) plan(ctx context.Context, names []string) (err error) {
	if e.moves, err = newMover(e); err != nil {
		return err
	}
	if e.known {
		if err := e.readCopied(); err != nil {
			return err
		}
	}
	for _, name := range names {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, listed := e.Files[strings.TrimSuffix(name, unfinished)]; !listed {
			continue
		}
		holes, err := e.scan(name)
		if err != nil || len(holes.erased) == 0 {
			if err == nil {
				continue
			}
			return fmt.Errorf("%s: %w", name, err)
		}
		e.holes[name] = holes
		e.report.Files++
		sum, err := e.archive.keptSum(name, holes.size, holes.all)
		if err != nil {
			return err
		}
		e.kept = append(e.kept, warc.Field{Name: "kept",
			Value: fmt.Sprint(sum, " ", holes.size, " ", strings.TrimSuffix(name, unfinished))})
	}
	return nil
}

// purge replaces the index by one without some keys, and with the entries of a file. Look-ups use
// the old one until then. It stays if the new one cannot be filled: the new one has the lengths of all
// files from the start, so that a part of it must never be written.
func (a *Archive) purge(dropped *extsort.Sorter, file string) error {
	x := a.index
	x.file(file) // has a number from now on
	if err := dropped.Sort(); err != nil {
		return err
	}
	x.writing.Lock()
	defer x.writing.Unlock()
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
	if err := fresh.lsm().Load(without(x, dropped)); err != nil {
		_ = fresh.close(false) // nothing of it is on disk, and the old one stays
		return err
	}
	shadow := &Archive{environment: a.environment, index: fresh}
	incomplete := shadow.indexMoved(file)
	if incomplete == nil {
		incomplete = fresh.correctPriors(dropped)
	}
	fresh.ended.Wait()
	// From here on the new index may be on disk, even if this fails: a later commit completes that.
	err = errors.Join(incomplete, fresh.write(false))
	x.adopt(fresh, map[string]int64{file: fresh.files[file].end}, incomplete)
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

// without returns the pairs of an index without the dropped keys.
func without(x *index, dropped *extsort.Sorter) iter.Seq2[lsm.Pair, error] {
	return func(yield func(lsm.Pair, error) bool) {
		next, stop := iter.Pull2(dropped.Items())
		defer stop()
		gone, failed, more := next()
		for p, err := range x.lsm().Scan(nil, []byte{bodyMark, 0xff}) {
			for more && failed == nil && bytes.Compare(gone, p.Key) < 0 {
				gone, failed, more = next()
			}
			if err = errors.Join(err, failed); err == nil && more && bytes.Equal(gone, p.Key) {
				continue
			}
			if !yield(p, err) || err != nil {
				return
			}
		}
	}
}

// correctPriors corrects what the entries of URLs with dropped keys say of the last change before them.
// It may be gone, or have moved and be a change only now.
func (x *index) correctPriors(dropped *extsort.Sorter) error {
	last := ""
	for key, err := range dropped.Items() {
		if err != nil {
			return err
		}
		if key[0] == bodyMark {
			continue
		}
		url, err := new(entry).cutKey(key)
		if err != nil {
			return err
		}
		if string(url) == last {
			continue
		}
		last = string(url)
		if err := cmp.Or(x.correctPrior(last), x.admit()); err != nil {
			return err
		}
	}
	return nil
}

// correctPrior is correctPriors for one URL.
func (x *index) correctPrior(url string) error {
	changed, some := int64(0), false
	for l, err := range x.scan(urlkey.Span{Low: url + "\x00", High: url + "\x01"}) {
		if err != nil {
			return err
		}
		e := l.entry
		switch {
		case e.kind == Changed:
			changed, some = e.time, true
		case e.prior != changed || e.hasPrior != some:
			e.prior, e.hasPrior = changed, some
			x.replace(url, &e)
		}
	}
	return nil
}
