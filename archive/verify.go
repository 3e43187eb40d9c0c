package archive

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spinneret-go/spinneret/archive/internal/extsort"
	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// Fault is a damaged or inconsistent part of a file.
type Fault struct {
	File   string
	Offset int64  // -1 for the file as a whole
	Length int64  // of the unreadable part; 0 if unknown
	URL    string // "" if unknown
	Err    error
}

// Faults that callers may want to distinguish.
var (
	// errNoEntry is a fault that Options.Reindex repairs.
	errNoEntry   = errors.New("archive: the record has no index entry, or a different one")
	errPayload   = errors.New("archive: payload digest mismatch")
	errOther     = errors.New("archive: the index entry points to another record")
	errReference = errors.New("archive: the record refers to a missing body")
	errKept      = errors.New("archive: the file has changed since something was erased from it")
)

// Verify reads everything. It checks that records can be decompressed and have their digests. It
// compares the versions in the files with the entries of the index, both ways, and checks that the
// body of each version that refers to another record exists. It calls report with each fault as it
// is found, unless report is nil. An error means that the check was aborted.
//
// In files of other programs, payload digests are not checked: they do not agree on what a payload
// is. Nor are revisit records whose body was never in the archive, nor what tombstones in imported files say.
// An archive that is only read is checked as far as it was written when the call began.
//
// Verify takes 16 bytes of memory for each run of records that was ever erased. It waits for Erase and Import, and
// they and Close for it: report must not call any of them, but may cancel ctx. An erasure in another process at the
// same time looks like faults.
func (a *Archive) Verify(ctx context.Context, report func(Fault)) (Report, error) {
	a.imports.adding.Lock() // no erasure, and Close waits
	defer a.imports.adding.Unlock()
	if a.files.isClosed() {
		return Report{}, ErrClosed
	}
	f := a.follower
	a = a.now()
	v := &verifier{archive: a, finished: f.finished(), report: report, versions: map[uint32]int64{},
		ends: map[string]int64{}, holes: map[marked][]hole{}, kept: map[string]tombstone{},
		bodies: extsort.New(defaultMemory)}
	defer v.bodies.Close()
	ends := a.known()
	names, err := a.files.list()
	if err != nil {
		return v.checked, err
	}
	for _, name := range names { // the index may lack whole files
		name = strings.TrimSuffix(name, unfinished)
		if _, known := ends[name]; !known && !a.readOnly {
			ends[name] = 0
		}
	}
	for name, end := range ends {
		if ctx.Err() != nil {
			return v.checked, ctx.Err()
		}
		v.checked.Files++
		switch err := v.file(ctx, name, end); {
		case errors.Is(err, ErrIndex) || err != nil && a.stopped(ctx) != nil:
			return v.checked, err
		case err != nil: // what the disk cannot read may be read by another one
			v.fault(name, -1, "", err)
		}
	}
	if err := v.erasures(ctx); err != nil {
		return v.checked, err
	}
	if err := v.entries(ctx); err != nil {
		return v.checked, err
	}
	return v.checked, v.references(ctx)
}

type verifier struct {
	archive  *Archive
	finished map[string]bool // by the writer, if it is another archive
	report   func(Fault)
	checked  Report
	versions map[uint32]int64 // found in each file
	ends     map[string]int64
	bodies   *extsort.Sorter // addresses of bodies, and references to them
	holes    map[marked][]hole
	kept     map[string]tombstone // the last one of each file
}

// tombstone is what an erasure has left of a file.
type tombstone struct {
	in   string // file, whose name says when it was made, also if the clock was set back since
	mark string // of the records in the place of what went with it
	size int64
	sum  string // of the file without these
}

// marked is a file and the mark of an erasure.
type marked struct{ file, mark string }

// fault reports to the caller at once: a check of a large archive takes hours, and may be canceled.
func (v *verifier) fault(file string, offset int64, url string, err error) {
	f := Fault{File: file, Offset: offset, URL: url, Err: err}
	v.checked.add(f)
	if v.report != nil {
		v.report(f)
	}
}

// file reads a file, and compares it with the index up to end, the indexed length when the check
// began.
func (v *verifier) file(ctx context.Context, name string, end int64) error {
	v.ends[name] = end
	f, err := v.archive.openFile(name)
	if err != nil {
		v.fault(name, -1, "", err)
		return nil
	}
	defer f.Close()
	// Bytes after the indexed end of an open file of ours are a capture being written, and so they may be
	// for a reader if the file has been finished since. Elsewhere they are damage, or the index lacks them.
	size := end
	if !isOurs(name) || !f.open && (!v.archive.readOnly || v.finished[name]) {
		size = max(end, f.size)
	}
	if f.size < end {
		v.fault(name, f.size, "", fmt.Errorf("%w by %d bytes", errShorter, end-f.size))
		size = f.size
	}
	number, _ := v.archive.index.file(name)             // an import that was never indexed gets one now
	grown := isImport(name) || !isOurs(name) && end > 0 // another program may append to it
	var p pairs
	err = v.archive.walk(f, name, 0, size, func(rec *warc.Record) error {
		// A request at the end may be that of the last version.
		behind := rec.Offset > end || rec.Offset == end && rec.Type() != "request"
		if err := v.archive.stopped(ctx); err != nil || behind && grown {
			return err
		}
		v.checked.Records++
		return v.record(rec, name, number, &p)
	}, func(damage *warc.DamageError) error {
		v.fault(name, damage.Offset, "", damage)
		return ctx.Err()
	})
	if last := p.next(neighbor{}, nil); err == nil && last != nil {
		err = v.answered(last)
	}
	return err
}

