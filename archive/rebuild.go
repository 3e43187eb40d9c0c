package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
)

// rebuild replaces a damaged index with one made from the WARC files, while captures are appended:
// these stay in memory meanwhile. The new tree replaces the old one on disk with its first commit.
// If it stays incomplete, because of an error or because the archive is closed, the files have
// their new indexed lengths, from which the next Open goes on.
func (a *Archive) rebuild() error {
	x := a.index
	x.writing.Lock()
	defer x.writing.Unlock()
	fresh, err := openIndex(a.fs, newIndex)
	if err != nil {
		return err
	}
	ends := x.lend(fresh)
	return a.replaceIndex(fresh, ends, func(shadow *Archive) error {
		for _, name := range slices.Sorted(maps.Keys(ends)) {
			if err := shadow.rebuildFile(x, name, ends[name]); err != nil {
				return err
			}
		}
		return shadow.resolveDeferred()
	})
}

// replaceIndex puts a new index in the place of the one in use, when fill has indexed files in it. From then on
// the new one may be on disk, even if this fails: a later commit completes that. It requires that x.writing is held.
func (a *Archive) replaceIndex(fresh *index, files map[string]int64, fill func(shadow *Archive) error) error {
	incomplete := fill(&Archive{environment: a.environment, index: fresh})
	fresh.ended.Wait()
	err := errors.Join(incomplete, fresh.write(false))
	a.index.adopt(fresh, files, incomplete)
	return err
}

// rebuildFile indexes a file up to its indexed length. A file that is missing is indexed when it is
// there again.
func (a *Archive) rebuildFile(x *index, name string, end int64) error {
	x.mu.RLock()
	closed := x.closed
	x.mu.RUnlock()
	if closed {
		return ErrClosed
	}
	f, err := a.openFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = a.indexFile(f, name, 0, min(end, f.size))
	return errors.Join(err, f.Close())
}

// lend gives a new index the files of this one, with their numbers, and returns their indexed
// lengths. Captures may be appended at any time, so that the new one forces them to disk itself before
// each commit, as this one does: it must never point to lost records.
func (x *index) lend(fresh *index) map[string]int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	ends := map[string]int64{}
	fresh.names, fresh.bodies, fresh.limit = slices.Clone(x.names), x.bodies, x.limit
	fresh.files = map[string]*indexed{}
	fresh.force = x.force
	for name, f := range x.files {
		ends[name] = f.end
		fresh.files[name] = &indexed{number: f.number, known: f.known, salvaged: f.salvaged}
	}
	return ends
}

// adopt replaces the tree. The pairs that were put since the last commit go to the new one, which has indexed some
// files. It requires that x.writing is held.
func (x *index) adopt(fresh *index, files map[string]int64, incomplete error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.lsm()
	for key, value := range old.Uncommitted() {
		fresh.lsm().Put(key, value)
	}
	for name := range files {
		f := x.files[name]
		if done := fresh.files[name].end; done == 0 || incomplete != nil {
			f.end = done
		} else {
			f.end = max(f.end, done)
		}
		f.known = max(f.known, f.end)
	}
	x.tree.Store(fresh.lsm())
	old.Close() // look-ups that have begun go on in it
	x.dirty = true
	if incomplete != nil {
		x.lacking.Store(true)
	} else {
		x.damaged.Store(false)
	}
}

// errLacking is the error of look-ups while entries are missing.
var errLacking = fmt.Errorf("%w is incomplete: open the archive again", ErrIndex)
