package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// Errors that callers may want to distinguish.
var (
	// ErrClosed is returned by methods that need an open archive once it is closed.
	ErrClosed = errors.New("archive: closed")

	// ErrInvalid is wrapped by the error for a [Capture] that cannot be written as a valid record.
	// Appending the same capture again fails again.
	ErrInvalid = errors.New("archive: invalid capture")

	// ErrReadOnly is returned by methods that would change an archive open with Options.ReadOnly.
	ErrReadOnly = errors.New("archive: open for reading only")

	// ErrLocked is returned by [Open] while another process has the archive open.
	ErrLocked = errors.New("archive: another process has it open")

	// ErrIndex is wrapped when the index is damaged. It is only a cache, which [Options.Reindex] makes anew from
	// the WARC files, and so does the next [Open] of an archive that was written when the damage was found.
	// Until then look-ups and Erase may fail, captures can still be appended, and the index gets one more file
	// for each 131,072 captures or 512 MB.
	ErrIndex = errors.New("archive: index")

	// ErrVersion is wrapped when the index is sound, but was written by another version of this
	// package. Options.Reindex replaces it.
	ErrVersion = durable.ErrVersion

	// ErrNotFound is returned if a URL has no version at a time.
	ErrNotFound = errors.New("archive: no such version")
)

// Archive is a directory of WARC files that grows, and an index of them. Its methods are safe for
// concurrent use.
type Archive struct {
	*environment
	locked   io.Closer // nil if it is only read
	index    *index    // nil if it is only read, see follower
	files    *files
	follower *follower               // nil if it is written
	found    Report                  // by Open
	deferred []deferred              // used by Open, and with imports.adding held
	weight   int                     // of deferred, in bytes
	moved    map[string]bool         // keys of versions that an erasure has moved; like deferred
	erasing  atomic.Pointer[matcher] // of an erasure that is not complete
	closing  sync.Once
}

// environment is what an archive shares with its views and with the archive that a new index is made for.
type environment struct {
	dir      string // the absolute path
	fs       vfs.FS // of that directory
	share    bool
	readOnly bool
	redact   func(field string, secret bool) bool
	finished func(path string)
	imports  imports
	pool     sync.Pool // of *warc.Reader
	dicts    dicts
}

func newEnvironment(dir string, files vfs.FS, opts Options) *environment {
	e := &environment{dir: dir, fs: files, share: opts.Share, redact: opts.Redact,
		finished: opts.Finished}
	if e.redact == nil {
		e.redact = func(_ string, secret bool) bool { return secret }
	}
	return e
}

// Location is the position of the response record of a capture.
type Location struct {
	// File is the name of the file in the directory. While the file is being written, its name on
	// disk ends in ".open". For an imported file it is the absolute path.
	File string

	// Offset and Length delimit one gzip member or zstd frame, which contains only the record.
	Offset, Length int64
}

// Stats counts what an [Archive] has done since it was opened.
type Stats struct {
	Captures int64 // appended
	Revisits int64 // captures whose body is in another record
	Bytes    int64 // of the records of the captures, compressed

	// Index is the error of the last background step of the index, such as a merge on a full disk;
	// nil if it succeeded. No capture is lost by it, but lookups become slower. Of an archive that is only
	// read, it is why the view is older than the files, or lacks the end of one.
	Index error

	// IndexDamage is the damage because of which the index was made anew by Open, or will be by the next
	// one; nil if there was none.
	IndexDamage error
}

// Open creates the directory if it is missing, and checks that it is writable. It brings the index
// up to date with all WARC files there, including those of other programs: new data is read at the
// speed of the disk and the decompressor. An incomplete capture that a crash left at the end of a
// file is cut off, see Durability in the package comment. With [Options.ReadOnly] nothing is
// created or cut.
//
// A file of another program may grow between two calls. If it ended behind a response whose request was
// not written yet, the response stays an answer to GET: [Archive.Verify] reports it if that is wrong, and
// [Options.Reindex] corrects it.
func Open(dir string, opts Options) (*Archive, error) {
	if _, err := opts.validate(); err != nil {
		return nil, err
	}
	if dir == "" {
		return nil, errors.New("archive: open: no directory given")
	}
	if opts.ReadOnly {
		return openReadOnly(dir, opts)
	}
	path, files, err := openDirectory(dir)
	if err != nil {
		return nil, openError(err)
	}
	if opts.Reindex {
		return reindex(path, files, opts)
	}
	return openOrRebuild(path, files, opts)
}

// openOrRebuild makes a new index if the old one is damaged: it is only a cache.
func openOrRebuild(dir string, files vfs.FS, opts Options) (*Archive, error) {
	a, err := openArchive(dir, files, opts, false)
	if !errors.Is(err, ErrIndex) {
		return a, err
	}
	damage := err
	if a, err = openAnew(dir, files, opts); err == nil {
		a.index.mu.Lock()
		defer a.index.mu.Unlock()
		a.index.damage = damage
	}
	return a, err
}

