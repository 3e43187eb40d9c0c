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
// If this process may not write there, that is the path of a copy. The files of the archive are
// linked.
func readDirectory(path, command string, log io.Writer) (at string, closing func() error, err error) {
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
	unread, err := copyCrawl(path, at)
	if err == nil && len(unread) > 0 && command == "check" {
		err = fmt.Errorf("%s: %w: check reads every file, so run it as the owner of the crawl",
			unread[0], fs.ErrPermission)
	}
	if err != nil {
		return "", nil, errors.Join(err, closing())
	}
	for _, name := range unread {
		fmt.Fprintf(log, "skipped %s: no permission to read it\n", name)
	}
	return at, closing, nil
}

// archiveLock is locked while an archive is open.
const archiveLock = "lock"

// copyCrawl copies a crawl. It returns the names that this user may not read. Locks are
// not copied.
func copyCrawl(from, to string) (unread []string, err error) {
	from, err = filepath.Abs(from)
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrPermission) && path != from {
				unread = append(unread, path)
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
		case !entry.Type().IsRegular() || name == lockName || name == archiveLock:
			return nil
		case isFinishedWARC(name):
			return os.Symlink(path, target)
		}
		err = CopyFile(path, target)
		if errors.Is(err, fs.ErrPermission) {
			unread = append(unread, path)
			return nil
		}
		return err
	})
	return unread, err
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
