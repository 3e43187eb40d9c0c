package cockpit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// readDirectory opens the directory of a crawl for a command that reads it, and returns its path.
// If this process may not write there, that is the path of a copy. whole also copies the files of
// the archive, which are otherwise linked.
func readDirectory(
	path, command string, whole bool, log io.Writer,
) (at string, closing func() error, err error) {
	d, err := existingDirectory(path, command)
	if err == nil {
		return path, d.Close, nil
	}
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		return "", nil, err
	}
	if held(path) {
		return "", nil, heldError(path)
	}
	at, err = os.MkdirTemp("", "fullcrawler-")
	if err != nil {
		return "", nil, err
	}
	fmt.Fprintf(log, "%s is read-only: reading a copy in %s\n", path, at)
	closing = func() error { return os.RemoveAll(at) }
	if err := copyCrawl(path, at, whole, log); err != nil {
		return "", nil, errors.Join(err, closing())
	}
	return at, closing, nil
}

// copyCrawl copies a crawl. Files that this user may not read are skipped and reported.
func copyCrawl(from, to string, whole bool, log io.Writer) error {
	from, err := filepath.Abs(from)
	if err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrPermission) && path != from {
				fmt.Fprintf(log, "skipped %s: no permission to read it\n", path)
				return fs.SkipDir
			}
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		switch {
		case entry.IsDir() && (name == "." || name == stage.PagesDir):
			return os.MkdirAll(target, 0o700)
		case entry.IsDir():
			return fs.SkipDir // not part of a crawl
		case !entry.Type().IsRegular():
			return nil
		case isFinishedWARC(name) && !whole:
			return os.Symlink(path, target)
		}
		err = CopyFile(path, target)
		if errors.Is(err, fs.ErrPermission) {
			fmt.Fprintf(log, "skipped %s: no permission to read it\n", path)
			return nil
		}
		return err
	})
}

// isFinishedWARC reports whether a file is a finished file of the archive.
func isFinishedWARC(name string) bool {
	for _, end := range []string{".warc", ".warc.gz", ".warc.zst"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// CopyFile copies a file to one that is not there yet.
func CopyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
