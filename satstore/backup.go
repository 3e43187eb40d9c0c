package satstore

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/disk"
)

// Backup writes the store as it is now to another directory, where it can be opened. Other calls
// wait for a checkpoint only, not for the copy; but what they free on disk stays taken meanwhile.
func (s *Store) Backup(dir string) error {
	if err := vfs.MakeDir(dir, 0o700); err != nil {
		return fmt.Errorf("satstore: make directory: %w", err)
	}
	return s.backup(vfs.OS(dir))
}

// A copyJob is what a backup has to copy.
type copyJob struct {
	manifest []byte
	spans    []span
	files    map[string]vfs.File // opened for the copy, as the store may remove them
}

func (s *Store) backup(to vfs.FS) error {
	if f, err := to.Open(checkpointName); err == nil {
		return errors.Join(fmt.Errorf("satstore: back up: %w", fs.ErrExist), f.Close())
	}
	job, err := s.prepareCopy()
	if err != nil {
		return err
	}
	defer func() {
		for _, f := range job.files {
			_ = f.Close() // it was only read
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.space.pins--
	}()
	// The checkpoint is written last: until then the directory is no store, and a backup that was cut
	// short can be begun again there.
	for name, f := range job.files {
		size, err := f.Size()
		if err == nil {
			err = copyFile(to, name, f, []piece{{0, size}})
		}
		if err != nil {
			return fmt.Errorf("satstore: back up %s: %w", name, err)
		}
	}
	pieces := []piece{{0, int64(len(dataHead()))}}
	for _, e := range job.spans {
		pieces = append(pieces, piece{int64(e.at) * grain, int64(e.n) * grain})
	}
	if err := copyFile(to, dataName, s.data, pieces); err != nil {
		return fmt.Errorf("satstore: back up %s: %w", dataName, err)
	}
	return writeBackupManifest(to, job.manifest)
}

// prepareCopy writes a checkpoint and pins down what it names.
func (s *Store) prepareCopy() (*copyJob, error) {
	s.lockAll()
	defer s.unlockAll()
	if err := s.refusal(); err != nil {
		return nil, err
	}
	if err := s.checkpoint(); err != nil {
		return nil, s.fail(err)
	}
	// A checkpoint has just been written, so a copy without a log is complete.
	ids := s.ids.State()
	m := s.manifest(nil, ids, s.saved)
	job := &copyJob{manifest: m.seal(), files: map[string]vfs.File{}}
	names := ids.Names()
	if s.saved.number > 0 {
		names = append(names, placesName(s.saved.number))
	}
	for _, name := range names {
		f, err := s.fs.Open(name)
		if err != nil {
			for _, f := range job.files {
				_ = f.Close() // the first error says more
			}
			return nil, fmt.Errorf("satstore: back up: %w", err)
		}
		job.files[name] = f
	}
	s.eachBucket(func(b *bucket) {
		for _, e := range slices.Concat(b.records.extents, b.messages.extents) {
			job.spans = append(job.spans, e.span())
		}
	})
	s.space.pins++
	return job, nil
}

type piece struct{ at, n int64 }

// copyFile copies pieces of a file to the same places of a new one.
func copyFile(to vfs.FS, name string, from vfs.File, pieces []piece) error {
	f, err := to.Create(name)
	if err != nil {
		return err
	}
	buf := make([]byte, extentSize)
	for _, p := range pieces {
		for at := p.at; at < p.at+p.n && err == nil; at += int64(len(buf)) {
			b := buf[:min(int64(len(buf)), p.at+p.n-at)]
			if err = disk.ReadFull(from, name, b, at); err == nil {
				_, err = f.WriteAt(b, at)
			}
		}
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func writeBackupManifest(to vfs.FS, manifest []byte) error {
	f, err := to.Create(checkpointTemp)
	if err != nil {
		return fmt.Errorf("satstore: back up: %w", err)
	}
	_, err = f.WriteAt(manifest, 0)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = to.Rename(checkpointTemp, checkpointName)
	}
	if err == nil {
		err = to.Sync()
	}
	if err != nil {
		return fmt.Errorf("satstore: back up: %w", err)
	}
	return nil
}
