package archive

import (
	"errors"
	"fmt"
	"slices"
)

// An erasure replaces the index by one without what goes, while captures are appended.

// replaceIndex puts a new index in the place of the one in use, when fill has indexed files in it. From then on
// the new one may be on disk, even if this fails: a later commit completes that. It requires that x.writing is held.
func (a *Archive) replaceIndex(fresh *index, files map[string]int64, fill func(shadow *Archive) error) error {
	incomplete := fill(&Archive{environment: a.environment, index: fresh})
	fresh.ended.Wait()
	err := errors.Join(incomplete, fresh.write(false))
	a.index.adopt(fresh, files, incomplete)
	return err
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
		fresh.files[name] = &indexed{number: f.number, known: f.known}
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
		x.damage = nil
	}
}

// errLacking is the error of look-ups while entries are missing.
var errLacking = fmt.Errorf("%w is incomplete: open the archive again", ErrIndex)
