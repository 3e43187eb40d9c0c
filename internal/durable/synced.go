package durable

import (
	"sync"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// A SyncedFile is a file that is forced to disk by one goroutine while others write to it, or force it
// to disk as well. Its methods are safe for concurrent use.
type SyncedFile struct {
	vfs.File
	mu     sync.Mutex // held while it is forced to disk or closed
	err    error      // of Sync
	closed bool
}

// Sync fails forever once it has failed: the system may have discarded the data, the next attempt would
// succeed, and of several at a time only one is told. On a closed file it does nothing.
func (f *SyncedFile) Sync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil && !f.closed {
		f.err = f.File.Sync()
	}
	return f.err
}

// Close waits for Sync.
func (f *SyncedFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return f.File.Close()
}
