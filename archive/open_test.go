package archive

import "github.com/spinneret-go/spinneret/internal/vfs"

// OpenOn opens an archive on any file system. It commits when it is asked to, and in no goroutine,
// so that the same steps come in the same order.
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
	if err := a.index.write(); err != nil {
		return err
	}
	return a.index.merge()
}

// RepairOn is Repair on any file system.
func RepairOn(files vfs.FS, opts Options) (Report, error) { return repair("/archive", files, opts) }
