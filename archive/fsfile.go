package archive

import (
	"bufio"
	"compress/zlib"
	"errors"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

var (
	errNotDir = errors.New("not a directory")
	errIsDir  = errors.New("is a directory")
)

// Name returns the last part of the path.
func (n *node) Name() string { return n.name }

// IsDir tells whether it is a directory.
func (n *node) IsDir() bool { return n.dir }

// Type returns the type bits alone.
func (n *node) Type() fs.FileMode { return n.info(0).Mode().Type() }

// Info describes it. What a page has in bytes is only known by reading it.
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

// info describes a node by the size that somebody has found out; a directory has none.
func (n *node) info(size int64) fs.FileInfo { return nodeInfo{n, size} }

// nodeInfo is what a [fs.FileInfo] tells of a node.
type nodeInfo struct {
	node *node
	size int64
}

// Name returns the last part of the path.
func (i nodeInfo) Name() string { return i.node.name }

// Size returns the length of the content.
func (i nodeInfo) Size() int64 { return i.size }

// Mode says that nothing may be written.
func (i nodeInfo) Mode() fs.FileMode {
	if i.node.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// ModTime returns when the page was found.
func (i nodeInfo) ModTime() time.Time { return i.node.version.Time }

// IsDir tells whether it is a directory.
func (i nodeInfo) IsDir() bool { return i.node.dir }

// Sys returns the [Version] of a page.
func (i nodeInfo) Sys() any {
	if i.node.dir {
		return nil
	}
	return i.node.version
}

// pageFile is an open page. It is not safe for concurrent use.
type pageFile struct {
	node *node
	rec  *Record
	body io.Reader
	size int64     // or -1 as long as nobody has counted
	free io.Closer // what the decoder holds; nil for nothing
}

// open reads the record up to its body. A record that holds no HTTP message is the file itself.
func (n *node) open() (*pageFile, error) {
	rec, err := n.fs.archive.Read(n.version.Content)
	if err != nil {
		return nil, err
	}
	f := &pageFile{node: n, rec: rec, body: rec, size: rec.Size}
	if isHTTP(rec.Get("Content-Type")) {
		if err := f.decode(); err != nil {
			_ = rec.Close() // the first error says more
			return nil, err
		}
	}
	return f, nil
}

// decode leads to the body of the message in the record.
func (f *pageFile) decode() error {
	message, err := f.rec.HTTP()
	if err != nil {
		return err
	}
	f.body, f.size = message.Body, message.Size
	body := bufio.NewReader(message.Body)
	// Servers name a coding that they did not apply: the first bytes are asked, too.
	begin, _ := body.Peek(4)
	switch coding := strings.ToLower(message.Get("Content-Encoding")); {
	case (coding == "gzip" || coding == "x-gzip") && strings.HasPrefix(string(begin), "\x1f\x8b"):
		f.body, err = gzip.NewReader(body)
	case coding == "deflate" && isZlib(begin):
		f.body, err = zlib.NewReader(body)
	case coding == "zstd" && string(begin) == "\x28\xb5\x2f\xfd":
		var zs *zstd.Decoder
		zs, err = zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxFileWindow))
		if err == nil {
			f.body, f.free = zs, zs.IOReadCloser()
		}
	default:
		f.body = body
		return nil
	}
	f.size = -1
	return err
}

// maxFileWindow bounds what a page in zstd can demand; RFC 9659 allows no more on the web.
const maxFileWindow = 8 << 20

// isZlib tells by its header (RFC 1950, section 2.2) whether a body is what the name deflate stands
// for in HTTP. Some servers send bare deflate data, which nothing tells from any others.
func isZlib(begin []byte) bool {
	return len(begin) >= 2 && begin[0]&15 == 8 && (int(begin[0])<<8|int(begin[1]))%31 == 0
}

// Stat describes the page. It reads it a second time, if its size is not known.
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

// Read reads from the page. A body that the crawler has cut ends where it was cut.
func (f *pageFile) Read(p []byte) (int, error) {
	if f.rec == nil {
		return 0, fs.ErrClosed
	}
	n, err := f.body.Read(p)
	if f.node.version.Truncated && errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// Close lets go of the file of the archive.
func (f *pageFile) Close() error {
	if f.rec == nil {
		return fs.ErrClosed
	}
	if f.free != nil {
		_ = f.free.Close() // of a decoder, which has nothing to tell
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

// Close does nothing: a directory holds nothing open.
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
	prefix string // of the keys
	spans  []span // of hosts, at the top
	at     string // where to go on
}

// list begins at the first key of a directory; at the top, at the first host of the site.
func (f *FS) list(n *node) *lister {
	l := &lister{fs: f, prefix: n.prefix, at: n.prefix}
	if n.prefix == "" {
		l.spans = f.spans
		l.at = f.spans[0].low
	}
	return l
}

// take returns the next n entries or all that are left, as [fs.ReadDirFile] has it.
func (l *lister) take(n int) (entries []fs.DirEntry, err error) {
	for n <= 0 || len(entries) < n {
		entry, err := l.next()
		if err != nil {
			return entries, err
		}
		if entry == nil {
			break
		}
		entries = append(entries, entry)
	}
	if n > 0 && len(entries) == 0 {
		return nil, io.EOF
	}
	return entries, nil
}

// next returns nil at the end.
func (l *lister) next() (*node, error) {
	for {
		key, err := l.fs.archive.index.seekURL(l.at)
		if err != nil {
			return nil, err
		}
		var n *node
		switch {
		case l.prefix != "" && !strings.HasPrefix(key, l.prefix):
			return nil, nil
		case l.prefix != "":
			n, err = l.below(key)
		case key == "" || key >= l.spans[0].high:
			if l.spans = l.spans[1:]; len(l.spans) == 0 {
				l.spans, l.at = everything, everything[0].high // and stays there
				return nil, nil
			}
			l.at = l.spans[0].low
		default:
			n, err = l.host(key)
		}
		if n != nil || err != nil {
			return n, err
		}
	}
}

// host returns the host of a key, and goes behind it.
func (l *lister) host(key string) (*node, error) {
	surt, _, whole := strings.Cut(key, "\x00")
	authority, _, found := strings.Cut(surt, ")/")
	if !whole || !found {
		l.at = behind(key)
		return nil, nil
	}
	prefix := authority + ")/"
	l.at = after(prefix).high
	return l.fs.directory(hostName(authority), prefix)
}

// below returns what a key stands for in the directory, and goes behind it.
func (l *lister) below(key string) (*node, error) {
	base, _, _ := strings.Cut(key, "\x00")
	rest := base[len(l.prefix):]
	place, _, _ := strings.Cut(rest, "?")
	if part, _, deep := strings.Cut(place, "/"); deep {
		prefix := l.prefix + part + "/"
		l.at = after(prefix).high
		return l.fs.directory(dirName(part), prefix)
	}
	l.at = behind(base)
	n, err := l.fs.valid("", base)
	if n == nil || err != nil {
		return nil, err
	}
	taken := false
	if rest != "" {
		taken, err = l.fs.taken(l.prefix, rest)
	}
	n.name = pageName(rest, taken)
	return n, err
}
