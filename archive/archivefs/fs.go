// Package archivefs presents the pages of an archive, as of a point in time, as a read-only file
// system:
//
//	site := archivefs.New(web, "example.org", lastMonday)
//	err := http.ListenAndServe("localhost:8080", archivefs.Handler(site))
//
// A file is a version that was valid then and has a 2xx status; redirects and errors are not files.
// Its content is the body without its content coding, streamed from the archive. It is verified
// only when its end is reached without an error. The modification time is that of the version, and
// Sys of the [fs.FileInfo] returns the [archive.Version].
//
// # Names
//
// Top-level directories are hosts, with the port if it is not the default: "www.example.org:81".
// Below them are the segments of the URL's path, with percent-encoding unchanged. A page whose URL
// ends in a slash is named index.html. Bytes that are invalid in a name become "#" and two
// hexadecimal digits: control characters, a backslash, "#", the "?" before a query and the slashes
// in it. An empty segment is named "#", and the segments "." and ".." are escaped, since file
// systems drop them.
//
// If a name is taken, "#" is appended. If "/a" and "/a/b" are pages, "a" is the directory and "a#"
// the page; if "/" and "/index.html" are, the second is "index.html#". A directory named index.html
// becomes "#69ndex.html". If http and https have a page with the same name, the file is that of
// https.
//
// # Limits
//
// Memory is only used for the result of a call. That may be a long list; [fs.ReadDirFile] returns
// it in pieces, in the order of the index. If no page in a directory was valid at the time, finding
// that out takes a walk over all URLs below it. URLs of more than 480 bytes, which the index
// shortens, and URLs without a host are omitted.
package archivefs

import (
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
)

// FS is a view of an archive as of a time. Its methods are safe for concurrent use. Each call sees
// all captures appended before it.
type FS struct {
	archive *archive.Archive
	spans   []urlkey.Span
	at      time.Time
}

var (
	_ fs.ReadDirFS = (*FS)(nil)
	_ fs.StatFS    = (*FS)(nil)
)

// New returns the pages of a host and all its subdomains that were valid at a time. The site is
// usually a registrable domain; an empty one means all hosts. The zero Time means the latest
// versions. For a single host, pass its directory to [fs.Sub].
func New(a *archive.Archive, site string, at time.Time) *FS {
	f := &FS{archive: a, spans: []urlkey.Span{urlkey.All}, at: at}
	if site != "" {
		f.spans = urlkey.Site(site)
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

// Stat describes a page or a directory. To find the size of a page, it reads the record, and all of
// the body if that is encoded.
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

// ReadDir returns the entries of a directory, sorted by name.
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
	slices.SortFunc(entries, func(a, b fs.DirEntry) int {
		return strings.Compare(a.Name(), b.Name())
	})
	return entries, nil
}

// node is a directory or a page. It is a [fs.DirEntry].
type node struct {
	fs   *FS
	name string
	dir  bool

	prefix  string          // of the SURTs in a directory; "" for the top
	version archive.Version // of a page
}

// find returns the node of a path.
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

// walk returns the node of a valid path, or nil if there is none.
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
	// If there is a directory, it has the plain name.
	if part, ok := cutDirName(base); ok {
		if n, err := f.directory(base, prefix+part+"/"); n != nil || err != nil {
			return n, err
		}
	}
	return f.page(prefix, base)
}

// covers reports whether a host belongs to the site. Other hosts have no nodes.
func (f *FS) covers(prefix string) bool {
	return slices.ContainsFunc(f.spans, func(s urlkey.Span) bool {
		return s.Low <= prefix && prefix < s.High
	})
}

// directory returns a directory, or nil if no page is below it.
func (f *FS) directory(name, prefix string) (*node, error) {
	found, err := f.any(prefix)
	if err != nil || !found {
		return nil, err
	}
	return &node{fs: f, name: name, dir: true, prefix: prefix}, nil
}

// page returns the page with a name that no directory has, or nil if there is none.
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

// taken reports whether the plain name of a page is that of a directory or of another page.
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

// any reports whether a page is below a prefix of SURTs.
func (f *FS) any(prefix string) (bool, error) {
	surt, _, err := f.first(urlkey.Under(prefix))
	return surt != "", err
}

// valid returns the page at a SURT, or nil if there is none. If several schemes have one, it
// returns the preferred one.
func (f *FS) valid(name, surt string) (best *node, err error) {
	for v, err := range f.archive.ValidAt(f.at, surt+"\x00", surt+"\x01") {
		if err != nil {
			return nil, err
		}
		if _, ok := fileAt(&v); !ok {
			continue
		}
		if best == nil {
			best = &node{fs: f, name: name, version: v}
		}
		best.prefer(v)
	}
	return best, nil
}

// prefer replaces the version of a page by one with the same SURT and a preferred scheme.
func (n *node) prefer(v archive.Version) {
	if preference(v.URL) > preference(n.version.URL) {
		n.version = v
	}
}

// preference ranks the schemes of pages with the same SURT. It prefers https, because a site with
// both is moving to it.
func preference(url string) int {
	switch {
	case strings.HasPrefix(url, "https:"):
		return 2
	case strings.HasPrefix(url, "http:"):
		return 1
	}
	return 0
}

// first returns the first page in a range, with its SURT, or "" if there is none.
func (f *FS) first(within urlkey.Span) (surt string, v archive.Version, err error) {
	for v, err := range f.archive.ValidAt(f.at, within.Low, within.High) {
		if err != nil {
			return "", v, err
		}
		if surt, ok := fileAt(&v); ok {
			return surt, v, nil
		}
	}
	return "", v, nil
}

// fileAt returns the SURT of a version that is a file.
func fileAt(v *archive.Version) (surt string, ok bool) {
	if v.Content == (archive.Location{}) || v.ContentStatus/100 != 2 {
		return "", false
	}
	key, long := urlkey.Of(v.URL)
	surt, _, whole := strings.Cut(key, "\x00")
	return surt, whole && long == ""
}
