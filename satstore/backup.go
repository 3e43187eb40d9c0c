package satstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// Backup copies the current state of the store to another directory, which must be empty or not
// exist. The copy is an ordinary store. Backup takes a few microseconds per record and does not
// block other calls. It writes to a directory with the suffix ".partial" and renames that at the
// end, so a backup is either complete or absent.
func (s *Store) Backup(dir string) error {
	if err := s.backup(dir); err != nil {
		return fmt.Errorf("satstore: back up: %w", err)
	}
	return nil
}

func (s *Store) backup(dir string) error {
	// Some systems do not rename a directory to an existing one, even if that is empty.
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	partial := dir + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	to, err := Open(partial, Options{Unit: s.o.Unit, Start: s.Now(), Buffer: s.o.Buffer})
	if err != nil {
		return err
	}
	if err := errors.Join(s.copyTo(to), to.Close()); err != nil {
		return errors.Join(err, os.RemoveAll(partial))
	}
	return vfs.RenameDir(partial, dir)
}

// copyTo adds all records to another store.
func (s *Store) copyTo(to *Store) error {
	var items []Item
	for item, err := range s.Scan() {
		if err != nil {
			return err
		}
		if items = append(items, item); len(items) == copyBatch {
			if _, err := to.AddBatch(items); err != nil {
				return err
			}
			items = items[:0]
		}
	}
	_, err := to.AddBatch(items)
	return err
}

// copyBatch is the number of records that Backup and Repair add at a time.
const copyBatch = 1000
