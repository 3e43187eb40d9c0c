package durable

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// WriteFile replaces a file of the operating system by what from writes, as [ReplaceWith] does. A
// symbolic link stays, and the file that it points to is replaced, or created if it does not exist.
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
	path := target(name)
	removeStale(path)
	dir, base := filepath.Dir(path), filepath.Base(path)
	temp := fmt.Sprintf("%s.%08x%s", base, rand.Uint32(), NewName)
	return ReplaceWith(open(dir), base, temp, func(f vfs.File) error {
		if old, err := os.Stat(path); err == nil {
			if err := os.Chmod(filepath.Join(dir, temp), old.Mode().Perm()); err != nil {
				return err
			}
		}
		return write(io.NewOffsetWriter(f, 0))
	})
}

// mostLinks bounds the symbolic links that lead to one file, as Linux does.
const mostLinks = 40

// target returns the file that a name stands for, through symbolic links. The file need not exist, so
// filepath.EvalSymlinks is only good for its directory. If the links lead nowhere or in a circle, it
// is the name itself.
func target(name string) string {
	path := name
	for range mostLinks {
		// Not filepath.Dir, which drops ".." behind a link.
		dir, base := filepath.Split(path)
		if dir == "" {
			dir = "."
		}
		dir, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return name
		}
		path = filepath.Join(dir, base)
		to, err := os.Readlink(path)
		if err != nil {
			return path
		}
		if path = to; !filepath.IsAbs(to) {
			path = dir + string(filepath.Separator) + to
		}
	}
	return name
}

// RemoveStale removes the temporary files of [WriteFile] for a name whose processes were killed: those
// that nobody has written to for a while. Errors are ignored, as the next call tries again.
func RemoveStale(name string) { removeStale(target(name)) }

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
