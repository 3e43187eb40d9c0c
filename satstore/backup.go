package satstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// Backup writes the store as it is now to another directory, which must not be there or be empty,
// as a store that can be opened. It copies what Scan yields, at some microseconds a record, to a
// directory with ".partial" behind its name, and renames that at last: so what was cut short is
// no backup. Writers are not held up.
func (s *Store) Backup(dir string) error {
	if err := s.backup(dir); err != nil {
		return fmt.Errorf("satstore: back up: %w", err)
	}
	return nil
}

func (s *Store) backup(dir string) error {
	// An empty one is in the way of a rename on some systems.
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

// copyBatch is how many records are added at once by Backup and Repair.
const copyBatch = 1000
