package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spinneret-go/spinneret/archive"
)

// merge makes one view of the archives of many processes: an archive that has only an index of
// their files, which stay where they are. A repeated merge adds what is new.
func merge(fs *flag.FlagSet) action {
	view := fs.String("view", "view", "`directory` for the merged index")
	return func(_ context.Context, dirs []string, out, log io.Writer) error {
		a, err := archive.Open(*view, archive.Options{})
		if err != nil {
			return err
		}
		all := 0
		for _, dir := range dirs {
			files, err := finished(dir, log)
			if err == nil && len(files) > 0 {
				_, err = a.Import(files...)
			}
			if err != nil {
				return errors.Join(fmt.Errorf("merge %s: %w", dir, err), a.Close())
			}
			fmt.Fprintf(out, "%s: %d files\n", dir, len(files))
			all += len(files)
		}
		if all == 0 {
			return errors.Join(errors.New("no finished files found, so the view is empty: \"cluster "+
				"drain\" ends the processes and finishes their files"), a.Close())
		}
		for _, missing := range a.Missing() {
			fmt.Fprintf(log, "missing: %s\n", missing)
		}
		return a.Close()
	}
}

// finished returns the finished files of an archive. If its process is dead, its last file is
// finished first, so all files are returned.
func finished(dir string, log io.Writer) (files []string, err error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err // Open would create it
	}
	a, err := archive.Open(dir, archive.Options{})
	switch {
	case errors.Is(err, archive.ErrLocked):
		fmt.Fprintf(log, "%s: its process is still writing the last file; end it with \"cluster "+
			"drain\", and the next merge adds that file\n", dir)
	case err != nil:
		return nil, err
	default:
		for _, d := range a.Recovered().Damage {
			fmt.Fprintf(log, "%s: %s: damage at byte %d: %v\n", dir, d.File, d.Offset, d.Err)
		}
		if err := a.Close(); err != nil {
			return nil, err
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := e.Name()
		if strings.HasSuffix(name, ".warc.gz") || strings.HasSuffix(name, ".warc.zst") ||
			strings.HasSuffix(name, ".warc") {
			path, err := filepath.Abs(filepath.Join(dir, name))
			if err != nil {
				return nil, err
			}
			files = append(files, path)
		}
	}
	slices.Sort(files)
	return files, nil
}
