package archive

import (
	"bytes"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// Fault is something that [Archive.Verify] found to be wrong.
type Fault struct {
	File   string
	Offset int64  // -1 for the file as a whole
	URL    string // "" if it is not known
	Err    error
}

// Checked counts what [Archive.Verify] has looked at.
type Checked struct {
	Files   int
	Records int64
	Entries int64 // of the index
	Faults  int64
}

// errNoEntry is a fault that Repair mends.
var errNoEntry = errors.New("archive: not in the index, or not as it is")

// Verify reads everything: that records can be decompressed and have their digests, that each
// version in the files is in the index, and that each entry of the index leads to its version. It
// calls report with each fault. An error means that it could not go on.
//
// The payload digests of files that other programs wrote are not checked: they do not agree on what
// a payload is.
func (a *Archive) Verify(ctx context.Context, report func(Fault)) (Checked, error) {
	if err := a.flush(); err != nil {
		return Checked{}, err
	}
	v := &verifier{archive: a, report: report, versions: map[uint32]int64{}, ends: map[string]int64{}}
	for name, end := range a.known() {
		if ctx.Err() != nil {
			return v.checked, ctx.Err()
		}
		v.checked.Files++
		if err := v.file(ctx, name, end); err != nil {
			return v.checked, err
		}
	}
	return v.checked, v.entries(ctx)
}

type verifier struct {
	archive  *Archive
	report   func(Fault)
	checked  Checked
	versions map[uint32]int64 // found in each file
	ends     map[string]int64
}

// fault tells the caller at once: a check of a large archive takes hours, and may be ended before.
func (v *verifier) fault(file string, offset int64, url string, err error) {
	v.checked.Faults++
	v.report(Fault{file, offset, url, err})
}

// file reads a file, and compares it with the index as far as it was indexed when the check began.
func (v *verifier) file(ctx context.Context, name string, end int64) error {
	v.ends[name] = end
	f, err := v.archive.openFile(name)
	if err != nil {
		v.fault(name, -1, "", err)
		return nil
	}
	defer f.Close()
	r, err := v.archive.reader(name)
	if err != nil {
		v.fault(name, -1, "", err)
		return nil
	}
	defer r.close()
	number, _ := v.archive.index.file(name) // an import that was never indexed gets one now
	if err := v.archive.believe(r, f, name, 0, max(end, finalSize(f, name))); err != nil {
		return err
	}
	for rec, err := range r.warc.Records() {
		var damage *warc.DamageError
		if err == nil && rec.Offset < end {
			v.checked.Records++
			err = v.record(rec, name, number)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &damage):
			v.fault(name, damage.Offset, "", err)
		case err != nil:
			return err
		}
	}
	return nil
}

// finalSize returns the size of a file, unless it is one of ours that is being written: what lies
// at the end of that is a capture that is just coming in. Damage at the end of others is not
// indexed, but is damage.
func finalSize(f *os.File, name string) int64 {
	info, err := f.Stat()
	if err != nil || ours.MatchString(name) && strings.HasSuffix(f.Name(), unfinished) {
		return 0
	}
	return info.Size()
}

// record compares a record with its own payload digest, and with the entry that would be made of it
// now. An error is one of reading; what is merely wrong is a fault.
func (v *verifier) record(rec *warc.Record, name string, number uint32) error {
	// The body is hashed even where the record brings a digest: the two are compared.
	sum := sha1.New()
	e, url, ok, err := entryOf(rec, sum)
	if err != nil || !ok {
		return err
	}
	kind, want := rec.Type(), parseDigest(rec.Get("WARC-Payload-Digest"))
	offset := rec.Offset
	if err := rec.Close(); err != nil || rec.Length == 0 {
		return err
	}
	if got := sha1Digest((*[sha1.Size]byte)(sum.Sum(nil))); kind == "response" && want != got &&
		want != "" && want[0] == 1 && ours.MatchString(name) {
		v.fault(name, offset, url, errors.New("archive: the payload does not have its digest"))
	}
	e.length, e.file = rec.Length, number
	key, long := urlKey(url)
	e.url = long
	stored, err := v.archive.index.value(key, &e)
	if err == nil && !bytes.Equal(stored, e.appendValue(nil)) {
		v.fault(name, offset, url, errNoEntry)
	} else if err == nil {
		v.versions[number]++
	}
	return err
}