// openArchive opens the archive in an existing directory. With anew it makes a new index, which
// replaces the old one.
func openArchive(dir string, files vfs.FS, opts Options, anew bool) (_ *Archive, err error) {
	s, err := opts.validate()
	if err != nil {
		return nil, err
	}
	a := &Archive{environment: newEnvironment(dir, files, opts)}
	if a.locked, err = lock(files); err != nil {
		if errors.Is(err, ErrLocked) {
			return nil, fmt.Errorf("archive: open %s: %w", dir, err)
		}
		return nil, openError(err)
	}
	defer func() {
		if err != nil { // more specific than errors of these calls
			if a.index != nil {
				_ = a.index.close(false)
			}
			_ = a.locked.Close()
		}
	}()
	if exists(files, "erase.json") {
		return nil, fmt.Errorf("archive: open %s: erase.json: %w: complete the erasure with that", dir, ErrVersion)
	}
	how := writeIndex
	if anew {
		how = newIndex
	}
	if a.index, err = openIndex(files, how); err != nil {
		return nil, fmt.Errorf("archive: open %s: %w", dir, err)
	}
	if err = a.recover(); err != nil {
		return nil, fmt.Errorf("archive: open: %w", err)
	}
	if a.files, err = newFiles(files, s); err != nil {
		return nil, err
	}
	if a.finished != nil {
		a.files.finished = a.announce
	}
	a.index.mu.Lock()
	a.index.force = a.files.force
	a.index.mu.Unlock()
	if err = a.resumeErase(context.Background()); err == nil {
		err = a.sweepErase()
	}
	return a, err
}

// announce tells that a file is finished.
func (a *Archive) announce(name string) {
	if a.finished != nil {
		a.finished(filepath.Join(a.dir, name))
	}
}

// openError adds the remedy. The cause names the path.
func openError(err error) error {
	return fmt.Errorf("archive: open: %w: give a directory in which this process may create files",
		err)
}

// Append writes the records of one capture and returns the location of its response. When it
// returns nil, the records have been passed to the operating system, and the capture can be found.
//
// A 304, or a 200 with the same body as the previous version, becomes a revisit record.
//
// After an error the capture is not in the archive, unless truncating the file failed too; that
// file then keeps its ".open" name. The error wraps [ErrInvalid], [ErrClosed] or the cause, such as
// syscall.ENOSPC. In the last case the same capture can be appended again once the cause is fixed.
func (a *Archive) Append(c Capture) (Location, error) {
	if err := c.check(); err != nil {
		return Location{}, err
	}
	switch {
	case a.files.isClosed():
		return Location{}, ErrClosed
	case a.readOnly:
		return Location{}, ErrReadOnly
	}
	if err := a.index.admit(); err != nil {
		return Location{}, err
	}
	n := a.pending(c)
	if err := n.capture.checkHeads(); err != nil {
		return Location{}, err
	}
	return a.files.append(&n.capture, n)
}

// Sync forces all captures appended before the call to disk. Call it before recording elsewhere
// that they are stored. Other goroutines may append during the call.
//
// An error means that a power failure may lose captures appended since the last Sync that returned
// nil. No later Sync makes up for them: each returns the error, until the archive is opened again.
// Meanwhile the index is not written, so that Append will fail, too.
//
// If that succeeds, Sync also returns the error of the last background step of the index, once.
func (a *Archive) Sync() error {
	if a.files.isClosed() {
		return ErrClosed
	}
	if a.readOnly {
		return nil
	}
	if err := a.files.force(); err != nil {
		return err
	}
	return a.index.report()
}

// Stats returns a consistent snapshot of the counts.
func (a *Archive) Stats() (stats Stats) {
	a.files.count(func(s *Stats) { stats = *s })
	x := a.now().index
	x.mu.RLock()
	stats.Index, stats.IndexDamage = x.failed, x.damage
	x.mu.RUnlock()
	if f := a.follower; f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		stats.Index = f.failed
		for name, err := range f.unread {
			stats.Index = errors.Join(stats.Index, fmt.Errorf("archive: %s: %w", name, err))
		}
	}
	return stats
}

// Files returns the sorted names of all WARC files in the directory, including those of other
// programs, as they are on disk now. The current file, and files that a disk failure left
// unfinished, end in ".open". Files of one prefix sort by creation time. The absolute paths of
// imported files come last, whether the files exist or not.
func (a *Archive) Files() ([]string, error) {
	names, err := a.files.list()
	if err != nil {
		return nil, err
	}
	if f := a.follower; f != nil {
		_ = f.refresh(a) // OpenFile has to know them; after an error, it returns one
	}
	return append(names, a.now().imports.list()...), nil
}

// stopped returns an error if nobody waits for a long call any more.
func (a *Archive) stopped(ctx context.Context) error {
	if a.files.isClosed() {
		return ErrClosed
	}
	return ctx.Err()
}

// Close finishes the current files, writes the index, and waits for the background goroutine, for
// Import, and for Erase and Verify to stop; [Open] then completes the erasure. Even if it fails, the files
// are closed and contain every acknowledged capture, but one may keep its ".open" name. Closing again
// does nothing.
func (a *Archive) Close() (err error) {
	a.closing.Do(func() {
		err = a.files.close()
		if f := a.follower; f != nil {
			f.mu.Lock()
			defer f.mu.Unlock()
			_ = f.view.Load().index.close(false)
			return
		}
		a.imports.adding.Lock() // another process may begin when this one has unlocked the directory
		defer a.imports.adding.Unlock()
		if closed := a.index.close(err == nil); err == nil {
			err = closed
		}
		if unlocked := a.locked.Close(); err == nil && unlocked != nil {
			err = fmt.Errorf("archive: close: %w", unlocked)
		}
	})
	return err
}
