package dedupe

import (
	"encoding/binary"
	"math"
	"sync"

	"github.com/bits-and-blooms/bloom/v3"
	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// A shard is a filter for those hashes that begin with its number, so that goroutines seldom wait
// for each other.
type shard struct {
	mu      sync.Mutex
	recent  *simplelru.LRU[uint64, bool] // true: in the Bloom filter, too; nil if switched off
	bloom   *bloom.BloomFilter
	added   int // hashes that were reported as new
	settled int // of those, the ones that went into the Bloom filter
}

// recentBytes is what one entry of the list takes, as measured: the entry, and its place in the
// list's map.
const recentBytes = 120

// init sizes one of count shards.
func (s *shard) init(o Options, count int) {
	share := float64(o.Capacity) / float64(count)
	if count > 1 {
		// The URLs do not spread evenly: shares scatter by the root of their mean.
		share += 2 * math.Sqrt(share)
	}
	s.bloom = bloom.New(bloomSize(share, o.Rate))
	if o.Recent > 0 {
		size := (o.Recent + count - 1) / count
		s.recent, _ = simplelru.NewLRU(size, s.evicted) // fails for sizes below 1 only
	}
}

// bloomSize returns the bits and the number of hash functions with which a Bloom filter of n keys
// has the error rate, or a little less. EstimateParameters of the bloom package takes the bits
// that would do if the number of functions could be a fraction, and misses the rate by some
// percent.
func bloomSize(n, rate float64) (bits, functions uint) {
	k := max(1, math.Round(-math.Log2(rate)))
	return uint(math.Ceil(k * n / loadAt(math.Pow(rate, 1/k), k))), uint(k)
}

// loadAt returns how many hashes, as a share of the bits, a Bloom filter with k functions has
// taken when the share p of its bits is set. The textbook's p = 1 - exp(-load) holds for any keys;
// these ones were all new to the filter, so each met a clear bit and set k(1-p)/(1-p^k) bits on
// average. Integrated, that is load = p + p^2/2 + ... + p^k/k: much the same in a filter that is
// at most full, but not beyond.
func loadAt(p, k float64) float64 {
	load, power := 0.0, 1.0
	for j := 1.0; j <= k; j++ {
		power *= p
		load += power / j
	}
	return load
}

// add looks into the Bloom filter for what is not in the list, and moves what it finds there into
// the list. That makes the pages that everybody links to cheap, and costs nothing when they fall
// out again: the list knows of each hash whether the Bloom filter has it.
func (s *shard) add(hash uint64) (added bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.recent != nil {
		if _, found := s.recent.Get(hash); found {
			return false
		}
	}
	key := bloomKey(hash)
	settled := s.bloom.Test(key[:])
	if !settled {
		s.added++
	}
	switch {
	case s.recent != nil:
		s.recent.Add(hash, settled)
	case !settled:
		s.settle(hash)
	}
	return !settled
}

// evicted is called by the list, from within add, with what falls out of it.
func (s *shard) evicted(hash uint64, settled bool) {
	if !settled {
		s.settle(hash)
	}
}

// settle requires that s.mu is held.
func (s *shard) settle(hash uint64) {
	key := bloomKey(hash)
	s.bloom.Add(key[:])
	s.settled++
}

func bloomKey(hash uint64) (key [8]byte) {
	binary.LittleEndian.PutUint64(key[:], hash)
	return key
}

func (s *shard) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.added
}

func (s *shard) stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := Stats{URLs: s.added, Bits: uint64(s.bloom.Cap())}
	if s.recent != nil {
		stats.Recent = s.recent.Len()
	}
	stats.Bytes = (stats.Bits+63)/64*8 + recentBytes*uint64(stats.Recent)
	k := float64(s.bloom.K())
	stats.Error = math.Pow(shareSet(k*float64(s.settled)/float64(stats.Bits), k), k)
	return stats
}

// shareSet returns the share of the bits that are set at a load. It inverts loadAt, which grows
// with p, by bisection.
func shareSet(load, k float64) float64 {
	low, high := 0.0, 1.0
	for range 50 {
		if p := (low + high) / 2; loadAt(p, k) < load {
			low = p
		} else {
			high = p
		}
	}
	return low
}
