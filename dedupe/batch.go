package dedupe

import (
	"slices"
	"sync"
	"sync/atomic"
)

// AddBatch does what [Filter.Add] does for each of urls, in order, and several times as fast if the
// Filter does not fit into the processor's cache. It appends to dst, which may be nil, and reports
// for each URL whether it is new. A batch should have several hundred URLs or more.
//
// The URLs are sorted by shard, and the bits of many are prefetched before the first is tested.
// URLs of a batch are looked up in the list of the latest ones, but not added to it.
func (f *Filter) AddBatch(dst []bool, urls []string) (added []bool) {
	n := len(dst)
	added = slices.Grow(dst, len(urls))[:n+len(urls)]
	b := batches.Get().(*batch)
	defer batches.Put(b)
	b.sort(f, urls)
	start := int32(0)
	for i, end := range b.ends[:len(f.shards)] {
		if end > start {
			f.shards[i].addBatch(b.hashes[start:end], b.places[start:end], added[n:])
		}
		start = end
	}
	return added
}

// A batch is the working memory of AddBatch.
type batch struct {
	unsorted []uint64         // hashes in the order of the URLs
	hashes   []uint64         // the same hashes, by shard
	places   []int32          // index of each hash's URL
	ends     [maxShards]int32 // of each shard's hashes
}

var batches = sync.Pool{New: func() any { return new(batch) }}

// sort hashes the URLs and sorts the hashes by shard. The sort is stable, since the first of two
// equal URLs is the new one.
func (b *batch) sort(f *Filter, urls []string) {
	b.unsorted = slices.Grow(b.unsorted[:0], len(urls))
	b.hashes = slices.Grow(b.hashes[:0], len(urls))[:len(urls)]
	b.places = slices.Grow(b.places[:0], len(urls))[:len(urls)]
	b.ends = [maxShards]int32{}
	for _, url := range urls {
		hash := f.key.Sum64(url)
		b.unsorted = append(b.unsorted, hash)
		b.ends[hash>>f.shift]++
	}
	start := int32(0)
	for i, count := range b.ends {
		b.ends[i] = start // for now, the position of the next hash
		start += count
	}
	for place, hash := range b.unsorted {
		next := &b.ends[hash>>f.shift]
		b.hashes[*next], b.places[*next] = hash, int32(place)
		*next++
	}
}

// touchedHashes is the number of hashes whose bits are prefetched: enough to keep the memory busy,
// and few enough that the first is still in the cache when the last arrives.
const touchedHashes = 64

// touched consumes the results of Touch, so that the compiler keeps the reads.
var touched atomic.Uint64

func (s *shard) addBatch(hashes []uint64, places []int32, added []bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := uint64(0)
	for len(hashes) > 0 {
		n := min(len(hashes), touchedHashes)
		s.catchUp()
		sum += s.layers[len(s.layers)-1].Touch(hashes[:n])
		for i, hash := range hashes[:n] {
			s.catchUp()
			added[places[i]] = !s.listed(hash) && s.addSettled(hash)
		}
		hashes, places = hashes[n:], places[n:]
	}
	touched.Store(sum)
}

// listed reports whether the hash is in the list. If so, it becomes the latest.
func (s *shard) listed(hash uint64) bool {
	if s.recent == nil {
		return false
	}
	_, found := s.recent.Get(hash)
	return found
}
