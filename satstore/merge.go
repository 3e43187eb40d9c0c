package satstore

// The index of ids is merged in the background, as a merge takes a time that grows with the number
// of ids. It takes none of the store's locks.

// mergeLoop merges whenever there may be something to merge.
func (s *Store) mergeLoop() {
	for {
		select {
		case <-s.stop:
			return
		case <-s.merge:
		}
		if err := s.mergeIDs(); err != nil {
			s.mu.Lock()
			s.failed = err // nobody waits here: the next change is told
			s.mu.Unlock()
		}
	}
}

// wakeMerger says that there may be something to merge.
func (s *Store) wakeMerger() {
	select {
	case s.merge <- struct{}{}:
	default:
	}
}

// mergeIDs merges until nothing is left to merge.
func (s *Store) mergeIDs() error {
	for {
		if more, err := s.ids.Step(s.stop); err != nil || !more {
			return err
		}
	}
}