// entries counts the entries of each file. Only where there are more than versions, each is
// followed.
func (v *verifier) entries(ctx context.Context) error {
	counts := map[uint32]int64{}
	for l, err := range v.archive.index.forward() {
		if err != nil {
			return err
		}
		v.checked.Entries++
		counts[l.entry.file]++
	}
	for number, n := range counts {
		if n != v.versions[number] {
			return v.follow(ctx, counts)
		}
	}
	return nil
}

// follow reads what the entries lead to, of the files whose numbers of entries and versions differ.
// Which entry is one too many cannot be told otherwise. This is random access, and hence not done
// for all.
func (v *verifier) follow(ctx context.Context, counts map[uint32]int64) error {
	for l, err := range v.archive.index.forward() {
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		loc := v.archive.location(&l.entry)
		if counts[l.entry.file] == v.versions[l.entry.file] || loc.Offset+loc.Length > v.ends[loc.File] {
			continue // nothing is wrong, or it is newer than what was read
		}
		if err := v.lead(&l.entry, l.url, loc); err != nil {
			v.fault(loc.File, loc.Offset, v.archive.describe(l.url, &l.entry, never).URL, err)
		}
	}
	return nil
}

// lead makes sure that an entry leads to a record of its URL.
func (v *verifier) lead(e *entry, url string, loc Location) error {
	rec, err := v.archive.Read(loc)
	if err != nil {
		return err
	}
	defer rec.Close()
	found, target, ok, err := entryOf(rec.Record, io.Discard)
	if err != nil {
		return err
	}
	if key, _ := urlKey(target); !ok || key != url || found.time != e.time {
		return errors.New("archive: the index leads to something else")
	}
	return nil
}

// Repair makes a new index from the WARC files in a directory and those that were imported. No one
// may have the archive open. The old one is kept beside it as index.bolt.old. The files themselves
// are not touched, but for the ends of those whose writer has died: see [Open].
func Repair(dir string, opts Options) (Report, error) {
	path := filepath.Join(dir, indexName)
	// What the old index knew is only used to tell what is gone. It may be what is broken.
	known := map[string]int64{}
	if x, err := openIndex(path, lockWait); err == nil {
		known = x.indexedFiles()
		err = x.close()
		if err != nil {
			return Report{}, fmt.Errorf("archive: repair: %w", err)
		}
	} else if errors.Is(err, ErrLocked) {
		return Report{}, err
	}
	if err := os.Rename(path, path+".old"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return Report{}, fmt.Errorf("archive: repair: %w", err)
	}
	a, err := Open(dir, opts)
	if err != nil {
		return Report{}, err
	}
	a.found.Missing = a.Missing()
	now := a.known()
	for name := range known {
		if _, found := now[name]; !found {
			a.found.Missing = append(a.found.Missing, name)
		}
	}
	slices.Sort(a.found.Missing)
	return a.found, a.Close()
}

// value returns the value of the entry of a URL with the time and address of e, or nil.
func (x *index) value(url string, e *entry) (value []byte, err error) {
	err = x.view(func(c *bbolt.Cursor) error {
		waiting := x.pending[url]
		if at, found := slices.BinarySearchFunc(waiting, *e, compareEntries); found {
			value = waiting[at].appendValue(nil)
			return nil
		}
		key := appendKey(nil, url, e)
		if found, stored := c.Seek(key); bytes.Equal(found, key) {
			value = bytes.Clone(stored)
		}
		return nil
	})
	return value, err
}

// indexedFiles returns up to where each file is indexed.
func (x *index) indexedFiles() map[string]int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	ends := map[string]int64{}
	for name, f := range x.files {
		ends[name] = f.end
	}
	return ends
}
