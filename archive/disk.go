package archive

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// directory is all that an archive needs of a file system. Tests put failing disks behind it.
type directory interface {
	create(name string) (file, error) // for writing; an error if the name is taken
	rename(from, to string) error
	remove(name string) error
	list() ([]string, error) // the names of the regular files, sorted
	sync() error             // forces the names themselves to disk
}

// file is an open file of a [directory]. It is written at offsets, so that nothing depends on where
// a failed write left the position.
type file interface {
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Sync() error
}

// osDir is a directory of the operating system, as an absolute path.
type osDir string

// makeDir makes dir and the directories above it that are missing. The path is made absolute
// because the process may change its working directory between two files.
func makeDir(dir string) (osDir, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return osDir(abs), vfs.MakeDir(abs, 0o755)
}

// path requires a plain file name; those of an archive come from newName.
func (d osDir) path(name string) string { return filepath.Join(string(d), name) }

// create fails if the name is taken (O_EXCL), so that no file is ever overwritten or appended to.
func (d osDir) create(name string) (file, error) {
	return os.OpenFile(d.path(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

// rename would replace a file. The random part of the names keeps that from happening.
func (d osDir) rename(from, to string) error { return os.Rename(d.path(from), d.path(to)) }

// remove is for files that hold nothing, and for the probe.
func (d osDir) remove(name string) error { return os.Remove(d.path(name)) }

// replace writes a small file as a whole: whatever happens, the old one or the new one is there.
func (d osDir) replace(name string, data []byte) (err error) {
	f, err := os.CreateTemp(string(d), name+".*.tmp")
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), d.path(name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return d.sync()
}

// list leaves out directories and links: what is read and moved about should be a file of its own.
func (d osDir) list() ([]string, error) {
	entries, err := os.ReadDir(string(d))
	var names []string
	for _, entry := range entries {
		if entry.Type().IsRegular() {
			names = append(names, entry.Name())
		}
	}
	return names, err
}

func (d osDir) sync() error { return vfs.SyncDir(string(d)) }
