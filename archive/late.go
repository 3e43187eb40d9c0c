package archive

// maxLate bounds the versions that wait for their content.
const maxLate = 100_000

// late is an unchanged version whose content was not in the index when it was put there. A file
// that is indexed later may have it.
type late struct {
	key   string
	entry entry
	ref   reference
}

// deferVersion notes a version. What is too much is dropped: its content is looked for whenever
// somebody asks for it.
func (a *Archive) deferVersion(key string, e *entry, ref reference) {
	if len(a.late) < maxLate {
		a.late = append(a.late, late{key, *e, ref})
	}
}

// resolveLate looks once more for the contents of what waits, when all files have been indexed.
func (a *Archive) resolveLate() error {
	for _, l := range a.late {
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
	a.late = nil
	return nil
}
