package stage

import (
	"errors"
	"io/fs"
	"os"
	"slices"
)

// A Journal is a file of entries that costs what changes: changed entries are appended, and the file
// is written anew when it has twice the size that it had then. Each append is one more output of
// AppendEntries, so an entry may be in the file more than once, and the last one counts. It is not
// safe for concurrent use.
type Journal struct {
	name string
	size int64 // that is known to be sound; 0 if the file has to be written anew
	base int64 // size when it was last written anew
}

// journalSlack is what may be appended to a small file before it is written anew.
const journalSlack = 64 << 10

// NewJournal returns the journal with a file name. Read its entries before the first Save.
func NewJournal(name string) *Journal { return &Journal{name: name} }

// Restore passes the bytes of the file to restore, which returns why it cannot read them. Without a
// file it does nothing. A file that was not restored as a whole is written anew by the next Save.
func (j *Journal) Restore(restore func(data []byte) error) error {
	data, err := os.ReadFile(j.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = restore(data)
	}
	if err == nil {
		j.size, j.base = int64(len(data)), int64(len(data))
	}
	return err
}

// SaveEntries appends entries to a journal, or writes it anew with what all returns. That is done also
// if somebody has removed the file, or a write to it failed.
func SaveEntries[E any](j *Journal, changed []E, all func() ([]byte, error)) error {
	info, err := os.Stat(j.name)
	if j.size == 0 || j.size > 2*j.base+journalSlack || err != nil || info.Size() != j.size {
		data, err := all()
		if err == nil {
			err = ReplaceFile(j.name, data)
		}
		if err == nil {
			j.size, j.base = int64(len(data)), int64(len(data))
		}
		return err
	}
	if len(changed) == 0 {
		return nil
	}
	data, err := AppendEntries(nil, slices.Values(changed))
	if err != nil {
		return err
	}
	size := j.size
	j.size = 0 // unless the write succeeds
	if err = appendAt(j.name, size, data); err == nil {
		j.size = size + int64(len(data))
	}
	return err
}

// appendAt writes behind the first bytes of a file, and syncs it.
func appendAt(name string, size int64, data []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, size)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
