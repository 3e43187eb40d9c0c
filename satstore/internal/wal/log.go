package wal

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/disk"
)

// ErrBroken says that a sync has failed. What it left behind is not known, and another sync would
// not tell.
var ErrBroken = errors.New("satstore: a sync has failed: open the store again")

// A Log takes changes. Its methods are safe for concurrent use. Changes that depend on one another
// have to be appended in their order.
type Log struct {
	fs     vfs.FS
	mapped *vfs.Map
	wake   chan struct{} // there is something to commit
	used   atomic.Int64  // bytes of changes in the active half
	length atomic.Int64  // of all files
	latest atomic.Int64  // of the newest one

	// These are locked in this order. A change takes mu alone, for as long as it takes to copy it;
	// io is held during a write, and syncing during a sync.
	syncing sync.Mutex
	io      sync.Mutex // guards the files
	mu      sync.Mutex // guards the halves and the coder

	files     []*File // the last one is written to; those before it are there until Release
	unwritten []byte  // changes that are in no half that takes changes, and have to be written next
	to        *File   // where to
	group     []byte  // memory for a group

	halves [2]half
	active int
	coder  coder
}

// Open returns a Log that goes on in a new file, with a pending file of a size if there is none.
// Whatever was pending for another log is gone then.
func Open(fs vfs.FS, f *File, size int) (*Log, error) {
	m, err := fs.Map(PendingName, size)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, fmt.Errorf("satstore: map %s: %w", PendingName, err)
	}
	l := &Log{fs: fs, mapped: m, wake: make(chan struct{}, 1), halves: halves(m, size)}
	l.files, l.coder = []*File{f}, coder{base: f.base}
	l.length.Store(f.end)
	l.latest.Store(f.end)
	err = l.halves[0].begin(f.number, f.end)
	if err == nil {
		err = l.halves[1].begin(f.number, -1) // what is there is of another log
	}
	if err != nil {
		return nil, errors.Join(err, l.closeMap())
	}
	return l, nil
}

// Room reports whether there is room for changes of up to so many bytes, until the next change. If
// not, Flush makes room.
func (l *Log) Room(bytes int) bool {
	used := l.used.Load()
	return used == 0 || used+int64(bytes) <= int64(l.halves[0].room)
}

// Append appends changes, all of which survive a crash or none. They survive one of the process
// from then on, unless there was too little room: then they do so once Flush has returned. After
// an error none was appended.
func (l *Log) Append(changes ...*Change) (survives bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, was := &l.halves[l.active], l.coder
	kept := len(h.changes)
	for _, change := range changes {
		h.changes = l.coder.append(h.changes, change)
	}
	if len(h.changes) <= h.room {
		if err := h.publish(); err != nil {
			h.changes, l.coder = h.changes[:kept], was
			return false, err
		}
		survives = true
	}
	l.used.Store(int64(len(h.changes)))
	// Only the first change of a group wakes the committer. All that come while it sleeps share
	// one sync.
	if kept == 0 {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
	return survives, nil
}

// Flush writes what was appended to the file. It does not sync it.
func (l *Log) Flush() error {
	l.io.Lock()
	defer l.io.Unlock()
	return l.flush()
}

func (l *Log) flush() error {
	// What could not be written comes first, at the place where it failed: the half that takes
	// changes now names the end of that very group as where it goes on.
	if err := l.write(); err != nil {
		return err
	}
	to := l.files[len(l.files)-1]
	l.mu.Lock()
	changes := l.halves[l.active].changes
	if len(changes) == 0 {
		l.mu.Unlock()
		return nil
	}
	err := l.swap(to.number, to.end+groupHeader+int64(len(changes)))
	l.mu.Unlock()
	if err != nil {
		return err
	}
	l.unwritten, l.to = changes, to
	return l.write()
}

// swap lets the other half take changes, which belong behind so many bytes of a log. The changes
// of this half have to be written next. It requires that l.io and l.mu are held, and that the
// other half's changes were written.
func (l *Log) swap(number uint64, end int64) error {
	if err := l.halves[1-l.active].begin(number, end); err != nil {
		return err
	}
	l.active = 1 - l.active
	l.used.Store(0)
	return nil
}

// write writes l.unwritten as one group. It does not matter what a failed attempt has left behind.
func (l *Log) write() error {
	if len(l.unwritten) == 0 {
		return nil
	}
	f, synced := l.to, l.to.synced
	for _, older := range l.files {
		if older == f {
			break
		}
		if older.synced < older.end { // nothing in this file lasts before that does
			synced = 0
		}
	}
	l.group = f.appendGroup(l.group[:0], l.unwritten, synced)
	if _, err := f.WriteAt(l.group, f.end); err != nil {
		return fmt.Errorf("satstore: write log: %w", err)
	}
	f.end += int64(len(l.group))
	l.length.Add(int64(len(l.group)))
	if f == l.files[len(l.files)-1] {
		l.latest.Add(int64(len(l.group)))
	}
	l.unwritten, l.to = nil, nil
	return nil
}

// Sync returns once what was appended before lasts. [ErrBroken] says that nobody knows what does.
func (l *Log) Sync() error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	if err := l.Flush(); err != nil {
		return err
	}
	l.io.Lock()
	files := append([]*File(nil), l.files...)
	ends := make([]int64, len(files))
	for i, f := range files {
		ends[i] = f.end
	}
	l.io.Unlock()
	for i, f := range files { // the oldest first
		if f.synced == ends[i] { // which changes only here
			continue
		}
		if err := f.Sync(); err != nil {
			return fmt.Errorf("%w: sync log: %w", ErrBroken, err)
		}
		l.io.Lock()
		f.synced = ends[i]
		l.io.Unlock()
	}
	return nil
}

