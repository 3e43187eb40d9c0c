package stage

import (
	"fmt"
	"io"
	"os"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// ReplaceFile replaces a file atomically: it has either the old or the new content, even after a
// power failure.
func ReplaceFile(name string, data []byte) error {
	return ReplaceWith(name, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// ReplaceWith is ReplaceFile for data that is not in memory.
func ReplaceWith(name string, write func(io.Writer) error) error {
	return durable.WriteFileIn(func(dir string) vfs.FS { return vfs.OS(dir) }, name, write)
}

// SetAside renames what cannot be read, so that nothing of it is lost, and returns its new name:
// with the ending .damaged, and a number if there is one already.
func SetAside(name string) (aside string, err error) {
	aside = asideOf(name)
	return aside, vfs.RenameDir(name, aside)
}

// SetCopyAside is SetAside for a file with some data that stays until it is replaced.
func SetCopyAside(name string, data []byte) (aside string, err error) {
	aside = asideOf(name)
	return aside, ReplaceFile(aside, data)
}

// asideOf returns a name that nothing has yet.
func asideOf(name string) (aside string) {
	for n := 1; ; n++ {
		aside = name + ".damaged"
		if n > 1 {
			aside += fmt.Sprintf("-%d", n)
		}
		if _, err := os.Lstat(aside); err != nil {
			return aside
		}
	}
}
