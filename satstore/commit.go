package satstore

import (
	"fmt"
	"time"
)

// Sync returns once everything that was done before is on disk: unless NoSync is set, not even a
// power failure can take it back. If the store became read-only, Sync tries again what had failed,
// and it can be written to once that works.
func (s *Store) Sync() error {
	s.lockAll()
	defer s.unlockAll()
	if s.closed {
		return ErrClosed
	}
	// What failed halfway cannot be tried again: memory and disk may disagree. Opening the store
	// anew goes by the disk alone.
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
		timer.Reset(s.o.Commit) // counted from the first change, so that no stream of them puts it off
		select {
		case <-s.stop:
			return
		case <-timer.C:
		}
		s.commitMu.Lock()
		s.mu.Lock()
		if s.failed == nil && s.log != nil {
			if err := s.commitLocked(!s.o.NoSync); err != nil {
				s.failed = err // nobody waits here: the next change is told
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
	// A group that failed comes first, at the place where it failed: the half that takes changes now
	// names the end of that very group as where it goes on.
	err := l.writeGroup(l.unwritten)
	if err != nil {
		return err
	}
	l.unwritten = nil
	if len(l.pending) > 0 {
		err = s.commitPending(l)
	}
	// Those who give records back need not wait for the disk to turn. Nobody else commits
	// meanwhile, as commitMu is held, so l.end does not move.
	if err == nil && sync && l.synced < l.end {
		s.mu.Unlock()
		err = l.file.Sync()
		s.mu.Lock()
		if err != nil {
			// What a failed sync left behind nobody knows, and asking again would not tell.
			s.broken = true
			return fmt.Errorf("satstore: sync log: %w", err)
		}
		l.synced = l.end
	}
	s.logEnd = l.end
	return err
}

// commitPending writes the changes that are pending, and others come meanwhile.
func (s *Store) commitPending(l *updateLog) error {
	// The halves are swapped first, so that changes which come during the write have a place that
	// outlives the process; a replay puts them behind the group, as their half says where it ends.
	spilled := l.spilled()
	changes := l.swap()
	if !spilled { // else those that come meanwhile would outlive these
		s.mu.Unlock()
		defer s.mu.Lock()
	}
	err := l.writeGroup(changes)
	if err != nil {
		l.unwritten = changes
	}
	return err
}

// writeGroup writes changes as one group, if there are any.
func (l *updateLog) writeGroup(changes []byte) error {
	if len(changes) == 0 {
		return nil
	}
	l.group = l.frame(l.group[:0], changes)
	return l.write(l.group)
}
