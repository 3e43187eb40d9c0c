package satstore

import "time"

// Upcoming returns how many records are due up to each of some times, in one pass over the buckets.
// Of a bucket that reaches beyond a time, a part of the records counts: as large as the part of the
// bucket that lies before that time. Buckets grow with their distance, so that the counts do well
// for the next hours and for a rough idea of the next months.
func (s *Store) Upcoming(until ...time.Time) []int64 {
	counts := make([]int64, len(until))
	s.mu.Lock()
	defer s.mu.Unlock()
	for b := range s.buckets {
		left := int64(b.left())
		for i, at := range until {
			units := slotOf(at, s.o.Unit) + 1 - b.start // of the bucket that begin by then
			switch {
			case b.start <= s.calendar.Now() || units >= b.width:
				counts[i] += left
			case units > 0:
				counts[i] += int64(float64(left) * float64(units) / float64(b.width))
			}
		}
	}
	return counts
}
