package stage

import "sync"

// Set is a set of strings, such as URLs or hosts. The zero Set is empty. Its methods are safe for
// concurrent use.
type Set struct {
	mu      sync.Mutex
	members map[string]struct{}
}

// Add adds a member, and reports whether it is new.
func (s *Set) Add(member string) (added bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, found := s.members[member]; found {
		return false
	}
	if s.members == nil {
		s.members = map[string]struct{}{}
	}
	s.members[member] = struct{}{}
	return true
}

// Has reports whether the set contains a string.
func (s *Set) Has(member string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, found := s.members[member]
	return found
}

// Remove removes a member, if it is there.
func (s *Set) Remove(member string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.members, member)
}

// Wake wakes a waiter of c, or the next one.
func Wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
