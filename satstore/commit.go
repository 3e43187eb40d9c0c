package satstore

import (
	"fmt"
	"time"
)

// Sync returns once everything that was done before is on disk: neither a crash nor, unless NoSync
// is set, a power failure can take it back. If the store became read-only, Sync tries again what
// had failed, and it can be written to once that works.
func (s *Store) Sync() error {
	s.idsMu.Lock()
	defer s.idsMu.Unlock()
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if s.broken {
		return s.refusal()
	}
	if err := s.sync(); err != nil {
		return s.fail(err)
	}
	s.failed = nil
	return nil
}

func (s *Store) sync() error {
	if s.log == nil {
		return s.checkpoint()
	}
	return s.commitLocked(!s.o.NoSync)
}

// commitLoop writes and syncs the log a while after there is something to write.
func (s *Store) commitLoop() {
	timer := time.NewTimer(s.o.Commit)
	defer timer.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-s.wake:
		}
		timer.Reset(s.o.Commit)
		select {
		case <-s.stop:
			return
		case <-timer.C:
		}
		s.commitMu.Lock()
		s.mu.Lock()
		if s.failed == nil && s.log != nil {
			if err := s.commitLocked(!s.o.NoSync); err != nil {
				s.failed = err
			}
		}
		s.mu.Unlock()
		s.commitMu.Unlock()
	}
}

// commitLocked writes all changes, and syncs them if it should. It requires that s.commitMu and
// s.mu are held, and lets go of s.mu while it waits for the disk.
func (s *Store) commitLocked(sync bool) error {
	l := s.log
	changes := l.pending
	l.pending, l.spare = l.spare[:0], nil
	s.mu.Unlock()
	err := s.writeGroup(l, changes)
	if err == nil && sync && l.synced < l.end {
		if err = l.file.Sync(); err == nil {
			l.synced = l.end
		}
	}
	s.mu.Lock()
	l.spare = changes[:0]
	s.logEnd = l.end
	if err != nil && len(l.unwritten) == 0 {
		// What a failed sync left behind nobody knows, and asking again would not tell.
		s.broken = true
		return fmt.Errorf("satstore: sync log: %w", err)
	}
	return err
}

// writeGroup writes changes behind those that could not be written before.
func (s *Store) writeGroup(l *updateLog, changes []byte) error {
	if len(l.unwritten) > 0 {
		l.unwritten = append(l.unwritten, changes...)
		changes = l.unwritten
	}
	if len(changes) == 0 {
		return nil
	}
	l.group = l.frame(l.group[:0], changes)
	if err := l.write(l.group); err != nil {
		l.unwritten = append(l.unwritten[:0], changes...)
		return err
	}
	l.unwritten = l.unwritten[:0]
	return nil
}
