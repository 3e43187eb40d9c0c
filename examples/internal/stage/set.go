package stage

import (
	"iter"
	"maps"
	"slices"
	"sync"
)

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

// All returns an iterator over the present members.
func (s *Set) All() iter.Seq[string] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Values(slices.Sorted(maps.Keys(s.members)))
}

// Wake wakes a waiter of c, or the next one.
func Wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Counts counts events by key, for up to maxCounts keys; of others an arbitrary one is forgotten.
// The zero Counts is empty. Its methods are safe for concurrent use.
type Counts struct {
	mu sync.Mutex
	of map[string]int
}

const maxCounts = 10_000

// Add counts an event, unless there were as many as limit. It reports whether it did.
func (c *Counts) Add(key string, limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	if c.of[key] >= limit {
		return false
	}
	makeRoom(c.of, maxCounts)
	c.of[key]++
	return true
}
