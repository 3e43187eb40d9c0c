package archive

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// The plan of an erasure is written here before anything changes, and removed when it is complete. It is a
// promise: as long as it is there, or may be, the erasure will be completed, and captures refer to nothing
// that it selects. What has to go is decided only once: half erased, the archive would say something else.
const eraseName = "erase.plan"

// eraseMagic begins that file.
const eraseMagic = "SPNERAS2"

// erasing ends the name of a file that replaces one.
const erasing = ".erasing"

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

// intact returns an error if a file is not as it was when the erasure was decided. It comes before the first
// step: whoever removes the plan has to find what moves in one place only.
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

// sweepErase removes what erasures have left behind, now that none is known: files of moved records, and copies
// of files that are there themselves. One whose records are indexed, or that we cannot have written, is kept.
func (a *Archive) sweepErase() error {
	names, err := a.fs.List()
	if err != nil {
		return fmt.Errorf("archive: list files: %w", err)
	}
	for _, name := range names {
		of, moved := strings.CutSuffix(name, moving)
		copied, erased := strings.CutSuffix(name, erasing)
		if !(moved && isOurs(of) && a.index.endOf(of) == 0) && !(erased && isWARC(copied) && slices.Contains(names, copied)) {
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

var (
	errUnfinished = errors.New("it is not finished, and may change: open the archive again, wait for the program that " +
		"writes the file, or move it away")
	errChanged = errors.New("the file has changed since the erasure began: another program may be writing to it")
)

// measure notes the files in the directory, and their sizes.
func (e *erasure) measure() error {
	names, err := e.archive.files.list()
	e.Sizes = map[string]int64{}
	for _, name := range names {
		if strings.HasSuffix(name, unfinished) {
			return fmt.Errorf("%s: %w", name, errUnfinished)
		}
		f, err := e.archive.openFile(name)
		if err != nil {
			return err
		}
		e.Sizes[name] = f.size
		_ = f.Close() // it was not written to
	}
	return err
}

// open opens a file, which has to be as long as it was when the erasure began: another program may be writing to
// it. An import may have grown since it was indexed.
func (e *erasure) open(name string) (*source, error) {
	f, err := e.archive.openFile(name)
	if err != nil {
		return nil, err
	}
	size, listed := e.Sizes[name]
	switch {
	case listed && f.size != size:
		err = errChanged
	case !listed && f.size < e.archive.index.endOf(name):
		err = errShorter
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// rewrite replaces a file by one with holes, unless it is not as it was when the erasure was decided: where the
// records were that have to go, there may be others. What was appended since is kept.
func (e *erasure) rewrite(name string) error {
	f, err := e.archive.openFile(name)
	if err != nil {
		return fmt.Errorf("%w: bring %s back", err, name)
	}
	defer f.Close()
	fill, err := e.filler(f, name, f.size)
	if err != nil {
		return err
	}
	return durable.ReplaceWith(e.archive.fs, name, name+erasing, func(out vfs.File) error {
		w, sum, at := bufio.NewWriterSize(io.NewOffsetWriter(out, 0), 1<<20), sha256.New(), int64(0)
		for _, h := range append(e.Holes[name], hole{Offset: e.Sizes[name]}) {
			_, err := io.Copy(io.MultiWriter(w, sum), io.NewSectionReader(f, at, h.Offset-at))
			if err == nil && h.Length > 0 {
				err = fill.hole(w, f, h)
			}
			if err != nil {
				return err
			}
			at = h.Offset + h.Length
		}
		if hex.EncodeToString(sum.Sum(nil)) != e.Sums[name] {
			return fmt.Errorf("%w: bring %s back as it was, or remove the plan, open the archive with Options.Reindex "+
				"and erase again", errChanged, name)
		}
		_, err := io.Copy(w, io.NewSectionReader(f, at, f.size-at))
		return cmp.Or(err, w.Flush())
	})
}

// keptSum returns the digest of a file without holes, none of which may overlap.
func (a *Archive) keptSum(ctx context.Context, name string, size int64, holes []hole) (string, error) {
	f, err := a.openFile(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	at := int64(0)
	for _, h := range append(holes[:len(holes):len(holes)], hole{Offset: size}) {
		if err := a.stopped(ctx); err != nil {
			return "", err
		}
		n := h.Offset - at
		if got, err := io.Copy(sum, io.NewSectionReader(f, at, n)); err != nil || got != n {
			return "", errors.Join(err, fmt.Errorf("%s: %d of %d bytes", name, at+got, size))
		}
		at = h.Offset + h.Length
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
