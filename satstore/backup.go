package satstore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// Backup copies the current state of the store to another directory, which must be empty or not exist.
// The copy is an ordinary store; messages wait in it as in the original. Overdue records are due in
// its current unit. Backup takes a few microseconds per record, or more if buckets have many messages,
// see [Store.Scan], and does not block other calls. It writes to a directory with the suffix
// ".partial" and renames that at the end, so a backup is either complete or absent. What an earlier
// Backup left there is replaced; anything else is an error, and so is another Backup that is writing
// there.
func (s *Store) Backup(dir string) error {
	if err := s.backup(dir); err != nil {
		return fmt.Errorf("satstore: back up: %w", err)
	}
	return nil
}

// backupMark is a file that says that a directory is a backup's own, to be emptied by the next.
const (
	backupMark = "BACKUP"
	markText   = "satstore makes a backup here. If that was interrupted, the next one begins anew.\n"
)

func (s *Store) backup(dir string) error {
	dir = filepath.Clean(dir)                      // the suffix must not become a name in the directory
	if link, err := os.Readlink(dir); err == nil { // a link to another disk stays one
		switch to, err := filepath.EvalSymlinks(dir); {
		case err == nil:
			dir = to
		case !errors.Is(err, fs.ErrNotExist):
			return err
		case filepath.IsAbs(link): // to nothing, as an interrupted backup leaves it
			dir = filepath.Clean(link)
		default:
			dir = filepath.Join(filepath.Dir(dir), link)
		}
	}
	if err := removeEmpty(dir); err != nil {
		return err
	}
	partial := dir + ".partial"
	lock, err := claimPartial(partial)
	if err != nil {
		return err
	}
	defer lock.Close()
	to, err := open(claimed{vfs.OS(partial)}, Options{Unit: s.o.Unit, Start: s.Now(), Buffer: s.o.Buffer})
	if err == nil {
		err = errors.Join(s.copyTo(to), to.Close())
	}
	if err != nil {
		return errors.Join(err, emptyPartial(partial))
	}
	if runtime.GOOS == "windows" { // it renames no directory with an open file
		_ = lock.Close()
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

// claimPartial makes and locks the directory of an unfinished backup, and empties it. The file of the
// lock stays whatever happens: if it were replaced, two backups could hold one lock each.
func claimPartial(dir string) (io.Closer, error) {
	if err := vfs.MakeDir(dir, 0o700); err != nil {
		return nil, err
	}
	if _, err := leftIn(dir); err != nil { // before there is a lock
		return nil, err
	}
	lock, err := vfs.OS(dir).Lock(lockName)
	if errors.Is(err, vfs.ErrLocked) {
		return nil, fmt.Errorf("another backup is writing to %s: %w", dir, err)
	}
	if err != nil {
		return nil, err
	}
	if err = emptyPartial(dir); err == nil {
		err = os.WriteFile(filepath.Join(dir, backupMark), []byte(markText), 0o600)
	}
	if err == nil { // the mark must outlast a power failure if other files do
		err = vfs.SyncDir(dir)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// emptyPartial removes what an interrupted backup has left in a directory, except for the lock.
func emptyPartial(dir string) error {
	names, err := leftIn(dir)
	for _, name := range names {
		err = errors.Join(err, os.Remove(filepath.Join(dir, name)))
	}
	return err
}

// leftIn returns the names of the files that a backup has left in a directory, the mark last. If
// there are others, it returns an error.
func leftIn(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	marked := false
	for _, entry := range entries {
		switch name := entry.Name(); {
		case name == backupMark:
			marked = true
		case isOurs(name):
			names = append(names, name)
		case name != lockName:
			return nil, fmt.Errorf("%s has files that no backup made: move it away", dir)
		}
	}
	switch {
	case marked:
		names = append(names, backupMark)
	case len(names) > 0:
		return nil, fmt.Errorf("%s was not left by a backup: move it away", dir)
	}
	return names, nil
}

// claimed is a directory that is locked already.
type claimed struct{ vfs.FS }

// Lock leaves the lock to whoever has it.
func (claimed) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

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
