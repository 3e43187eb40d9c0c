package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// ErrBroken means that an fsync has failed. Which data is on disk is unknown, and a second fsync
// would not help.
var ErrBroken = errors.New("satstore: a sync has failed: open the store again")

// A Log records changes. Its methods are safe for concurrent use. Some require that the caller
// holds the lock that it gave to Open.
type Log struct {
	fs     vfs.FS
	mapped *vfs.Map
	wake   chan struct{} // wakes Commit

	// Locked in this order: syncing during a sync, io during a write. The last one is the caller's
	// and is held during Append, so that a change needs no lock of its own.
	syncing sync.Mutex  // guards broken
	io      sync.Mutex  // guards the files
	lock    sync.Locker // guards the halves, the coder and the lengths

	broken error // of the first sync that failed: those after it would prove nothing
	closed bool  // guarded by io

	files     []*File // the last one is active; the others stay until Release
	unwritten []byte  // changes of the inactive half, to be written next
	to        *File   // the file to write them to
	group     []byte  // memory for a group

	behind bool // unwritten did not fit in its half, so a kill loses it, and with it what follows
	halves [2]half
	active int
	coder  coder
	length int64 // of all files
	latest int64 // of the newest one
}

// Open returns a Log that writes to a new file. If there is no pending file, it creates one of the
// given size; otherwise it discards the pending changes. The lock guards what is appended.
func Open(fs vfs.FS, lock sync.Locker, f *File, size int) (*Log, error) {
	m, err := fs.Map(PendingName, size)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, fmt.Errorf("satstore: map %s: %w", PendingName, err)
	}
	l := &Log{fs: fs, lock: lock, mapped: m, wake: make(chan struct{}, 1), halves: halves(m, size)}
	l.files, l.coder = []*File{f}, coder{base: f.base}
	l.length, l.latest = f.end, f.end
	err = l.halves[0].begin(f.number, f.end)
	if err == nil {
		err = l.halves[1].begin(f.number, -1) // discards its changes
	}
	if err != nil {
		return nil, errors.Join(err, l.closeMap())
	}
	return l, nil
}

// Room reports whether there is room for changes of the given size. Flush makes room. It requires
// that the lock is held.
func (l *Log) Room(bytes int) bool {
	h := &l.halves[l.active]
	return len(h.changes) == 0 || len(h.changes)+bytes <= h.room
}

// Append appends changes. After a crash, all or none of them are there. If survives is true, they
// already survive a crash of the process; otherwise they do once Flush has returned. After an error
// none was appended. It requires that the lock is held.
func (l *Log) Append(changes ...*Change) (survives bool, err error) {
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
		survives = !l.behind
	}
	// Only the first change of a group wakes Commit. Those that follow before the sync share it.
	if kept == 0 {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
	return survives, nil
}

// Flush writes the appended changes to the file, without a sync.
func (l *Log) Flush() error {
	l.io.Lock()
	defer l.io.Unlock()
	if l.closed {
		return fs.ErrClosed
	}
	return l.flush()
}

func (l *Log) flush() error {
	// If a write failed before, it is repeated at the same offset: the active half continues
	// exactly after that group.
	if err := l.write(); err != nil {
		return err
	}
	to := l.files[len(l.files)-1]
	l.lock.Lock()
	h := l.halves[l.active]
	changes := h.changes
	if len(changes) == 0 {
		l.lock.Unlock()
		return nil
	}
	err := l.swap(to.number, to.end+groupHeader+int64(len(changes)))
	l.behind = err == nil && len(changes) > h.room
	l.lock.Unlock()
	if err != nil {
		return err
	}
	l.unwritten, l.to = changes, to
	return l.write()
}

// swap makes the other half active, for changes that follow the given number of bytes of a log. The
// caller must write the changes of this half next. It requires that l.io and l.lock are held, and
// that the changes of the other half are written.
func (l *Log) swap(number uint64, end int64) error {
	if err := l.halves[1-l.active].begin(number, end); err != nil {
		return err
	}
	l.active = 1 - l.active
	return nil
}

