package archivefs

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
	"github.com/spinneret-go/spinneret/archive/warc"
)

var (
	errNotDir = errors.New("not a directory")
	errIsDir  = errors.New("is a directory")
	errSeek   = errors.New("invalid offset")
)

// Name returns the last part of the path.
func (n *node) Name() string { return n.name }

// IsDir reports whether it is a directory.
func (n *node) IsDir() bool { return n.dir }

// Type returns the type bits of the mode.
func (n *node) Type() fs.FileMode { return n.info(0).Mode().Type() }

// Info describes the entry. It opens a page, and reads all of it if the size is unknown.
func (n *node) Info() (fs.FileInfo, error) {
	if n.dir {
		return n.info(0), nil
	}
	file, err := n.open()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return file.Stat()
}

// info describes a node with a known size, which is 0 for a directory.
func (n *node) info(size int64) fs.FileInfo { return nodeInfo{n, size} }

// nodeInfo is the [fs.FileInfo] of a node.
type nodeInfo struct {
	node *node
	size int64
}

// Name returns the last part of the path.
func (i nodeInfo) Name() string { return i.node.name }

// Size returns the length of the content.
func (i nodeInfo) Size() int64 { return i.size }

// Mode returns read-only permissions.
func (i nodeInfo) Mode() fs.FileMode {
	if i.node.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// ModTime returns the time of the version.
func (i nodeInfo) ModTime() time.Time { return i.node.version.Time }

// IsDir reports whether it is a directory.
func (i nodeInfo) IsDir() bool { return i.node.dir }

// Sys returns the [archive.Version] of a page.
func (i nodeInfo) Sys() any {
	if i.node.dir {
		return nil
	}
	return i.node.version
}

// pageFile is an open page. It is not safe for concurrent use.
type pageFile struct {
	node *node
	rec  *warc.Record
	body io.Reader
	size int64 // or -1 while unknown
	pos  int64 // of body
	next int64 // of the next Read
}

// open reads the record up to its body.
func (n *node) open() (*pageFile, error) {
	rec, err := n.fs.archive.Read(n.version.Content)
	if err != nil {
		return nil, err
	}
	f := &pageFile{node: n, rec: rec}
	if f.body, f.size, err = rec.Content(math.MaxInt64 - 1); err != nil {
		_ = rec.Close() // the first error says more
		return nil, err
	}
	return f, nil
}

// Stat describes the page. If the size is unknown, it reads the page a second time.
func (f *pageFile) Stat() (fs.FileInfo, error) {
	if f.rec == nil {
		return nil, fs.ErrClosed
	}
	if f.size < 0 {
		other, err := f.node.open()
		if err != nil {
			return nil, err
		}
		n, err := io.Copy(io.Discard, struct{ io.Reader }{other})
		if closed := other.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return nil, err
		}
		f.size = n
	}
	return f.node.info(f.size), nil
}

// Read reads from the page. A body that the crawler truncated ends with [io.EOF].
func (f *pageFile) Read(p []byte) (int, error) {
	if f.rec == nil {
		return 0, fs.ErrClosed
	}
	if f.next != f.pos {
		if err := f.move(); err != nil {
			return 0, err
		}
	}
	n, err := body{f}.Read(p)
	f.next = f.pos
	return n, err
}

// Seek implements [io.Seeker], which http.FileServerFS needs to guess media types and to serve
// ranges. It costs nothing, but the next Read then reads the page up to the offset, from its start
// if that is before the current one.
func (f *pageFile) Seek(offset int64, whence int) (int64, error) {
	if f.rec == nil {
		return 0, fs.ErrClosed
	}
	base := int64(0)
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		base = f.next
	case io.SeekEnd:
		info, err := f.Stat()
		if err != nil {
			return 0, err
		}
		base = info.Size()
	default:
		return 0, errSeek
	}
	if offset < -base || offset > math.MaxInt64-base {
		return 0, errSeek
	}
	f.next = base + offset
	return f.next, nil
}

// move reads up to the offset of the next Read.
func (f *pageFile) move() error {
	if f.next < f.pos {
		again, err := f.node.open()
		if err != nil {
			return err
		}
		_ = f.rec.Close() // what was read of it was returned
		f.rec, f.body, f.pos = again.rec, again.body, 0
	}
	_, err := io.CopyN(io.Discard, body{f}, f.next-f.pos)
	return err
}

