package archive

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// recover updates the index from the files of a directory that no process writes to. Files of
// crashed writers are truncated to their last complete capture and finished.
func (a *Archive) recover() error {
	names, err := a.fs.List()
	if err != nil {
		return fmt.Errorf("list files: %w", err)
	}
	for _, name := range names {
		// A backup may contain both the unfinished and the finished copy of a file. The finished
		// one is final, and the other must not replace it.
		final, open := strings.CutSuffix(name, unfinished)
		if !isWARC(name) || open && slices.Contains(names, final) {
			continue
		}
		if _, err := a.recoverFile(name); err != nil {
			return err
		}
	}
	if err := a.imports.load(a.fs, a.dir); err != nil {
		return err
	}
	if err := a.indexImports(); err != nil {
		return err
	}
	if err := a.resolveDeferred(); err != nil {
		return err
	}
	if a.share && !a.index.bodies {
		if err := a.indexBodies(); err != nil {
			return err
		}
	}
	return a.index.commit()
}

// recoverFile indexes the new part of a file. The writer of a file that ends in ".open" has
// crashed, since no other process writes here now. Only files with our own names may be truncated:
// other crawlers use the same ending.
func (a *Archive) recoverFile(onDisk string) (t tail, err error) {
	name := strings.TrimSuffix(onDisk, unfinished)
	f, err := a.fs.Open(onDisk)
	if err != nil {
		return t, err
	}
	defer f.Close() // finishCrashed may have closed it already
	size, err := f.Size()
	if err != nil {
		return t, err
	}
	crashed := name != onDisk && isOurs(name) && !a.readOnly
	if state, _ := a.index.state(name); crashed {
		err = writeAgain(f, state.end, size)
	}
	if err == nil {
		t, err = a.update(f, name, size)
	}
	if err == nil && crashed {
		err = a.finishCrashed(f, name, &t, size)
	}
	err = a.unread(&t, name, err)
	a.found.count(&t)
	if err == nil && (exists(a.fs, name) || exists(a.fs, name+unfinished)) {
		a.index.file(name) // even if nothing in it can be read: Verify reports it
	}
	return t, err
}

// unread reports what the disk could not read, which is no reason to refuse all other files. The rest of the
// file is left as it is, and indexed as soon as it can be read.
func (a *Archive) unread(t *tail, name string, err error) error {
	if failed := (*unreadable)(nil); !errors.As(err, &failed) {
		return err
	}
	state, _ := a.index.state(name)
	t.unread = err
	t.add(Fault{File: name, Offset: state.end, Err: err})
	return nil
}

// writeAgain writes a part of the file of a crashed writer once more, and forces it to disk. If a sync of
// the writer has failed, the system takes what it has in memory for what is on disk, and a sync alone would
// succeed in vain. Captures that are appended from now on may refer to these.
func writeAgain(f vfs.File, from, to int64) error {
	buf := make([]byte, min(max(to-from, 0), 1<<20))
	for ; from < to; from += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), to-from)]
		if n, err := f.ReadAt(buf, from); n < len(buf) {
			return &unreadable{err}
		}
		if _, err := f.WriteAt(buf, from); err != nil {
			return err
		}
	}
	return f.Sync()
}

// finishCrashed truncates the file of a crashed writer after its last complete capture, and gives
// it its final name. A file without readable captures is removed, unless it has intact records that
// are not trusted because its ID is unknown.
func (a *Archive) finishCrashed(f vfs.File, name string, t *tail, size int64) error {
	if t.whole == 0 {
		if kept, err := a.hasCapture(f, name, size); kept || err != nil {
			return err
		}
	}
	switch {
	case t.whole > size:
		// It became shorter, which is reported. The rest is kept.
	case t.whole == 0 && (t.begun || size < maxPreface):
		// Its writer crashed before the first capture was complete.
		return errors.Join(f.Close(), a.fs.Remove(name+unfinished), a.fs.Sync())
	case t.whole == 0:
		return nil // nothing in it can be read: it is kept for inspection
	case t.whole < size:
		t.cut(name, size)
		if err := f.Truncate(t.whole); err != nil {
			return err
		}
	}
	// Some systems do not rename an open file.
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := a.rename(name+unfinished, name); err != nil {
		return err
	}
	a.announce(name)
	return nil
}