// write writes l.unwritten as one group. Remains of a failed attempt are harmless.
func (l *Log) write() error {
	if len(l.unwritten) == 0 {
		return nil
	}
	f, synced := l.to, l.to.synced
	for _, older := range l.files {
		if older == f {
			break
		}
		if older.synced < older.end { // until then, this file's sync does not count
			synced = 0
		}
	}
	l.group = f.appendGroup(l.group[:0], l.unwritten, synced)
	if _, err := f.WriteAt(l.group, f.end); err != nil {
		return fmt.Errorf("satstore: write log: %w", err)
	}
	f.end += int64(len(l.group))
	l.lock.Lock()
	l.length += int64(len(l.group))
	if f == l.files[len(l.files)-1] {
		l.latest = f.end
	}
	l.behind = false
	l.lock.Unlock()
	l.unwritten, l.to = nil, nil
	if len(l.group) > groupHeader+l.halves[0].room {
		l.group = nil // there may never be such a large one again
	}
	return nil
}

// Sync returns once everything appended before is on disk.
func (l *Log) Sync() error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	if l.broken != nil {
		return l.broken
	}
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
		if f.synced == ends[i] { // only changed here
			continue
		}
		if err := f.Sync(); err != nil {
			l.broken = fmt.Errorf("%w: sync log: %w", ErrBroken, err)
			return l.broken
		}
		l.io.Lock()
		f.synced = ends[i]
		l.io.Unlock()
	}
	return nil
}

// Commit syncs changes with a delay after the first of them, until stop is closed. It reports
// errors to failed.
func (l *Log) Commit(stop <-chan struct{}, delay time.Duration, failed func(error)) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	for {
		select {
		case <-stop:
			return
		case <-l.wake:
		}
		timer.Reset(delay) // after the first change, so that later ones cannot delay it
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

// AtStart calls at with the lock held if the newest file has no changes yet, and reports whether it
// did.
func (l *Log) AtStart(at func()) bool {
	l.io.Lock()
	defer l.io.Unlock()
	l.lock.Lock()
	defer l.lock.Unlock()
	newest := l.files[len(l.files)-1]
	if newest.end > Header || l.to == newest || len(l.halves[l.active].changes) > 0 {
		return false
	}
	at()
	return true
}

// Rotate switches to another file. Between the last change of the old file and the first of the
// new, it calls at with the lock held. After an error nothing has changed.
func (l *Log) Rotate(next *File, at func()) error {
	l.io.Lock()
	defer l.io.Unlock()
	for {
		if err := l.flush(); err != nil {
			return err
		}
		l.lock.Lock()
		if l.Room(MaxSize(0)) {
			break
		}
		l.lock.Unlock() // it is full again
	}
	defer l.lock.Unlock()
	if err := l.mark(next); err != nil {
		return err
	}
	at()
	return nil
}

// mark appends the mark that ends a file, and makes the next file active.
func (l *Log) mark(next *File) error {
	// The other half comes first: once the mark is there, changes in this half would be lost.
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
	l.files = append(l.files, next)
	l.length, l.latest = l.length+next.end, next.end
	l.unwritten, l.to = h.changes, old // the next flush writes it
	return nil
}

// Release closes and removes the files with numbers below n, which no checkpoint needs anymore. A
// file that cannot be removed does no harm.
func (l *Log) Release(n uint64) {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	var old []*File
	l.io.Lock()
	l.lock.Lock()
	for len(l.files) > 1 && l.files[0].number < n {
		f := l.files[0]
		if old, l.files = append(old, f), l.files[1:]; l.to == f {
			l.unwritten, l.to = nil, nil
		}
		l.length -= f.end
	}
	l.lock.Unlock()
	l.io.Unlock()
	for _, f := range old {
		durable.Discard(l.fs, FileName(f.number), f)
	}
}

// Size returns the size of all files, and that of the newest one including unwritten changes. It
// requires that the lock is held.
func (l *Log) Size() (all, newest int64) {
	return l.length, l.latest + int64(len(l.halves[l.active].changes))
}

// Close closes the files, after the Sync and the Flush that run. Those that wait get an error. Nothing
// else may be called during or after it, and Commit must have returned.
func (l *Log) Close() (err error) {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.io.Lock()
	defer l.io.Unlock()
	l.closed = true
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
