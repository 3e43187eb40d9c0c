package archive

import (
	"errors"
	"fmt"
	"runtime"
)

// commit writes the uncommitted entries. Merging is left to the goroutine.
func (x *index) commit() error {
	err := x.write(false)
	x.mu.Lock()
	defer x.mu.Unlock()
	if err == nil {
		x.startLocked()
	}
	return err
}

// write commits the current entries. A merge pauses for it. Behind the caller's back, an error waits
// for a report.
func (x *index) write(behind bool) error {
	x.waiters.Add(1)
	x.writing.Lock()
	x.waiters.Add(-1)
	defer x.writing.Unlock()
	if behind {
		return x.writeBehind()
	}
	return x.writeLocked()
}

// writeBehind is writeLocked for the goroutine. It keeps the error while x.writing is held: a later
// commit, which may have space again, makes up for it.
func (x *index) writeBehind() error {
	err := x.writeLocked()
	if err == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.failed, x.unwritten = err, err
	return errUnwritten
}

// errUnwritten means that a commit failed, and that index.unwritten has its error.
var errUnwritten = errors.New("archive: index is not written")

// writeLocked requires that x.writing is held. It syncs the WARC files after freezing the entries
// and before writing them: the index must never point to lost records.
func (x *index) writeLocked() error {
	for {
		failed := x.lsm().Frozen() // must be committed first
		if !failed && !x.freeze() {
			return nil
		}
		x.mu.RLock()
		force := x.force
		x.mu.RUnlock()
		if force != nil {
			if err := force(); err != nil {
				return err
			}
		}
		if err := x.lsm().Commit(); err != nil {
			return fmt.Errorf("archive: commit index: %w", err)
		}
		x.written()
		if !failed {
			return nil
		}
	}
}

// written notes a commit. What an earlier one could not write is part of it.
func (x *index) written() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.unwritten != nil {
		x.failed, x.unwritten = x.unsaid, nil
	}
}

// freeze turns the uncommitted entries into the next commit. It is false if there are none.
func (x *index) freeze() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.dirty {
		return false
	}
	x.dirty, x.unindexed = false, 0
	return x.lsm().Freeze(x.list())
}

// merge keeps the number of index files small. It pauses to commit new entries.
func (x *index) merge() error {
	x.writing.Lock()
	defer x.writing.Unlock()
	tree := x.lsm()
	return x.notice(tree.Merge(func() error {
		for x.waiters.Load() > 0 {
			x.writing.Unlock()
			runtime.Gosched()
			x.writing.Lock()
		}
		x.mu.RLock()
		closed, full := x.closed, x.fullLocked()
		x.mu.RUnlock()
		switch {
		case closed || x.lsm() != tree: // which another one has replaced meanwhile
			return ErrClosed // merging can wait
		case full:
			return x.writeBehind()
		}
		return nil
	}))
}

// close interrupts a merge. If commit is true, it commits the uncommitted entries.
func (x *index) close(commit bool) (err error) {
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.ended.Wait()
	if commit {
		err = x.write(false)
	}
	x.lsm().Close()
	return errors.Join(err, x.report())
}
