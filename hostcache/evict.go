package hostcache

// The eviction is the clock of Corbató (1969), with one bit for each entry. Its hand cycles through
// the entries in the order of the keys. An entry that was used since the last pass loses its bit;
// one without a bit is evicted. No list links the entries: the position of the hand is a key. A
// second hand, the broom, advances with the writes and drops expired entries, so that they do not
// fill up a cache in which nothing is evicted.

const (
	// evictions is how many entries are dropped at a time. The trie copies a few hundred of them to
	// sort them, so one at a time would be slow.
	evictions = 64

	// sweepEvery is the number of writes after which the broom passes a batch of entries.
	sweepEvery = batch / 2
)

// put requires that s.mu is held. An entry that does not fit into an empty shard is not stored.
func (s *shard[V]) put(key string, e slot[V], now uint64) {
	if s.writes++; s.writes%sweepEvery == 0 {
		s.broom = s.pass(s.broom, now, 0)
	}
	for near := false; ; near = !near {
		_, ok := s.trie.SetWithin(s.budget, key, e)
		switch {
		case ok || s.trie.Len() == 0:
			return
		case near:
			// None of the holes at the hand is large enough for the leaf to grow into, and it might take
			// most of the shard to make one. So the leaf has to make room for the entry itself.
			s.pass(s.trie.Near(key), now, evictions)
		default:
			s.hand = s.pass(s.hand, now, evictions)
		}
	}
}

// pass advances over some entries, starting at a key. It drops those that have expired and a
// limited number of those without a bit, and returns where it stopped. It requires that s.mu is
// held.
func (s *shard[V]) pass(from string, now uint64, evict int) (next string) {
	passed, evicted := 0, 0
	for key, e := range s.trie.From("", from) {
		passed++
		switch {
		case e.expired(now):
			s.trie.Delete(key)
			s.counts.Expired++
			evicted++
		case evict == 0:
		case e.used():
			e.meta[0] &^= usedBit
			s.trie.Set(key, e)
		default:
			s.trie.Delete(key)
			s.counts.Evicted++
			evicted++
		}
		if evicted == evict && evict > 0 || passed == batch {
			return key + "\x00"
		}
	}
	return ""
}
