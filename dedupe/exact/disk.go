package exact

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// A disk is the directory that a Set writes to, with no more than it needs, so that tests can take
// the power away at any step.
type disk interface {
	create(name string) (file, error) // empty, for reading and writing
	open(name string) (file, error)   // for reading and writing
	rename(from, to string) error
	remove(name string) error
	list() ([]string, error)
	sync() error // makes creations, renamings and removals last
}

// A file is read and written at places, so that walks and merges need not share a position.
type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Sync() error
	size() (int64, error)
}

// A directory is a disk of the operating system.
type directory string

func (d directory) path(name string) string { return filepath.Join(string(d), name) }

func (d directory) create(name string) (file, error) {
	f, err := os.OpenFile(d.path(name), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	return osFile{f}, err
}

func (d directory) open(name string) (file, error) {
	f, err := os.OpenFile(d.path(name), os.O_RDWR, 0)
	return osFile{f}, err
}

func (d directory) rename(from, to string) error { return os.Rename(d.path(from), d.path(to)) }

func (d directory) remove(name string) error { return os.Remove(d.path(name)) }

func (d directory) list() (names []string, err error) {
	entries, err := os.ReadDir(string(d))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func (d directory) sync() error { return vfs.SyncDir(string(d)) }

type osFile struct{ *os.File }

func (f osFile) size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// A writer writes one piece after the other, in large writes. It remembers the first error.
type writer struct {
	to  file
	at  int64 // where buf goes
	buf []byte
	n   int64 // bytes that reached the file
	err error
}

// writeSize is where larger writes are no faster any more.
const writeSize = 256 << 10

func newWriter(to file, at int64) *writer { return &writer{to: to, at: at} }

// write takes a copy of b. Whether it can be written, finish tells.
func (w *writer) write(b []byte) {
	if len(w.buf)+len(b) > writeSize {
		w.flush()
	}
	w.buf = append(w.buf, b...)
}

func (w *writer) flush() {
	if w.err == nil {
		var n int
		n, w.err = w.to.WriteAt(w.buf, w.at)
		w.at += int64(n)
		w.n += int64(n)
	}
	w.buf = w.buf[:0]
}

// finish writes what is left and returns the first error.
func (w *writer) finish() error {
	w.flush()
	return w.err
}

// ErrCorrupt is what every [CorruptError] unwraps to.
var ErrCorrupt = errors.New("exact: corrupt file")

// A CorruptError says which file is damaged, and where.
type CorruptError struct {
	File   string
	Offset int64 // in bytes, of the piece that is wrong
	Reason string
}

// Error returns all fields.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("exact: %s: byte %d: %s", e.File, e.Offset, e.Reason)
}

// Unwrap returns ErrCorrupt.
func (e *CorruptError) Unwrap() error { return ErrCorrupt }

// readFull fills b from a file, where a file that ends too early is corrupt.
func readFull(f file, name string, b []byte, at int64) error {
	n, err := f.ReadAt(b, at)
	switch {
	case n == len(b):
		return nil
	case err == io.EOF:
		return &CorruptError{name, at, "the file ends too early"}
	}
	return fmt.Errorf("exact: read %s: %w", name, err)
}