// maxPreface is more than a warcinfo record takes.
const maxPreface = 64 << 10

// hasCapture reports whether a file of unknown ID has an intact record that a crash in the middle of
// its first capture does not leave.
func (a *Archive) hasCapture(f io.ReaderAt, name string, size int64) (found bool, err error) {
	r, err := a.reader(name)
	if err != nil {
		return false, err
	}
	defer r.close()
	if id, err := identity(r, f, name, size); id != "" || err != nil {
		return false, err
	}
	err = r.search(f, name, size, func(rec *warc.Record) bool {
		found = rec.Type() != "request" && rec.Type() != "warcinfo"
		return found
	})
	return found, err
}

// Recovered returns what [Open] found that the index lacked: records from before a crash, data
// appended to imported files, and damage.
func (a *Archive) Recovered() Report { return a.found }

// tail is the result of indexing a file from an offset on.
type tail struct {
	Report
	whole int64 // end of the last complete capture, or the offset where indexing began
	begun bool  // there is at least one record

	pairs

	unread error // of the disk, because of which the rest was not indexed

	broken int64 // start of damage with no record after it yet; negative: none
	err    error // of that damage
}

// damaged records that a file cannot be trusted from an offset on.
func (t *tail) damaged(d *warc.DamageError) error {
	if t.broken < 0 {
		t.broken, t.err = d.Offset, d
	}
	return nil
}

// intact records that a file can be trusted again from an offset on.
func (t *tail) intact(name string, offset int64) {
	if t.broken >= 0 {
		t.add(Fault{File: name, Offset: t.broken, Length: offset - t.broken, Err: t.err})
		t.broken = -1
	}
}

// errShorter is the damage of a file that lost indexed bytes.
var errShorter = errors.New("archive: the file became shorter")

var errCut = errors.New("archive: incomplete capture was cut off")

// cut reports the rest of a file, after the last complete capture, as one damaged part.
func (t *tail) cut(name string, size int64) {
	if n := len(t.Damage); n > 0 && t.Damage[n-1].Offset >= t.whole {
		t.Damaged -= t.Damage[n-1].Length
		t.Damage = t.Damage[:n-1]
		t.Faults--
	}
	t.add(Fault{File: name, Offset: t.whole, Length: size - t.whole, Err: errCut})
}

// update indexes the new part of a file. If the file is shorter than it was, the disk has lost
// synced data, or the file was replaced. The entries stay, so that the loss is visible.
func (a *Archive) update(f io.ReaderAt, name string, size int64) (t tail, err error) {
	was, _ := a.index.state(name)
	if t = (tail{whole: was.end, broken: -1}); size >= was.end {
		t, err = a.indexFile(f, name, was.end, size)
	}
	if err != nil || size >= was.known {
		return t, err
	}
	t.add(Fault{File: name, Offset: size, Length: was.known - size, Err: errShorter})
	return t, nil
}

// indexFile adds the versions between two offsets of a file to the index.
func (a *Archive) indexFile(f io.ReaderAt, name string, from, to int64) (t tail, err error) {
	t = tail{whole: from, broken: -1}
	if from == to {
		return t, nil
	}
	err = a.walk(f, name, from, to, func(rec *warc.Record) error {
		if err := a.indexRecord(rec, name, &t); err != nil {
			return err
		}
		return a.index.admit()
	}, t.damaged)
	// The request of another program's file may come before its response, which is still being written.
	asked := t.request
	if last := t.next(neighbor{}, nil); err == nil && last != nil {
		err = a.indexAnswer(last)
	}
	if err != nil {
		return t, err
	}
	// In a file of ours, everything after the last complete capture was left by a crash. Another
	// program may still be writing its file: an incomplete end may be complete next time.
	end, ended := to, true
	if isOurs(name) {
		end = t.whole
	} else if t.broken >= 0 {
		end, ended = t.broken, asked.offset+asked.length == t.broken
	}
	if !isOurs(name) && ended && asked.length > 0 { // its response may be there next time
		end = asked.offset
	}
	t.intact(name, to)
	if end > from {
		a.index.add(name, "", nil, "", end)
	}
	return t, nil
}

