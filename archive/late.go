package archive

// maxLate bounds the number of deferred versions.
const maxLate = 100_000

// late is an unchanged version that was indexed before its content. A file that is indexed later
// may have the content.
type late struct {
	key   string
	entry entry
	ref   reference
}

// deferVersion records a version. Beyond the limit, versions are dropped: their content is then
// searched for at each query.
func (a *Archive) deferVersion(key string, e *entry, ref reference) {
	if len(a.late) < maxLate {
		a.late = append(a.late, late{key, *e, ref})
	}
}

// resolveLate searches again for the contents of deferred versions, after all files have been
// indexed.
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
