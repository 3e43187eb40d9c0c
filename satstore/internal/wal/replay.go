package wal

import (
	"errors"
	"io/fs"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/disk"
)

// A Misfit is what a visitor of Replay returns for a change that does not fit the state. Replay
// says where in the log it is.
type Misfit string

// Error returns the reason.
func (e Misfit) Error() string { return string(e) }

// A Replayed tells what a Replay found.
type Replayed struct {
	Last    uint64 // number of the last log
	Changes int64
	Cut     int64 // bytes at the end of the last log that were not whole, as a crash leaves them
}

// Replay visits the changes of a log, and of those that go on after it, in their order.
func Replay(dir vfs.FS, number uint64, visit func(*Change) error) (Replayed, error) {
	r := replayer{dir: dir, visit: visit, done: Replayed{Last: number}}
	var err error
	r.pending, err = disk.ReadFile(dir, PendingName)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r.done, err
	}
	for more := true; more; number++ {
		if more, err = r.log(number); err != nil {
			return r.done, err
		}
	}
	return r.done, nil
}

type replayer struct {
	dir     vfs.FS
	visit   func(*Change) error
	pending []byte
	done    Replayed

	file  *fileReader
	coder coder
}

// log repeats one log and reports whether it ends with the mark that another one follows.
func (r *replayer) log(number uint64) (more bool, err error) {
	if r.file, err = openFile(r.dir, number); err != nil {
		return false, err
	}
	r.done.Last, r.coder = number, coder{base: r.file.base}
	for {
		changes, err := r.file.next()
		if err != nil {
			return false, err
		}
		if changes == nil {
			break
		}
		if more, err := r.group(changes); more || err != nil {
			return more, err
		}
	}
	// What the log does not have is in one half of the file that is mapped, and what follows that
	// in the other.
	r.done.Cut = int64(len(r.file.b) - r.file.at)
	for end := int64(r.file.at); ; {
		changes := pendingAfter(r.pending, number, end)
		if changes == nil {
			return false, r.requireLast()
		}
		r.done.Cut = 0 // it was being written, and is here
		if more, err := r.group(changes); more || err != nil {
			return more, err
		}
		end += groupHeader + int64(len(changes))
	}
}

// requireLast reports damage if there was a mark at the end of this log that is not there: if the
// next log tells that all of this one had been synced.
func (r *replayer) requireLast() error {
	next, err := openFile(r.dir, r.file.number+1)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, disk.ErrCorrupt) {
		return nil // there was none, or not yet
	}
	if err != nil {
		return err
	}
	synced, err := next.syncedAfter(logHeader)
	if err == nil && synced > 0 {
		err = disk.Corrupt(r.file.name, int64(r.file.at), "groups of changes are damaged or gone")
	}
	return err
}

// group repeats changes that were committed together. It reports whether they end the log.
func (r *replayer) group(changes []byte) (more bool, err error) {
	for d := (disk.Decoder{B: changes}); len(d.B) > 0; {
		h := r.coder.take(&d)
		if d.Bad || h.Kind == rotate && len(d.B) > 0 {
			return false, r.bad("a change that cannot be decoded")
		}
		if h.Kind == rotate {
			return true, nil
		}
		err := r.visit(&h)
		var misfit Misfit
		if errors.As(err, &misfit) {
			err = r.bad(string(misfit))
		}
		if err != nil {
			return false, err
		}
		r.done.Changes++
	}
	return false, nil
}

func (r *replayer) bad(reason string) error {
	return disk.Corrupt(r.file.name, int64(r.file.at), "before this: "+reason)
}