// record compares a record with its payload digest, and a version with its entry once its request is known.
// Only read errors are returned; mismatches are faults.
func (v *verifier) record(rec *warc.Record, name string, number uint32, p *pairs) error {
	if rec.Type() == "metadata" && rec.Get(erasedField) != "" {
		return v.erasure(rec, name)
	}
	// The body is hashed even if the record has a digest: the two are compared.
	sum, want := sha1.New(), parseDigest(rec.Get("WARC-Payload-Digest"))
	found, known, err := p.read(rec, name, sum)
	if err != nil {
		return err
	}
	if found != nil && found.entry.length > 0 {
		found.entry.file = number
		if got := sha1Digest((*[sha1.Size]byte)(sum.Sum(nil))); found.stores && want != got &&
			want != "" && want[0] == 1 && isOurs(name) {
			v.fault(name, found.entry.offset, found.url, errPayload)
		}
	}
	if known != nil {
		return v.answered(known)
	}
	return nil
}

// answered compares a version with its entry. If its request is missing, it may have been indexed with it. In files of
// other programs that is a fault of its own: a URL has as many answers to different requests as their writers like.
func (v *verifier) answered(r *answered) error {
	key, _ := r.key()
	e := &r.entry
	stored, found, err := v.archive.index.value(key, e)
	if err == nil && !found && r.request.length == 0 && isOurs(r.file) {
		plain, _ := urlkey.Of(r.url)
		key, stored, found, err = v.archive.index.answer(plain, e)
	}
	switch {
	case err != nil:
		return err
	case !found || !stored.isOf(e):
		v.fault(r.file, e.offset, r.url, errNoEntry)
		return nil
	}
	v.versions[e.file]++
	if r.revisit && isOurs(r.file) && stored.body().length == 0 {
		return v.lost(key, &stored)
	}
	return v.addBody(key, &stored)
}

// erasure takes note of a tombstone, or of a record in the place of an erased one. Imports tell of the files of
// another archive, or whatever a stranger has written there.
func (v *verifier) erasure(rec *warc.Record, name string) error {
	mark := strings.Clone(rec.Get(erasedField))
	if isImport(name) || len(mark) != 2*markSize {
		return rec.Close()
	}
	if isHole(rec) {
		err := rec.Close()
		holes := v.holes[marked{name, mark}]
		if last := len(holes) - 1; last >= 0 && holes[last].Offset+holes[last].Length == rec.Offset {
			holes[last].Length += rec.Length
		} else {
			v.holes[marked{name, mark}] = append(holes, hole{rec.Offset, rec.Length})
		}
		return err
	}
	block, err := io.ReadAll(io.LimitReader(rec, MaxBody))
	if err != nil || !isOurs(name) {
		return err
	}
	for line := range strings.Lines(string(block)) {
		t := tombstone{in: ours.FindString(name), mark: mark} // without the prefix
		words := strings.SplitN(strings.TrimSpace(line), " ", 4)
		if words[0] != "rest:" || len(words) < 4 || t.in < v.kept[words[3]].in {
			continue
		}
		t.sum = words[1]
		if t.size, err = strconv.ParseInt(words[2], 10, 64); err == nil {
			v.kept[words[3]] = t
		}
	}
	return nil
}

// erasures checks that files from which something was erased have not changed otherwise.
func (v *verifier) erasures(ctx context.Context) error {
	for name, t := range v.kept {
		sum, err := v.archive.keptSum(ctx, name, t.size, v.holes[marked{name, t.mark}])
		if stopped := v.archive.stopped(ctx); stopped != nil {
			return stopped
		}
		if err != nil || sum != t.sum {
			v.fault(name, -1, "", cmp.Or(err, errKept))
		}
	}
	return nil
}

// lost reports a revisit record of ours whose body the index did not find: it existed once.
func (v *verifier) lost(key string, e *entry) error {
	err := v.archive.addContent(key, e)
	if err == nil && e.content.length == 0 {
		version := v.archive.describe(key, e, never)
		v.fault(version.Location.File, version.Location.Offset, version.URL, errReference)
	}
	return err
}

