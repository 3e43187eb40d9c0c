package archive

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

// noteMoved remembers the URL of a version that an erasure has moved behind later ones. Those may have
// been indexed first, as if it were not there.
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
	a.searches = nil
	again := searches{}
	for _, l := range a.deferred {
		if err := a.resolveIn(again, l.key, &l.entry, l.ref); err != nil {
			return err
		}
		if l.entry.content.length > 0 {
			a.index.replace(l.key, &l.entry)
			again.added(l.key, &l.entry)
		}
		if err := a.index.admit(); err != nil {
			return err
		}
	}
	a.deferred = nil
	return a.correctMoved()
}
