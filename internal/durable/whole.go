package durable

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// WriteFile replaces a file of the operating system by what from writes, as [ReplaceWith] does. A
// symbolic link to a file stays, and that file is replaced; one that leads nowhere is replaced itself,
// and one that cannot be followed is an error. So is anything but a regular file, such as a device.
// The file keeps its mode; only the owner may read a new one.
//
// Several processes may write one file: each call has a temporary file of its own, so the last one
// wins and none is torn. It first does what [RemoveStale] does.
func WriteFile(name string, from io.WriterTo) error {
	return WriteFileIn(func(dir string) vfs.FS { return vfs.OS(dir) }, name, func(w io.Writer) error {
		_, err := from.WriteTo(w)
		return err
	})
}

// WriteFileIn is [WriteFile] for a caller who opens the directory.
func WriteFileIn(open func(dir string) vfs.FS, name string, write func(io.Writer) error) error {
	path, err := target(name)
	if err != nil {
		return err
	}
	old, err := os.Stat(path)
	if err == nil && !old.Mode().IsRegular() {
		return fmt.Errorf("write %s: it is not a regular file", path)
	}
	removeStale(path)
	dir, base := filepath.Dir(path), filepath.Base(path)
	temp := fmt.Sprintf("%s.%08x%s", base, rand.Uint32(), NewName)
	return ReplaceWith(open(dir), base, temp, func(f vfs.File) error {
		if old != nil {
			if err := os.Chmod(filepath.Join(dir, temp), old.Mode().Perm()); err != nil {
				return err
			}
		}
		return write(io.NewOffsetWriter(f, 0))
	})
}

// target returns the file that a name stands for, through symbolic links. If there is none, it is the name
// itself, in the directory that it stands for. Whether there is one may be unknown, for lack of permission.
func target(name string) (string, error) {
	path, err := filepath.EvalSymlinks(name)
	if err == nil {
		return path, nil
	}
	var failed *fs.PathError // unlike a circle of links
	if errors.As(err, &failed) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return "", err
	}
	dir, base := filepath.Split(name) // not filepath.Dir, which drops ".." behind a link
	if real, err := filepath.EvalSymlinks(cmp.Or(dir, ".")); err == nil {
		return filepath.Join(real, base), nil
	}
	return name, nil
}

// RemoveStale removes the temporary files of [WriteFile] for a name whose processes were killed: those
// that nobody has written to for a while. Errors are ignored, as the next call tries again.
func RemoveStale(name string) {
	if path, err := target(name); err == nil {
		removeStale(path)
	}
}

func removeStale(path string) {
	dir, base := filepath.Dir(path), filepath.Base(path)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !isTemp(e.Name(), base) || !e.Type().IsRegular() {
			continue
		}
		if f, err := e.Info(); err == nil && time.Since(f.ModTime()) > staleAfter {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// staleAfter is longer than a disk stalls.
const staleAfter = time.Minute

// isTemp reports whether a name is one that WriteFile gives to a temporary file of base.
func isTemp(name, base string) bool {
	digits, ok := strings.CutPrefix(name, base+".")
	if !ok {
		return false
	}
	digits, ok = strings.CutSuffix(digits, NewName)
	return ok && len(digits) == 8 && strings.Trim(digits, "0123456789abcdef") == ""
}