// isOf reports whether an entry is that of a record, ignoring fields that come from other records.
func (e *entry) isOf(record *entry) bool {
	known, other := *e, *record
	for _, e := range []*entry{&known, &other} {
		e.content, e.prior, e.hasPrior, e.posted = address{}, 0, false, 0
		if record.kind == Unchanged {
			e.kind, e.digest, e.media, e.truncated, e.coded = Unchanged, "", "", false, false
		}
	}
	return known == other
}

// addBody stores the address of a body, or of the body that a version refers to.
func (v *verifier) addBody(key string, e *entry) error {
	at := e.body()
	if at.length == 0 {
		return nil
	}
	item := binary.BigEndian.AppendUint32(nil, at.file)
	item = binary.BigEndian.AppendUint64(item, uint64(at.offset))
	if e.content.length == 0 {
		return v.bodies.Add(append(append(item, 0), e.digest...))
	}
	item = append(append(item, 1, byte(len(e.digest))), e.digest...)
	return v.bodies.Add(appendKey(item, key, e))
}

// references checks that the bodies that versions refer to exist: sorted by address, a body comes
// before all references to it.
func (v *verifier) references(ctx context.Context) error {
	if err := v.bodies.Sort(); err != nil {
		return fmt.Errorf("archive: verify: %w", err)
	}
	var at []byte // of the last body
	var held digest
	for item, err := range v.bodies.Items() {
		if err = cmp.Or(err, v.archive.stopped(ctx)); err != nil {
			return fmt.Errorf("archive: verify: %w", err)
		}
		target, tag, rest := item[:addressSize], item[addressSize], item[addressSize+1:]
		if tag == 0 {
			at, held = append(at[:0], target...), digest(rest)
			continue
		}
		c := cutter{rest, true}
		wanted := digest(c.bytes())
		var e entry
		key, err := e.cutKey(c.rest)
		if err != nil {
			return err
		}
		if !bytes.Equal(target, at) || wanted.contradicts(held) {
			v.fault(v.archive.index.name(e.file), e.offset, v.archive.describe(string(key), &e, never).URL, errReference)
		}
	}
	return nil
}

// entries counts the entries of each file, and follows them if they outnumber the versions in it.
func (v *verifier) entries(ctx context.Context) error {
	counts := map[uint32]int64{}
	for l, err := range v.archive.index.scan(urlkey.All) {
		if err = cmp.Or(err, v.archive.stopped(ctx)); err != nil {
			return err
		}
		v.checked.Versions++
		counts[l.entry.file]++
	}
	for number, n := range counts {
		if n != v.versions[number] {
			return v.follow(ctx, counts)
		}
	}
	return nil
}

// follow reads the records of the entries, in files whose numbers of entries and versions differ,
// to find the surplus entry. This is random access, and hence not done for all files.
func (v *verifier) follow(ctx context.Context, counts map[uint32]int64) error {
	for l, err := range v.archive.index.scan(urlkey.All) {
		if err = cmp.Or(err, v.archive.stopped(ctx)); err != nil {
			return err
		}
		loc := v.archive.location(l.entry.address())
		if counts[l.entry.file] == v.versions[l.entry.file] ||
			loc.Offset+loc.Length > v.ends[loc.File] {
			continue // correct, or newer than the part that was read
		}
		if err := v.entry(&l.entry, l.url, loc); err != nil {
			v.fault(loc.File, loc.Offset, v.archive.describe(l.url, &l.entry, never).URL, err)
		}
	}
	return nil
}

// entry checks that an entry points to a record of its URL.
func (v *verifier) entry(e *entry, url string, loc Location) error {
	rec, err := v.archive.Read(loc)
	if err != nil {
		return err
	}
	found, target, ok, err := entryOf(rec, io.Discard)
	if err := errors.Join(err, rec.Close()); err != nil {
		return err
	}
	plain, _ := cutAsked(url)
	if key, _ := urlkey.Of(target.url); !ok || key != plain || found.time != e.time {
		return errOther
	}
	return nil
}

// reindex opens an archive with [Options.Reindex]. What the old index knew and the files lack is
// reported this once.
func reindex(dir string, files vfs.FS, opts Options) (*Archive, error) {
	a, err := openAnew(dir, files, opts)
	if err == nil {
		a.index.forget()
	}
	return a, err
}

// openAnew opens an archive with a new index.
func openAnew(dir string, files vfs.FS, opts Options) (*Archive, error) {
	a, err := openArchive(dir, files, opts, true)
	if err == nil {
		missing := a.Missing()
		for name, f := range a.index.indexedFiles() {
			if f.known > 0 && isImport(name) && !a.imports.has(name) && !slices.Contains(missing, name) {
				missing = append(missing, name) // somebody has removed it from the list
			}
		}
		slices.Sort(missing)
		a.found.Missing = missing
	}
	return a, err
}
