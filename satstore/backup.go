package satstore

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// Backup copies the current state of the store to another directory, which must not exist. The copy is
// an ordinary store; messages wait in it as in the original. Overdue records are due in its current unit.
// Backup takes a few microseconds per record, or more if buckets have many messages, see [Store.Scan],
// and does not block other calls. It writes to a directory with the suffix ".partial" and renames that at
// the end, so a backup is either complete or absent. If it is killed, that directory stays, and Backup
// refuses to write there until it is removed; after an error, such as a damaged block, Backup removes it.
func (s *Store) Backup(dir string) error {
	if err := s.backup(filepath.Clean(dir)); err != nil {
		return fmt.Errorf("satstore: back up: %w", err)
	}
	return nil
}

func (s *Store) backup(dir string) error {
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return cmp.Or(err, fmt.Errorf("%s exists", dir))
	}
	partial := dir + ".partial"
	if err := vfs.MakeDir(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	switch err := os.Mkdir(partial, 0o700); {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s exists: another backup is writing there, or was killed: then remove it", partial)
	case err != nil:
		return err
	}
	to, err := Open(partial, Options{Unit: s.o.Unit, Start: s.Now(), Buffer: s.o.Buffer})
	if err == nil {
		err = errors.Join(s.copyTo(to), to.Close())
	}
	if err == nil {
		err = vfs.RenameDir(partial, dir)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(partial)) // which did not exist before
	}
	return nil
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
		_, err := v.each(b, func(e entry, m []message) bool {
			if !deletes(m) && batch.add(copied{s.item(e, nil), e.seq, m}) {
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
