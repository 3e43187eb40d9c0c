package archive

import (
	"io/fs"
	"slices"
	"strings"
	"time"
)

// FS is the pages of a site as they were at one time, as a read-only file system. Its methods are
// safe for concurrent use.
//
// A file is a version that was valid then and whose status is one of success; redirects and errors
// are none. Its content is the body without its content coding, if that is gzip, deflate or zstd;
// it is read from the archive while the file is read, and only when its end was reached without an
// error it is what was written. Its time is that of the version, which is what Sys of the
// [fs.FileInfo] returns.
//
// # Names
//
// The directories at the top are hosts, with a port that is not the usual one:
// "www.example.org:81". Below are the parts of the path as they stand in the URL, percent signs and
// all. The page of a directory, whose URL ends in a slash, is called index.html. Bytes that are not
// fit for a name become "#" and two hexadecimal digits: control characters, a backslash, "#", the
// "?" before a query and the slashes in it. Of the parts that file systems drop, an empty one is
// called "#", and the dots of "." and ".." are escaped.
//
// Where a name is taken, a "#" follows it: both "/a" and "/a/b" may be pages, and then "a" is the
// directory and "a#" the page; where "/" and "/index.html" are, the second one is "index.html#". A
// directory that is itself called index.html is "#69ndex.html". Where http and https have a page at
// the same place, it is that of https.
//
// # Limits
//
// Nothing is held in memory but what a call returns, which may be a long list; [fs.ReadDirFile] has
// it in pieces, in the order of the index. To find out whether there is anything in a directory,
// all that is below may have to be looked at, if nothing of it was valid at that time. URLs of more
// than 480 bytes, which the index keeps shortened, are left out, and so are those without a host.
type FS struct {
	archive *Archive
	spans   []span
	at      int64
}

var (
	_ fs.ReadDirFS = (*FS)(nil)
	_ fs.StatFS    = (*FS)(nil)
)

// FS returns the pages of a host and of all hosts below it, such as those of a registrable domain,
// that were valid at a time. An empty site means all hosts, and the zero Time the last versions.
// For a single host, [fs.Sub] leads into its directory.
//
// Each call of a method sees all that was appended before it.
func (a *Archive) FS(site string, t time.Time) *FS {
	f := &FS{archive: a, spans: everything, at: instant(t)}
	if site != "" {
		f.spans = siteSpans(site)
	}
	return f
}

// Open opens a page, or a directory as an [fs.ReadDirFile].
func (f *FS) Open(name string) (fs.File, error) {
	n, err := f.find("open", name)
	if err != nil {
		return nil, err
	}
	if n.dir {
		return &dirFile{node: n, path: name, list: f.list(n)}, nil
	}
	file, err := n.open()
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return file, nil
}

// Stat describes a page or a directory. It reads the record of a page, since its size is known
// there, and all of the body if that is coded.
func (f *FS) Stat(name string) (fs.FileInfo, error) {
	n, err := f.find("stat", name)
	if err != nil {
		return nil, err
	}
	info, err := n.Info()
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return info, nil
}

// ReadDir returns what is in a directory, sorted by name.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := f.find("readdir", name)
	if err == nil && !n.dir {
		err = &fs.PathError{Op: "readdir", Path: name, Err: errNotDir}
	}
	if err != nil {
		return nil, err
	}
	entries, err := f.list(n).take(-1)
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// node is what a name stands for: a directory, or a page. It is a [fs.DirEntry].
type node struct {
	fs   *FS
	name string
	dir  bool

	prefix  string  // that the keys in a directory have; "" for the top
	version Version // of a page
}

