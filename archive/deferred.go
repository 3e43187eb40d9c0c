package archive

import (
	"cmp"
	"time"
)

// maxDeferred bounds the number of deferred versions.
const maxDeferred = 100_000

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
	if len(a.deferred) < maxDeferred {
		a.deferred = append(a.deferred, deferred{key, *e, ref})
	}
}

// isMoved reports whether a version may be older than its file: an erasure has moved it there, behind
// later ones of its URL. Those may have been indexed first, as if it were not there.
func isMoved(name string, at int64) bool {
	m := ours.FindStringSubmatch(name)
	if m == nil {
		return false
	}
	begun, err := time.Parse("20060102150405.000", m[1][:14]+"."+m[1][14:])
	return err == nil && at < microseconds(begun)
}

// resolveDeferred searches again for the contents of deferred versions, after all files have been
// indexed.
func (a *Archive) resolveDeferred() error {
	for _, l := range a.deferred {
		if err := a.resolve(l.key, &l.entry, l.ref); err != nil {
			return err
		}
		if l.entry.content.length > 0 {
			a.index.replace(l.key, &l.entry)
		}
		if err := a.index.admit(); err != nil {
			return err
		}
	}
	a.deferred = nil
	for key := range a.moved {
		if err := cmp.Or(a.index.correctPrior(key), a.index.admit()); err != nil {
			return err
		}
	}
	a.moved = nil
	return nil
}
