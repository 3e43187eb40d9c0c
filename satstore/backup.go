package satstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// Backup copies the current state of the store to another directory, which must be empty or not
// exist. The copy is an ordinary store; messages wait in it as in the original. Overdue records are
// due in its current unit, and records of one bucket come in another order if their messages exceed a
// quarter of [Options].Buffer. Backup takes a few microseconds per record and does not block other
// calls. It writes to a directory with the suffix ".partial" and renames that at the end, so a backup
// is either complete or absent. What a killed Backup left there is replaced; anything else is an
// error.
func (s *Store) Backup(dir string) error {
	if err := s.backup(dir); err != nil {
		return fmt.Errorf("satstore: back up: %w", err)
	}
	return nil
}

// backupMark is a file that says that a directory is a backup's own, to be removed by the next.
const (
	backupMark = "BACKUP"
	markText   = "satstore makes a backup here. If that was interrupted, the next one begins anew.\n"
)

func (s *Store) backup(dir string) error {
	if err := removeEmpty(dir); err != nil {
		return err
	}
	partial := dir + ".partial"
	if err := removePartial(partial); err != nil {
		return err
	}
	if err := vfs.MakeDir(partial, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(partial, backupMark), []byte(markText), 0o600); err != nil {
		return err
	}
	to, err := Open(partial, Options{Unit: s.o.Unit, Start: s.Now(), Buffer: s.o.Buffer})
	if err != nil {
		return err
	}
	if err := errors.Join(s.copyTo(to), to.Close()); err != nil {
		return errors.Join(err, removePartial(partial))
	}
	if err := vfs.RenameDir(partial, dir); err != nil {
		return err
	}
	return os.Remove(filepath.Join(dir, backupMark))
}

// removeEmpty removes a directory if it is empty, since some systems do not rename another one to
// it. Anything else of that name is an error.
func removeEmpty(dir string) error {
	names, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(names) > 0:
		return fmt.Errorf("%s is not empty", dir)
	}
	return os.Remove(dir)
}

// removePartial removes what an interrupted backup has left in a directory, and then the directory.
func removePartial(dir string) error {
	names, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(names) == 0 {
		return removeEmpty(dir)
	}
	if err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(dir, backupMark)); err != nil {
		return fmt.Errorf("%s was not left by a backup: move it away", dir)
	}
	for _, entry := range names { // the mark last
		if name := entry.Name(); isOurs(name) || name == lockName {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	if names, err = os.ReadDir(dir); err != nil {
		return err
	}
	if len(names) > 1 {
		return fmt.Errorf("%s has files that no backup made: move it away", dir)
	}
	if err := os.Remove(filepath.Join(dir, backupMark)); err != nil {
		return err
	}
	return os.Remove(dir)
}

// copyTo copies all records and their messages to another store.
func (s *Store) copyTo(to *Store) error {
	v, err := s.view(func(*bucket) bool { return true })
	if err != nil {
		return err
	}
	defer v.release()
	batch := copies{}
	flush := func() error {
		items := make([]Item, len(batch.records))
		for i, r := range batch.records {
			items[i] = r.Item
		}
		_, err := to.AddBatch(items)
		if err == nil {
			_, err = leaveMessages(to, batch.records)
		}
		batch = copies{}
		return err
	}
	for _, b := range v.buckets {
		var failed error
		_, err := v.each(b, func(e entry, m *mail) bool {
			if !m.deletes() && batch.add(copied{s.item(e, nil), e.seq, m.all()}) {
				failed = flush()
			}
			return failed == nil
		})
		if err = errors.Join(err, failed); err != nil {
			return err
		}
	}
	return flush()
}

// A copied record is on its way to another store, with its messages. They are not merged, since a
// message may be as large as the largest record, and only the store's user knows how large both are
// together.
type copied struct {
	Item
	seq      uint64
	messages []message
}

// copies are records that Backup and Repair add together.
type copies struct {
	records []copied
	bytes   int
}

// The limits of copies. A record with its messages may exceed that of bytes.
const (
	copyBatch = 1000
	copyBytes = 4 << 20
)

// add adds a record, and reports whether it is time to write.
func (c *copies) add(r copied) (full bool) {
	c.records = append(c.records, r)
	c.bytes += len(r.ID) + len(r.Data)
	for _, m := range r.messages {
		c.bytes += mailSize + len(m.payload)
	}
	return len(c.records) >= copyBatch || c.bytes >= copyBytes
}

// leaveMessages leaves the messages of records for their copies, and returns how many they are.
func leaveMessages(to *Store, records []copied) (n int64, err error) {
	for _, r := range records {
		for _, m := range r.messages {
			if err := to.Update(r.ID, m.payload); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, nil
}
