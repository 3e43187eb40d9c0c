package archive

import (
	"bytes"
	"cmp"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/internal/durable"
)

// The plan of an erasure is written here before anything changes, and removed when it is complete. It is a
// promise: as long as it is there, or may be, the erasure will be completed, and captures refer to nothing
// that it selects. What has to go is decided only once: half erased, the archive would say something else.
const eraseName = "erase.plan"

// oldEraseName is that of the plans of another version, which is the only one that knows their files.
const oldEraseName = "erase.json"

// eraseMagic begins that file.
const eraseMagic = "SPNERAS2"

// commit completes the file of moved records, and then writes the plan.
func (e *erasure) commit() error {
	if err := e.moves.complete(); err != nil {
		return err
	}
	var data bytes.Buffer
	if err := gob.NewEncoder(&data).Encode(e); err != nil { // names need not be UTF-8, as JSON would have it
		return err
	}
	return durable.Replace(e.archive.fs, eraseName, durable.Seal(eraseMagic, data.Bytes()))
}

// resumeErase completes an erasure that was begun.
func (a *Archive) resumeErase(ctx context.Context) error {
	if err := a.index.complete(); err != nil {
		return err
	}
	data, err := durable.ReadFile(a.fs, eraseName)
	if errors.Is(err, fs.ErrNotExist) {
		return a.forgetErase()
	}
	e := &erasure{archive: a}
	if err == nil {
		data, err = durable.Unseal(eraseName, 0, eraseMagic, data)
	}
	if err == nil {
		err = gob.NewDecoder(bytes.NewReader(data)).Decode(e)
	}
	if err == nil {
		e.matcher, err = e.Selection.matcher()
	}
	if err == nil {
		a.erasing.Store(e.matcher)
		if err = e.intact(ctx); err == nil {
			err = e.run(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("archive: %s: complete erasure: %w", eraseName, err)
	}
	return nil
}

var errChanged = errors.New("the file has changed since the erasure was decided")

// intact returns an error if a file is not as it was when the erasure was decided: where the records were that
// have to go, there may be others.
func (e *erasure) intact(ctx context.Context) error {
	for name, holes := range e.Holes {
		sum, err := e.archive.keptSum(ctx, name, e.Sizes[name], holes)
		if err == nil && sum != e.Sums[name] {
			err = errChanged
		}
		if err != nil {
			return fmt.Errorf("%w: bring %s back as it was, or remove the plan, open the archive with "+
				"Options.Reindex and erase again", err, name)
		}
	}
	return nil
}

// forgetErase makes sure that the removal of an erasure is on disk, before captures may refer again to
// what it selected.
func (a *Archive) forgetErase() error {
	if a.erasing.Load() == nil {
		return nil
	}
	if err := a.fs.Sync(); err != nil {
		return err
	}
	a.erasing.Store(nil)
	return nil
}

// sweepErase removes what erasures have left behind, now that none is known. What it cannot be sure of
// is kept: a file whose records are indexed, or that we cannot have written.
func (a *Archive) sweepErase() error {
	names, err := a.fs.List()
	if err != nil {
		return fmt.Errorf("archive: list files: %w", err)
	}
	for _, name := range names {
		of := strings.TrimSuffix(name, filepath.Ext(name))
		left := false
		switch filepath.Ext(name) {
		case moving:
			state, _ := a.index.state(of)
			left = isOurs(of) && state.end == 0
		case erasing:
			final := strings.TrimSuffix(of, unfinished)
			left = isWARC(of) && (slices.Contains(names, of) || slices.Contains(names, final))
		}
		if !left {
			continue
		}
		if err := a.fs.Remove(name); err != nil {
			return fmt.Errorf("archive: remove %s: %w", name, err)
		}
	}
	return nil
}

// settle finishes the current file, waits until no append is older than that, and calls measure before
// another one begins.
func (f *files) settle(measure func() error) error {
	var idle []*encoder
	for range cap(f.encoders) {
		idle = append(idle, <-f.encoders)
	}
	defer func() {
		for _, e := range idle {
			f.encoders <- e
		}
	}()
	// Sums of files are taken next: what a failed sync has left in doubt may not be there any more after a
	// power failure.
	if err := cmp.Or(f.finish(), f.force()); err != nil {
		return err
	}
	return measure()
}

// measure notes the files in the directory, and their sizes. A file of ours that a disk failure left
// unfinished has a torn end, which Open will cut off: it ends with its last capture. But if Open could not
// read all of it, there may be others behind.
func (e *erasure) measure() error {
	a := e.archive
	names, err := a.files.list()
	e.Sizes = map[string]int64{}
	for _, name := range names {
		name = strings.TrimSuffix(name, unfinished)
		f, failed := a.openFile(name)
		if failed != nil {
			return failed
		}
		if e.Sizes[name] = f.size; f.open && isOurs(name) {
			state, _ := a.index.state(name)
			e.Sizes[name] = state.end
			failed = a.onlyTorn(f, name, state.end)
		}
		if err := errors.Join(failed, f.Close()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return err
}

var errBehind = errors.New("it has captures that were not indexed, since the disk could not read it: open the " +
	"archive again")

// onlyTorn returns an error if there may be captures in the torn end of a file.
func (a *Archive) onlyTorn(f *source, name string, from int64) error {
	return a.walk(f, name, from, f.size, func(rec *warc.Record) error {
		kind := rec.Type()
		if err := rec.Close(); err != nil || kind == "request" || kind == "warcinfo" {
			return err
		}
		return errBehind
	}, func(*warc.DamageError) error { return nil })
}
