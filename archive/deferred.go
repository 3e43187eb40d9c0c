package archive

import (
	"cmp"
	"strings"
)

// maxDeferred bounds the number of deferred versions, and maxDeferredBytes the memory of their URLs, which are as
// long as the writer of a file likes.
const (
	maxDeferred      = 100_000
	maxDeferredBytes = 32 << 20
)

// deferred is an unchanged version that was indexed before its content, which may be in a file that
// is indexed later.
type deferred struct {
	key   string
	entry entry
	ref   reference
}

// deferVersion records a version. Beyond the limit, versions are dropped: their content is then
// searched for at each query.
func (a *Archive) deferVersion(key string, e *entry, ref reference) {
	size := len(key) + len(e.url) + len(ref.url)
	if len(a.deferred) < maxDeferred && a.weight+size <= maxDeferredBytes {
		ref.url = strings.Clone(ref.url) // without the header of the record
		a.deferred, a.weight = append(a.deferred, deferred{key, *e, ref}), a.weight+size
	}
}

// noteMoved remembers the URL of a version that was indexed after later ones, as an erasure has moved it behind
// them, or whose content was. They are indexed as if it were not there.
func (a *Archive) noteMoved(key string) error {
	if a.moved == nil {
		a.moved = map[string]bool{}
	}
	if a.moved[key] = true; len(a.moved) < maxDeferred {
		return nil
	}
	return a.correctMoved()
}

// correctMoved corrects the entries of these URLs.
func (a *Archive) correctMoved() error {
	for key := range a.moved {
		if err := a.index.correctPriors(key); err != nil {
			return err
		}
	}
	a.moved = nil
	return nil
}

// resolveDeferred searches again for the contents of deferred versions, after all files have been
// indexed.
func (a *Archive) resolveDeferred() error {
	for _, l := range a.deferred {
		if err := a.resolve(l.key, &l.entry, l.ref); err != nil {
			return err
		}
		if l.entry.content.length == 0 {
			continue
		}
		a.index.replace(l.key, &l.entry)
		if err := cmp.Or(a.index.admit(), a.noteMoved(l.key)); err != nil {
			return err
		}
	}
	a.deferred, a.weight = nil, 0
	return a.correctMoved()
}
