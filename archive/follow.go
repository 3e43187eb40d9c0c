package archive

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/archive/internal/lsm"
	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// followEvery is how old the view of a reader may be when a query begins.
const followEvery = 200 * time.Millisecond

// follower shows an archive that another one writes, in this process or elsewhere. It takes no lock
// and writes nothing.
//
// A view is an archive of its own: the runs that the manifest of the index names, which never
// change, and in memory the entries of the records behind them, which are read from the ends of the
// WARC files as Open does after a crash. While the manifest stays the same, the view grows. When the
// writer has replaced it, a new view replaces the old one, which queries may still use: the system
// closes its files when the last reference to it is gone. Removed runs can be read until then.
//
// Its methods are safe for concurrent use.
type follower struct {
	view atomic.Pointer[Archive]
	made time.Time
	due  atomic.Int64 // when the view gets too old, in nanoseconds since made: somebody may set the clock back

	mu       sync.Mutex // held during a refresh; guards what follows
	manifest []byte     // of the index of the view
	stale    bool       // the view has what the writer has cut off
	settled  map[string]bool
	grown    map[string]bool      // unfinished files of which the view has read something itself
	again    map[string]time.Time // when to look again at a file whose end was no complete capture
	unread   map[string]error     // of the disk, because of which the view lacks the end of a file
	failed   error                // of the last refresh
}

// openReadOnly opens an archive for reading only.
func openReadOnly(dir string, opts Options) (*Archive, error) {
	path, err := filepath.Abs(dir)
	if err == nil {
		_, err = os.ReadDir(path)
	}
	if err != nil {
		return nil, openError(err)
	}
	return follow(path, vfs.Shared{OS: vfs.OS(path)}, opts)
}

// follow opens an archive for reading only, on any file system.
func follow(dir string, from vfs.FS, opts Options) (*Archive, error) {
	if opts.Reindex {
		return nil, ErrReadOnly
	}
	a := &Archive{environment: newEnvironment(dir, from, opts), files: &files{dir: from}}
	a.readOnly = true
	f := &follower{made: time.Now()}
	if err := f.refresh(a); err != nil {
		return nil, err
	}
	a.follower, a.found = f, f.view.Load().found
	return a, nil
}

// now returns the archive as of now: a view, if it is only read. While another goroutine makes a new
// view, the old one is used; so is it after an error, which Stats returns.
func (a *Archive) now() *Archive {
	f := a.follower
	if f == nil {
		return a
	}
	if int64(time.Since(f.made)) >= f.due.Load() && f.mu.TryLock() {
		f.failed = f.refreshLocked(a)
		f.mu.Unlock()
	}
	return f.view.Load()
}

// refresh is refreshLocked for callers that cannot do with an old view.
func (f *follower) refresh(a *Archive) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refreshLocked(a)
}

// refreshLocked brings the view up to date. The writer may remove a run between the reading of the
// manifest and of the run; then there is a new manifest. After an error, such as of a damaged index, it
// takes a while until the next attempt, which may read as much. It requires that f.mu is held.
func (f *follower) refreshLocked(a *Archive) (err error) {
	defer func(began time.Time) {
		wait := followEvery
		if err != nil {
			wait = max(wait, patience*time.Since(began))
		}
		f.due.Store(int64(time.Since(f.made) + wait))
	}(time.Now())
	if a.files.isClosed() {
		return ErrClosed
	}
	for range 10 {
		manifest, failed := readManifest(a.fs)
		if failed != nil {
			return failed
		}
		err = f.try(a, manifest)
		if errors.Is(err, ErrIndex) {
			if now, failed := readManifest(a.fs); failed != nil || bytes.Equal(now, manifest) {
				return cmp.Or(failed, err)
			}
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

// try makes or extends the view. It requires that f.mu is held.
func (f *follower) try(a *Archive, manifest []byte) (err error) {
	view := f.view.Load()
	if view == nil || f.stale || !bytes.Equal(manifest, f.manifest) {
		if view, err = a.newView(); err != nil {
			return err
		}
		f.settled, f.grown = map[string]bool{}, map[string]bool{}
		f.again, f.unread = map[string]time.Time{}, map[string]error{}
	}
	if f.stale, err = f.extend(view); err != nil {
		return err
	}
	f.manifest = manifest
	f.view.Store(view)
	return nil
}

// finished returns the files that the writer had finished when they were read. A nil follower has none.
func (f *follower) finished() map[string]bool {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.settled)
}

// readManifest returns the manifest of the index on disk, or nil if there is none.
func readManifest(files vfs.FS) ([]byte, error) {
	manifest, err := durable.ReadFile(files, lsm.Manifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return manifest, err
}

// newView opens the index as it is on disk. Without one, all files are read. Otherwise the imports are left
// to the index: an import may take the writer hours, in which a reader would read the same file, and keep
// all of its entries in memory. The list of imports is read first, since Import makes sure that there is an
// index before it adds to the list.
func (a *Archive) newView() (*Archive, error) {
	if err := a.imports.load(a.fs, a.dir); err != nil {
		return nil, err
	}
	x, err := openIndex(a.fs, readIndex)
	if err != nil {
		return nil, err
	}
	view := &Archive{environment: a.environment, files: a.files, index: x}
	if len(x.names) > 0 {
		return view, nil
	}
	return view, view.indexImports()
}

// A reader spends one in patience parts of its time on looking at captures that are not complete yet: each
// time it reads all that is there.
const patience = 8

// unreadEvery is how often a reader tries again what the disk could not read.
const unreadEvery = time.Second

// extend indexes the new parts of the WARC files, and reports whether one has become shorter than
// this view knows it, or is gone: the writer cuts off what it has not acknowledged. Finished files do
// not change. It requires that f.mu is held.
func (f *follower) extend(view *Archive) (stale bool, err error) {
	names, err := view.fs.List()
	if err != nil {
		return false, err
	}
	for _, name := range names {
		final, open := strings.CutSuffix(name, unfinished)
		if !isWARC(name) || f.settled[name] || open && slices.Contains(names, final) {
			continue
		}
		if f.again[name].After(time.Now()) {
			continue
		}
		began, before := time.Now(), view.index.endOf(final)
		t, err := view.recoverFile(name)
		if took := time.Since(began); open && took > followEvery/patience && view.index.endOf(final) == before {
			f.again[name] = time.Now().Add(patience * took)
		}
		if delete(f.unread, final); t.unread != nil {
			f.unread[final], f.again[name] = t.unread, time.Now().Add(unreadEvery)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was renamed just now
		}
		if err != nil {
			return false, err
		}
		cut := len(t.Damage) > 0 && errors.Is(t.Damage[0].Err, errShorter)
		f.settled[name] = (!open || cut) && t.unread == nil
		if !open {
			delete(f.grown, final)
		} else if view.index.endOf(final) > before {
			f.grown[final] = true
		}
		stale = stale || open && cut && view == f.view.Load()
	}
	for name := range f.grown {
		stale = stale || !exists(view.fs, name+unfinished) && !exists(view.fs, name) // in the order of a rename
	}
	return stale, view.resolveDeferred()
}

// endOf returns up to where a file is indexed.
func (x *index) endOf(name string) int64 {
	state, _ := x.state(name)
	return state.end
}