// find returns what a path stands for.
func (f *FS) find(op, name string) (*node, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	n, err := f.walk(name)
	if err == nil && n == nil {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return n, nil
}

// walk returns nil where there is nothing.
func (f *FS) walk(name string) (*node, error) {
	if name == "." {
		return &node{fs: f, name: ".", dir: true}, nil
	}
	host, below, deep := strings.Cut(name, "/")
	authority, ok := cutHostName(host)
	prefix := authority + ")/"
	if !ok || !f.covers(prefix) {
		return nil, nil
	}
	if !deep {
		return f.directory(host, prefix)
	}
	parts := strings.Split(below, "/")
	base := parts[len(parts)-1]
	for _, elem := range parts[:len(parts)-1] {
		part, ok := cutDirName(elem)
		if !ok {
			return nil, nil
		}
		prefix += part + "/"
	}
	// A directory has the plain name, if there is one.
	if part, ok := cutDirName(base); ok {
		if n, err := f.directory(base, prefix+part+"/"); n != nil || err != nil {
			return n, err
		}
	}
	return f.page(prefix, base)
}

// covers tells whether a host belongs to the site. A name that leads out of it stands for nothing.
func (f *FS) covers(prefix string) bool {
	return slices.ContainsFunc(f.spans, func(s span) bool { return s.low <= prefix && prefix < s.high })
}

// directory returns nil if no page lies below it.
func (f *FS) directory(name, prefix string) (*node, error) {
	found, err := f.any(prefix)
	if err != nil || !found {
		return nil, err
	}
	return &node{fs: f, name: name, dir: true, prefix: prefix}, nil
}

// page returns the page of that name, if no directory has it.
func (f *FS) page(prefix, name string) (*node, error) {
	if name == indexPage {
		if n, err := f.valid(name, prefix); n != nil || err != nil {
			return n, err
		}
	}
	part, marked, ok := cutPageName(name)
	if !ok {
		return nil, nil
	}
	if marked {
		if taken, err := f.taken(prefix, part); err != nil || !taken {
			return nil, err
		}
	}
	return f.valid(name, prefix+part)
}

// taken tells whether the plain name of a page belongs to something else.
func (f *FS) taken(prefix, part string) (bool, error) {
	switch {
	case part == indexPage:
		n, err := f.valid(indexPage, prefix)
		return n != nil, err
	case strings.Contains(part, "?"):
		return false, nil // no directory has a query
	}
	return f.any(prefix + part + "/")
}

// any tells whether a page lies below a prefix of keys.
func (f *FS) any(prefix string) (bool, error) {
	for at := prefix; ; {
		key, err := f.archive.index.seekURL(at)
		if err != nil || !strings.HasPrefix(key, prefix) {
			return false, err
		}
		if _, found, err := f.version(key); found || err != nil {
			return found, err
		}
		at = behind(key)
	}
}

// behind is less than any key after those of a URL.
func behind(key string) string { return key + "\x01" }

// valid returns the page at a key without its scheme, or nil if there is none. The schemes of one
// place are neighbours in the index.
func (f *FS) valid(name, base string) (best *node, err error) {
	prefix := base + "\x00"
	for at := prefix; ; {
		key, err := f.archive.index.seekURL(at)
		if err != nil || !strings.HasPrefix(key, prefix) {
			return best, err
		}
		v, found, err := f.version(key)
		if err != nil {
			return nil, err
		}
		if found && (best == nil || preference(v.URL) > preference(best.version.URL)) {
			best = &node{fs: f, name: name, version: v}
		}
		at = behind(key)
	}
}

// preference orders the schemes of pages at one place: a site that has both is moving to https.
func preference(url string) int {
	switch {
	case strings.HasPrefix(url, "https:"):
		return 2
	case strings.HasPrefix(url, "http:"):
		return 1
	}
	return 0
}

// version returns the version of a key that is a file in this view, if there is one.
func (f *FS) version(key string) (v Version, found bool, err error) {
	surt, _, whole := strings.Cut(key, "\x00")
	if !whole || isShortened(surt) {
		return v, false, nil
	}
	e, found, until, err := f.archive.index.floor(key, f.at)
	if err != nil || !found {
		return v, false, err
	}
	v = f.archive.describe(key, &e, until)
	if body := e.body(); body.length > 0 {
		return v, body.status/100 == 2, nil
	}
	v, err = f.archive.elsewhere(key, v)
	if err != nil || v.Content == (Location{}) {
		return v, false, nil // there is nothing to read, as for a snapshot
	}
	return v, v.Status/100 == 2 || v.Status == 304, nil
}
