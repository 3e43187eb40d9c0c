package satstore

import "fmt"

// lockAll locks all but dueMu, in the order that Store says. Whoever may need to write buffers or
// a checkpoint calls it.
func (s *Store) lockAll() {
	s.idsMu.Lock()
	s.lockButIDs()
}

// lockButIDs is lockAll for those who hold s.idsMu already.
func (s *Store) lockButIDs() {
	s.commitMu.Lock()
	s.mu.Lock()
}

func (s *Store) unlockAll() {
	s.unlockButIDs()
	s.idsMu.Unlock()
}

func (s *Store) unlockButIDs() {
	s.mu.Unlock()
	s.commitMu.Unlock()
}

// begin locks s.mu for one change that takes up to so many bytes of log, once there is room for it.
// The caller may hold s.idsMu.
func (s *Store) begin(holdsIDs bool, bytes int) error {
	// Room is made with more locks than the change itself needs, which come before s.mu. So it is let
	// go, and while nobody held it others may have used up the room: hence a loop.
	for {
		s.mu.Lock()
		if err := s.refusal(); err != nil {
			s.mu.Unlock()
			return err
		}
		if !s.crowded(bytes) {
			return nil
		}
		s.mu.Unlock()
		if err := s.makeRoom(holdsIDs, bytes); err != nil {
			return err
		}
	}
}

// end unlocks s.mu after a change whose outcome is err. From then on the change outlives the
// process, if there is a log. One that was too large for that is written first.
func (s *Store) end(holdsIDs bool, err error) error {
	s.keep(err)
	// It is asked while s.mu is held, as somebody else may commit at once.
	spilled := s.log != nil && s.log.spilled()
	s.mu.Unlock()
	if err == nil && spilled {
		err = s.makeRoom(holdsIDs, 0)
	}
	return err
}

// keep keeps what was noted, or undoes it after an error. It requires that s.mu is held.
func (s *Store) keep(err error) {
	switch {
	case s.log == nil:
	case err == nil:
		s.log.keep()
	default:
		s.log.undo()
	}
}

// changeSize bounds the bytes of a change, with a diff that alternates, beside an id and data.
const changeSize = 64

func (s *Store) crowded(bytes int) bool {
	return s.wantsRelief() || s.split != nil || s.log != nil && s.log.crowded(bytes+changeSize)
}

// refusal tells why nothing can be changed. It requires that s.mu is held.
func (s *Store) refusal() error {
	switch {
	case s.closed:
		return ErrClosed
	case s.failed != nil:
		return fmt.Errorf("%w: %w", ErrReadOnly, s.failed)
	}
	return nil
}

// makeRoom writes buffers or changes, whichever are too many.
func (s *Store) makeRoom(holdsIDs bool, bytes int) error {
	if !holdsIDs {
		s.idsMu.Lock()
		defer s.idsMu.Unlock()
	}
	s.lockButIDs()
	defer s.unlockButIDs()
	if err := s.refusal(); err != nil {
		return err
	}
	if s.wantsRelief() {
		if err := s.relieve(); err != nil {
			return s.fail(err)
		}
	}
	if s.split != nil { // which failed in Advance
		if err := s.settle(); err != nil {
			return s.fail(err)
		}
	}
	if s.log != nil && (s.log.crowded(bytes+changeSize) || s.log.spilled()) {
		if err := s.commitLocked(false); err != nil {
			return s.fail(err)
		}
	}
	return nil
}

// fail makes the store read-only until a Sync succeeds. It requires that s.mu is held.
func (s *Store) fail(err error) error {
	s.failed = err
	return s.refusal()
}

// note writes a change to the log. It requires that s.mu is held.
func (s *Store) note(h *change, old []byte) {
	if s.log == nil || !s.live {
		return
	}
	// Only the first change of a group wakes the committer: it then sleeps for Options.Commit, and
	// all that come meanwhile share one sync.
	if len(s.log.pending) == 0 {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	s.log.note(h, s.calendar.now, old)
}