// Commit syncs changes a while after the first of them, until stop is closed.
// It tells failed of errors.
func (l *Log) Commit(stop <-chan struct{}, delay time.Duration, failed func(error)) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	for {
		select {
		case <-stop:
			return
		case <-l.wake:
		}
		timer.Reset(delay) // from the first change on, so that no stream of them puts it off
		select {
		case <-stop:
			return
		case <-timer.C:
		}
		if err := l.Sync(); err != nil {
			failed(err)
		}
	}
}

// Rotate lets changes go to another file from now on. It calls at between the last change of the
// old file and the first one of the new, while it holds lock, which whoever appends has to hold.
// After an error it has not.
func (l *Log) Rotate(next *File, lock sync.Locker, at func()) error {
	l.io.Lock()
	defer l.io.Unlock()
	for {
		if err := l.flush(); err != nil {
			return err
		}
		lock.Lock()
		if l.Room(MaxSize(0)) {
			break
		}
		lock.Unlock() // somebody was faster
	}
	defer lock.Unlock()
	if err := l.mark(next); err != nil {
		return err
	}
	at()
	return nil
}

// mark appends the mark that ends a file, and lets what follows belong to the next one.
func (l *Log) mark(next *File) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	// The other half comes first. As soon as the mark is there, changes in this half would be
	// lost.
	h, old := &l.halves[l.active], l.files[len(l.files)-1]
	if err := l.halves[1-l.active].begin(next.number, next.end); err != nil {
		return err
	}
	kept := len(h.changes)
	h.changes = append(h.changes, byte(rotate))
	if err := h.publish(); err != nil {
		h.changes = h.changes[:kept]
		return err
	}
	l.active, l.coder = 1-l.active, coder{base: next.base}
	l.used.Store(0)
	l.files = append(l.files, next)
	l.length.Add(next.end)
	l.latest.Store(next.end)
	l.unwritten, l.to = h.changes, old // the next flush writes it
	return nil
}

// Release closes and removes the files with numbers below n, which no checkpoint needs any more.
// What cannot be removed does no harm, as no checkpoint names it.
func (l *Log) Release(n uint64) {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	var old []*File
	l.io.Lock()
	for len(l.files) > 1 && l.files[0].number < n {
		f := l.files[0]
		if old, l.files = append(old, f), l.files[1:]; l.to == f {
			l.unwritten, l.to = nil, nil
		}
		l.length.Add(-f.end)
	}
	l.io.Unlock()
	for _, f := range old {
		disk.Discard(l.fs, FileName(f.number), f)
	}
}

// Number returns that of the newest file.
func (l *Log) Number() uint64 {
	l.io.Lock()
	defer l.io.Unlock()
	return l.files[len(l.files)-1].number
}

// Size returns the bytes of all files, and of what is to be written to them.
func (l *Log) Size() int64 { return l.length.Load() + l.used.Load() }

// Latest is Size without the older files.
func (l *Log) Latest() int64 { return l.latest.Load() + l.used.Load() }

// Close closes the files. Nothing may be appended any more, and Commit must have returned.
func (l *Log) Close() (err error) {
	l.io.Lock()
	defer l.io.Unlock()
	for _, f := range l.files {
		err = errors.Join(err, f.Close())
	}
	return errors.Join(err, l.closeMap())
}

func (l *Log) closeMap() error {
	if l.mapped == nil {
		return nil
	}
	return l.mapped.Close()
}