// read reads a record to its end, which verifies that it is complete. It returns the version that the record is, if
// any, and the one whose request is known now. The body is written to payload if that is not nil. A version that
// shares a member with others has no address, and a length of 0.
func (p *pairs) read(rec *warc.Record, name string, payload io.Writer) (found, known *answered, err error) {
	e, of, version, err := entryOf(rec, payload)
	kind, request, own := rec.Type(), neighbor{}, linksOf(rec.Fields())
	ref, moved := refersTo(rec.Fields()), rec.Get(erasedField) != ""
	if err == nil && kind == "request" {
		request, err = requestOf(rec, own)
	}
	if err == nil {
		err = rec.Close()
	}
	if err != nil {
		return nil, nil, err
	}
	if kind == "request" {
		request.length = rec.Length
	}
	if version {
		if rec.Offset <= maxOffset {
			e.length = rec.Length
		}
		// Substrings of the header would keep all of it in memory with the entry.
		e.media = intern([]byte(e.media))
		found = &answered{links: own, target: of.clone(), file: name, entry: e, ref: ref,
			stores: kind == "response", revisit: kind == "revisit", moved: moved}
	}
	if version && e.length > 0 {
		return found, p.next(request, found), nil
	}
	return found, p.next(request, nil), nil
}

// indexRecord adds a record to the index, if it is a version of a URL.
func (a *Archive) indexRecord(rec *warc.Record, name string, t *tail) error {
	kind, offset := rec.Type(), rec.Offset
	capture := kind != "warcinfo" && kind != "request"
	found, known, err := t.read(rec, name, nil)
	if err != nil {
		return err
	}
	t.begun = true
	t.intact(name, offset)
	if capture && rec.Length > 0 {
		t.whole = offset + rec.Length
	}
	switch {
	case found == nil:
	case found.entry.length == 0:
		t.Unnamed++
	default:
		t.Versions++
		found.end = t.whole
	}
	if known != nil {
		return a.indexAnswer(known)
	}
	return nil
}

// indexAnswer adds a version to the index, once its request is known.
func (a *Archive) indexAnswer(r *answered) error {
	e := &r.entry
	key, q := r.key()
	if isPosted(r.request.head) {
		e.posted = e.offset - r.request.offset
		if e.posted < 0 {
			e.posted = -r.request.length
		}
	}
	if err := a.complete(key, e, r.ref, r.file); err != nil {
		return err
	}
	if e.kind == Unchanged && e.content.length == 0 {
		a.deferVersion(key, e, r.ref)
	}
	body := digest("")
	if r.stores && e.kind == Changed && e.status == 200 && !e.truncated && q == (asked{}) {
		body = e.digest
	}
	a.index.add(r.file, key, e, body, r.end)
	until := int64(never)
	if e.kind == Changed {
		var err error
		if _, _, until, err = a.index.floor(key, e.time); err != nil {
			return err
		}
	}
	if r.moved || until != never { // failures after it name an earlier change
		return a.noteMoved(key)
	}
	return nil
}

// complete sets the fields of an entry that depend on other entries: the address of its content,
// and the time of the last change.
func (a *Archive) complete(key string, e *entry, ref reference, name string) error {
	if e.kind == Changed {
		return nil
	}
	e.file, _ = a.index.file(name)
	if e.kind == Unchanged {
		if err := a.resolve(key, e, ref); err != nil || e.kind == Changed {
			return err
		}
	}
	last, found, err := a.index.changedBefore(key, e)
	if found {
		e.prior, e.hasPrior = last.time, true
	}
	return err
}
