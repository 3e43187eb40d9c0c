package exact

import (
	"iter"
	"slices"
)

// Entries returns an iterator over the entries with numbers of at least from, in order, up to those
// that were added before the iteration started. An error is yielded once, with a zero Entry, and
// ends the iteration. It is [ErrTrimmed] if from was trimmed, or if the file of the next
// entry is freed during the iteration. The caller may keep each Entry. Reading the latest entries
// does not read older ones.
func (s *Set) Entries(from uint64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		s.mu.Lock()
		err := s.refusal()
		if err == nil && from < s.trimmed {
			err = ErrTrimmed
		}
		segments := slices.Clone(s.older)
		first := s.log.before(from)
		if s.log.file != nil {
			segments = append(segments, segment{s.log.number, s.log.first, s.log.end})
		}
		s.mu.Unlock()
		if err != nil {
			yield(Entry{}, err)
			return
		}
		for i, segment := range segments {
			last := i+1 == len(segments)
			if !last && segments[i+1].first <= from {
				continue
			}
			r, err := s.openForWalk(segment)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			if last {
				r.at, r.seq = first.at, first.seq
			}
			if !r.walk(from, yield) {
				return
			}
		}
	}
}

// openForWalk returns ErrTrimmed if the segment cannot be opened because it was removed.
func (s *Set) openForWalk(wanted segment) (*segmentReader, error) {
	r, err := openSegment(s.fs, wanted)
	if err == nil {
		return r, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// The size of the last segment may have changed since then.
	same := func(o segment) bool { return o.number == wanted.number }
	if wanted.number < s.log.number && !slices.ContainsFunc(s.older, same) {
		return nil, ErrTrimmed
	}
	return nil, err
}

// walk yields the entries from a number on, and reports whether to go on with the next segment. It
// closes the file.
func (r *segmentReader) walk(from uint64, yield func(Entry, error) bool) bool {
	defer r.file.Close()
	for r.more() {
		url, data, err := r.next()
		if err != nil {
			yield(Entry{}, err)
			return false
		}
		seq := r.seq - 1
		if seq >= from && !yield(Entry{seq, string(url), append([]byte(nil), data...)}, nil) {
			return false
		}
	}
	return true
}

// Trim declares entries below a number as no longer needed. [Set.Entries] no longer yields them.
// Their disk space is freed in whole files, once the index has their URLs, which stay known.
func (s *Set) Trim(below uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusal(); err != nil {
		return err
	}
	below = min(below, s.log.next)
	if below <= s.trimmed && !s.ahead {
		return nil
	}
	if err := s.sync(); err != nil {
		return err
	}
	if err := s.refusal(); err != nil {
		return err
	}
	s.trimmed = max(s.trimmed, below)
	return s.commit(s.manifest(), nil)
}
