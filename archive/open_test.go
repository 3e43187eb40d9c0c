package archive

import (
	"github.com/spinneret-go/spinneret/archive/internal/lsm"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// indexName begins the names of the files of the index.
const indexName = lsm.Name

// OpenOn opens an archive on any file system. It commits only on request and without a goroutine,
// so that the order of steps is deterministic.
func OpenOn(files vfs.FS, opts Options) (*Archive, error) {
	a, err := openArchive("/archive", files, opts, false)
	if err == nil {
		a.index.mu.Lock()
		a.index.running = true
		a.index.mu.Unlock()
	}
	return a, err
}

// Commit commits the index and merges its files.
func (a *Archive) Commit() error {
	if err := a.index.write(false); err != nil {
		return err
	}
	return a.index.merge()
}

// Repair makes a new index, and reports what it found.
func Repair(dir string, opts Options) (Report, error) {
	opts.Reindex = true
	return closed(Open(dir, opts))
}

// RepairOn is Repair on any file system.
func RepairOn(files vfs.FS, opts Options) (Report, error) {
	return closed(reindex("/archive", files, opts))
}

func closed(a *Archive, err error) (Report, error) {
	if err != nil {
		return Report{}, err
	}
	return a.Recovered(), a.Close()
}
