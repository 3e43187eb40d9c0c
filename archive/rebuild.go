package archive

import (
	"fmt"
	"slices"
)

// An erasure replaces the index by one without what goes, while captures are appended.

// lend gives a new index the files of this one, with their numbers. Captures may be appended at any time, so that
// the new one forces them to disk itself before each commit, as this one does: it must never point to lost records.
func (x *index) lend(fresh *index) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	fresh.names, fresh.bodies, fresh.limit, fresh.force = slices.Clone(x.names), x.bodies, x.limit, x.force
	fresh.files = map[string]*indexed{}
	for name, f := range x.files {
		own := *f
		fresh.files[name] = &own
	}
}

// adopt replaces the tree. The pairs that were put since the last commit go to the new one, which has indexed a
// file, unless that is incomplete. It requires that x.writing is held.
func (x *index) adopt(fresh *index, file string, incomplete error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.lsm()
	for key, value := range old.Uncommitted() {
		fresh.lsm().Put(key, value)
	}
	f := x.files[file]
	f.end = fresh.files[file].end
	f.known = max(f.known, f.end)
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
