package satstore

import (
	"math"
	"time"
)

// Upcoming returns how many records are due by each of the given times, in one pass over the
// buckets. A bucket that extends beyond a time counts in proportion to its part before that time,
// rounded up.
// Buckets grow with their distance, so the counts are good for the next hours, and rough for the
// next months.
func (s *Store) Upcoming(until ...time.Time) []int64 {
	counts := make([]int64, len(until))
	s.mu.Lock()
	defer s.mu.Unlock()
	for b := range s.buckets {
		if s.isAside(b) { // they are due when Repair has mended them
			continue
		}
		left := int64(b.left())
		for i, at := range until {
			units := slotOf(at, s.o.Unit) + 1 - b.start // units of the bucket that begin by then
			switch {
			case b.start <= s.calendar.Now() || units >= b.width:
				counts[i] += left
			case units > 0:
				counts[i] += int64(math.Ceil(float64(left) * float64(units) / float64(b.width)))
			}
		}
	}
	return counts
}
