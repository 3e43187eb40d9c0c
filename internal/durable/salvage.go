package durable

import (
	"errors"
	"io"
	"syscall"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// Salvage returns a file system in which bytes that the disk cannot read are zeros. It is for files in
// which each piece has a checksum: these say which pieces are damaged, and the others can be read.
func Salvage(fs vfs.FS) vfs.FS { return salvageFS{fs} }

type salvageFS struct{ vfs.FS }

// Open opens a file as Salvage says.
func (s salvageFS) Open(name string) (vfs.File, error) {
	f, err := s.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return SalvageFile(f), nil
}

// Create creates a file, to be read as Salvage says.
func (s salvageFS) Create(name string) (vfs.File, error) {
	f, err := s.FS.Create(name)
	if err != nil {
		return nil, err
	}
	return SalvageFile(f), nil
}

// SalvageFile is [Salvage] for one file.
func SalvageFile(f vfs.File) vfs.File { return salvageFile{f} }

type salvageFile struct{ vfs.File }

var _ io.ReaderAt = salvageFile{}

// pageSize is the size of the pieces in which systems read a disk: one sector costs all of its page.
const pageSize = 4 << 10

// ReadAt reads again, a page at a time, after the disk has failed.
func (f salvageFile) ReadAt(b []byte, at int64) (n int, err error) {
	if n, err = f.File.ReadAt(b, at); !errors.Is(err, syscall.EIO) {
		return n, err
	}
	for n = 0; n < len(b); {
		from := at + int64(n)
		page := b[n:min(len(b), n+int(pageSize-from%pageSize))]
		read, err := f.File.ReadAt(page, from)
		if errors.Is(err, syscall.EIO) {
			clear(page)
			read, err = len(page), nil
		}
		if n += read; err != nil {
			return n, err
		}
	}
	return n, nil
}
