package archive

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spinneret-go/spinneret/internal/durable"
)

// An erasure is written here before anything changes, and removed when it is complete. It is a promise:
// as long as it is there, or may be, the erasure will be completed, and captures refer to nothing that it
// selects. What is appended after it was written is in none of its Files, and never erased by it.
const eraseName = "erase.json"

// eraseVersion is the version of that file.
const eraseVersion = 2

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
		err = json.Unmarshal(data, e)
	}
	if err == nil && e.Version != eraseVersion {
		err = fmt.Errorf("%w, whose erasure has to be completed by that", ErrVersion)
	}
	if err == nil {
		e.matcher, err = e.Selection.matcher()
	}
	if err == nil {
		a.erasing.Store(e.matcher)
		e.known = exists(a.fs, e.File+moved) || exists(a.fs, e.File)
		err = e.run(ctx)
	}
	if err != nil {
		return fmt.Errorf("archive: %s: complete erasure: %w", eraseName, err)
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
			left = isOurs(of)
		case moved:
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

// settle finishes the current file, waits until no append is older than that, and returns the names
// and sizes of all files that were there then.
func (f *files) settle(open func(name string) (*source, error)) (map[string]int64, error) {
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
		return nil, err
	}
	names, err := f.list()
	if err != nil {
		return nil, err
	}
	sizes := map[string]int64{}
	for _, name := range names {
		name = strings.TrimSuffix(name, unfinished)
		file, err := open(name)
		if err != nil {
			return nil, err
		}
		sizes[name] = file.size
		if err := file.Close(); err != nil {
			return nil, err
		}
	}
	return sizes, nil
}
