package wal

import (
	"cmp"
	"errors"
	"io/fs"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// A Misfit is a visitor's error for a change that does not fit the state. Replay adds its position
// in the log.
type Misfit string

// Error returns the reason.
func (e Misfit) Error() string { return string(e) }

// Replayed describes what Replay has found.
type Replayed struct {
	Last    uint64 // number of the last log
	Changes int64
	Cut     int64 // bytes of an incomplete group at the end of the last log
}

// Window is the number of changes of which the visitor of Replay hears ahead.
const Window = 128 << 10

// Replay visits the changes of a log, and of the logs that continue it, in order. It calls ahead with
// each Window of them before it visits these, so that the visitor can read what they refer to in
// another order.
func Replay(
	dir vfs.FS, number uint64, ahead func([]Change), visit func(*Change) error,
) (Replayed, error) {
	r := replayer{dir: dir, ahead: ahead, visit: visit, done: Replayed{Last: number}}
	var err error
	r.pending, err = durable.ReadFile(dir, PendingName)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for more := err == nil; more && err == nil; number++ {
		more, err = r.log(number)
	}
	return r.done, cmp.Or(r.visitWindow(), err) // those before an error come first
}

type replayer struct {
	dir     vfs.FS
	ahead   func([]Change)
	visit   func(*Change) error
	window  []Change // not visited yet
	pending []byte
	done    Replayed

	file  *fileReader
	coder coder
}

// log repeats one log. It reports whether the log ends with a mark, so that another one follows.
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
	// One half of the mapped file may continue the log, and the other half may continue that.
	r.done.Cut = int64(len(r.file.b) - r.file.at)
	for end := int64(r.file.at); ; {
		changes := pendingAfter(r.pending, number, end)
		if changes == nil {
			return false, r.requireLast()
		}
		r.done.Cut = 0 // these are the changes of the incomplete group
		if more, err := r.group(changes); more || err != nil {
			return more, err
		}
		end += groupHeader + int64(len(changes))
	}
}

// requireLast reports damage if the end of the log is missing: the next log has a group that says
// that all of this log had been synced.
func (r *replayer) requireLast() error {
	next, err := openFile(r.dir, r.file.number+1)
	if errors.Is(err, durable.ErrCorrupt) {
		return nil // there is no next log, or its creation was interrupted
	}
	if err != nil {
		return err
	}
	synced, err := next.syncedAfter(logHeader)
	if err == nil && synced > 0 {
		err = durable.Corrupt(r.file.name, int64(r.file.at), "groups of changes are damaged or gone")
	}
	return err
}

// group repeats a group of changes. It reports whether they end with the mark.
func (r *replayer) group(changes []byte) (more bool, err error) {
	for d := (durable.Decoder{B: changes}); len(d.B) > 0; {
		h := r.coder.take(&d)
		if d.Bad || h.Kind == rotate && len(d.B) > 0 {
			return false, bad(r.file.number, int64(r.file.at), "an invalid change")
		}
		if h.Kind == rotate {
			return true, nil
		}
		h.Log, h.End = r.file.number, int64(r.file.at)
		if r.window = append(r.window, h); len(r.window) == Window {
			if err := r.visitWindow(); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

func (r *replayer) visitWindow() error {
	changes := r.window
	r.window = nil
	if len(changes) > 0 {
		r.ahead(changes)
	}
	for i := range changes {
		h := &changes[i]
		err := r.visit(h)
		var misfit Misfit
		if errors.As(err, &misfit) {
			err = bad(h.Log, h.End, string(misfit))
		}
		if err != nil {
			return err
		}
		r.done.Changes++
	}
	return nil
}

func bad(log uint64, end int64, reason string) error {
	return durable.Corrupt(FileName(log), end, "before this: "+reason)
}