// body reads the body of a page, and counts its bytes.
type body struct{ *pageFile }

// Read is not safe for concurrent use.
func (b body) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	b.pos += int64(n)
	if b.node.version.Truncated && errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// Close closes the file of the archive.
func (f *pageFile) Close() error {
	if f.rec == nil {
		return fs.ErrClosed
	}
	err := f.rec.Close()
	f.rec = nil
	return err
}

// dirFile is an open directory. It is not safe for concurrent use.
type dirFile struct {
	node *node
	path string
	list *lister
}

// Stat describes the directory.
func (d *dirFile) Stat() (fs.FileInfo, error) { return d.node.Info() }

// Read fails.
func (d *dirFile) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.path, Err: errIsDir}
}

// Close does nothing: a directory has no open files.
func (d *dirFile) Close() error { return nil }

// ReadDir returns the next entries, in the order of the index.
func (d *dirFile) ReadDir(n int) ([]fs.DirEntry, error) {
	entries, err := d.list.take(n)
	if err != nil && err != io.EOF {
		err = &fs.PathError{Op: "readdir", Path: d.path, Err: err}
	}
	return entries, err
}

// lister walks through a directory in the order of the index. It is not safe for concurrent use.
type lister struct {
	fs     *FS
	prefix string        // of the SURTs; "" at the top
	left   []urlkey.Span // the ranges not yet visited
}

// list returns a lister at the start of a directory. The top directory lists the hosts of the site.
func (f *FS) list(n *node) *lister {
	if n.prefix == "" {
		return &lister{fs: f, left: slices.Clone(f.spans)}
	}
	return &lister{fs: f, prefix: n.prefix, left: []urlkey.Span{urlkey.Under(n.prefix)}}
}

// take returns the next n entries, or all remaining ones, as ReadDir of [fs.ReadDirFile] does.
func (l *lister) take(n int) (entries []fs.DirEntry, err error) {
	more := func() bool { return n <= 0 || len(entries) < n }
	for err == nil && len(l.left) > 0 && more() {
		err = l.walk(func(entry *node) bool {
			entries = append(entries, entry)
			return more()
		})
	}
	if n > 0 && len(entries) == 0 && err == nil {
		return nil, io.EOF
	}
	return entries, err
}

// walk visits entries in the order of the index. It stops after the first directory, whose pages it
// skips, or at the end of a range.
func (l *lister) walk(visit func(*node) bool) error {
	var page *node // the previous page; one of another scheme may replace it
	var at string  // its SURT
	for v, err := range l.fs.archive.ValidAt(l.fs.at, l.left[0].Low, l.left[0].High) {
		if err != nil {
			return err
		}
		surt, ok := fileAt(&v)
		switch {
		case !ok:
			continue
		case page != nil && surt == at:
			page.prefer(v)
			continue
		}
		if more, err := l.page(page, at, visit); err != nil || !more {
			return err
		}
		if name, prefix, deep := l.directory(surt); deep {
			l.left[0].Low = urlkey.Under(prefix).High
			visit(&node{fs: l.fs, name: name, dir: true, prefix: prefix})
			return nil
		}
		page, at = &node{fs: l.fs, version: v}, surt
	}
	if more, err := l.page(page, at, visit); err != nil || !more {
		return err
	}
	l.left = l.left[1:]
	return nil
}

// directory returns the entry that contains a page, unless the page is itself an entry.
func (l *lister) directory(surt string) (name, prefix string, deep bool) {
	if l.prefix == "" {
		authority, _, _ := strings.Cut(surt, ")/")
		return hostName(authority), authority + ")/", true
	}
	path, _, _ := strings.Cut(surt[len(l.prefix):], "?")
	part, _, deep := strings.Cut(path, "/")
	return dirName(part), l.prefix + part + "/", deep
}

// page visits a page, unless it is nil, and advances past it. It reports whether visit wants more.
func (l *lister) page(page *node, surt string, visit func(*node) bool) (more bool, err error) {
	if page == nil {
		return true, nil
	}
	rest, taken := surt[len(l.prefix):], false
	if rest != "" {
		if taken, err = l.fs.taken(l.prefix, rest); err != nil {
			return false, err
		}
	}
	page.name = pageName(rest, taken)
	l.left[0].Low = surt + "\x01"
	return visit(page), nil
}
