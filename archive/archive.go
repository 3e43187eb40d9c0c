package archive

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"
)

// What callers may want to tell apart.
var (
	// ErrClosed is returned by every method that needs the archive open, once it is closed.
	ErrClosed = errors.New("archive: closed")

	// ErrInvalid is wrapped by the error for a [Capture] that cannot be written as a valid record.
	// Appending the same capture again cannot help.
	ErrInvalid = errors.New("archive: invalid capture")

	// ErrLocked is returned by [Open] while another process has the archive open.
	ErrLocked = errors.New("archive: another process has it open")

	// ErrIndex is wrapped when the index cannot be used. [Repair] makes a new one.
	ErrIndex = errors.New("archive: index")

	// ErrNotFound is returned where there is no version of a URL at a time.
	ErrNotFound = errors.New("archive: no such version")
)

// lockWait is how long Open waits for another process that is about to end.
const lockWait = time.Second

// Archive is a directory of WARC files that grows, and an index of them. Its methods are safe for
// concurrent use.
type Archive struct {
	dir         string
	index       *index
	files       *files
	keepRepeats bool
	salvage     bool
	found       Report // by Open
	closing     sync.Once
	imports     imports
	pool        sync.Pool // of *warc.Reader
	dicts       sync.Map  // dictionaries by the name of the file, and each once by its hash
}

// Location tells where the response record of a capture lies.
type Location struct {
	// File is the name of the file in the directory. As long as the file is being written the name
	// on disk has ".open" after it. Of an imported file it is the absolute path.
	File string

	// Offset and Length delimit one gzip member or zstd frame, which holds the record and nothing
	// else.
	Offset, Length int64
}

// Stats counts what an [Archive] has done since it was opened.
type Stats struct {
	Files    int64 // begun
	Captures int64 // appended
	Revisits int64 // of the captures, those that repeat a version before
	Failed   int64 // captures that were valid but could not be written
	Records  int64 // of the captures
	RawBytes int64 // of these records
	Bytes    int64 // of these records, compressed
}

// Open makes the directory if it is missing, and checks that files can be made in it. It brings the
// index up to date with all WARC files there, whoever wrote them: reading what is new takes as long
// as a disk and a decompressor take for it. What a crash left of a capture at the end of a file is
// cut off, see Durability in the package comment.
func Open(dir string, opts Options) (*Archive, error) {
	s, err := opts.settle()
	if err != nil {
		return nil, err
	}
	d, err := makeDir(dir)
	if err != nil {
		return nil, openError(err)
	}
	x, err := openIndex(d.path(indexName), lockWait)
	if err != nil {
		return nil, fmt.Errorf("archive: open %s: %w", filepath.Join(dir, indexName), err)
	}
	a := &Archive{dir: string(d), index: x, keepRepeats: opts.KeepRepeats,
		salvage: opts.Salvage}
	if err = a.recover(d); err == nil {
		a.files, err = newFiles(d, s)
	}
	if err != nil {
		_ = x.close() // the first error says more
		return nil, err
	}
	return a, nil
}

// openError adds what to do. The cause names the path.
func openError(err error) error {
	return fmt.Errorf("archive: open: %w: give a directory in which this process may make files",
		err)
}

// Append writes the records of one capture and returns where its response is. When it returns nil
// the records have been handed to the operating system, and the capture can be found.
//
// A 304, and a 200 whose body is that of the version before it, become a revisit record, see
// [Options.KeepRepeats].
//
// After an error the capture is not in the archive, unless the disk refused even to cut a file
// back, which then keeps its name that ends in ".open". The error wraps [ErrInvalid], [ErrClosed]
// or the cause, such as syscall.ENOSPC; in the last case the same capture can be appended again as
// soon as the cause is mended.
func (a *Archive) Append(c Capture) (Location, error) {
	if err := c.check(); err != nil {
		return Location{}, err
	}
	n := a.note(c)
	loc, err := a.files.append(&n.capture, n)
	if err == nil && a.index.full() {
		// The capture is safe: what fails here is told by the next Sync, and tried again.
		_ = a.files.flush(a.index.commit)
	}
	return loc, err
}

// Sync forces to disk what was appended, and the index, for a caller who is about to note elsewhere
// that these captures are kept. Appends wait meanwhile.
//
// An error means that captures appended since the last Sync that returned nil may be lost in a
// power cut, for good: no later Sync makes up for them. It is told once.
func (a *Archive) Sync() error { return a.files.sync(a.index.commit) }

// Stats returns the counts as of now. They fit together: none is ahead of another.
func (a *Archive) Stats() (stats Stats) {
	a.files.count(func(s *Stats) { stats = *s })
	return stats
}

// Files returns the sorted names of all WARC files in the directory, whoever wrote them, as they
// are on disk now: the current file and those of failed disks end in ".open". Files of one prefix
// sort by the time at which they were begun. The absolute paths of imported files come last,
// whether they are there or not.
func (a *Archive) Files() ([]string, error) {
	names, err := a.files.list()
	if err != nil {
		return nil, err
	}
	return append(names, a.imports.list()...), nil
}

// Close finishes the current files and writes the index. Even if it fails the files are closed and
// hold every capture that was acknowledged, but one may keep the name that ends in ".open". Closing
// again does nothing.
func (a *Archive) Close() (err error) {
	a.closing.Do(func() {
		if err = a.files.close(); err == nil {
			err = a.index.commit()
		}
		if closed := a.index.close(); err == nil && closed != nil {
			err = fmt.Errorf("archive: close: %w", closed)
		}
	})
	return err
}
