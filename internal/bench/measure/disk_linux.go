package measure

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// DropPages evicts the synced pages of the files in a directory from the page cache, whose size has
// no limit. So a store benefits only from its own memory, which has one.
func DropPages(dir string) error {
	return filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil // it may have been removed
		}
		f, err := os.Open(name)
		if err != nil {
			return nil
		}
		defer f.Close()
		return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	})
}

// ProcNumber returns the number behind a name in a file of the proc file system, such as "VmHWM" in
// /proc/self/status.
func ProcNumber(file, name string) (n int64, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, name+":"); found {
			_, err := fmt.Sscan(rest, &n)
			return n, err
		}
	}
	return 0, fmt.Errorf("%s has no line %q", file, name)
}
