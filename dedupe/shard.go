package dedupe

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/spinneret-go/spinneret/dedupe/internal/layers"
)

// A shard is a filter for the hashes whose highest bits are its number. With several shards,
// goroutines rarely wait for each other.
type shard struct {
	mu       sync.Mutex
	growth   *growth
	recent   *simplelru.LRU[uint64, uint32] // the layer that has the hash, or 0; nil if off
	layers   []*layers.Layer                // the oldest first
	latest   int64                          // number of the last of layers
	added    int                            // hashes that were reported as new
	settled  int                            // hashes that were added to a layer
	reported int                            // how many of settled were reported to growth
}

// recentBytes is the measured size of a list entry, including its share of the list's map.
const recentBytes = 120

func (s *shard) init(g *growth) {
	s.growth = g
	if size := g.listSize(); size > 0 {
		evicted := func(hash uint64, layer uint32) { s.settle(hash, int64(layer)) } // within add
		s.recent, _ = simplelru.NewLRU(size, evicted)                               // fails only for sizes below 1
	}
}

// add is Algorithm 3 of the paper: the hash enters the list, the hash it evicts enters the Bloom
// filter, and only then the filter is searched for the new hash. This order is also the fastest.
// Setting bits does not stall, so they are fetched from memory while the list is updated.
//
// A hash that the filter has enters the list, too. That makes popular pages cheap, and costs
// nothing when they are evicted: the list knows which layer has a hash.
func (s *shard) add(hash uint64) (added bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catchUp()
	if s.recent != nil {
		if _, found := s.recent.Get(hash); found {
			return false
		}
		s.recent.Add(hash, 0)
	}
	layer := s.find(hash)
	switch {
	case s.recent == nil:
		s.settle(hash, layer)
	case layer != 0:
		s.recent.Add(hash, uint32(layer))
	}
	if layer == 0 {
		s.added++
	}
	return layer == 0
}

// find returns the number of the newest layer that has the hash, or 0.
func (s *shard) find(hash uint64) int64 {
	for i := len(s.layers) - 1; i >= 0; i-- {
		if s.layers[i].Test(hash) {
			return s.latest - int64(len(s.layers)-1-i)
		}
	}
	return 0
}

// settle adds a hash to the latest layer, unless a layer has it; 0 means none. A Filter that
// forgets also adds a hash that was met again to its latest layer.
func (s *shard) settle(hash uint64, layer int64) {
	if layer == s.latest || layer > 0 && s.growth.plan.Generations == 0 {
		return
	}
	s.layers[len(s.layers)-1].Add(hash)
	s.settled++
	if s.settled-s.reported >= s.growth.step {
		s.reportSettled()
	}
}

// reportSettled requires that s.mu is held.
func (s *shard) reportSettled() {
	s.growth.report(s.settled - s.reported)
	s.reported = s.settled
}

// report passes the pending count to growth early.
func (s *shard) report() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reportSettled()
}

// catchUp starts the layers that growth has started since the last call. Each shard does so when it
// is used, so that no goroutine has to lock all of them.
func (s *shard) catchUp() {
	if latest := s.growth.latest.Load(); s.latest < latest {
		s.follow(latest)
	}
}

// follow advances to the given layer. It skips layers that would be rotated out by then.
func (s *shard) follow(latest int64) {
	n := s.growth.plan.Generations
	if gone := latest - int64(n) - 1; n > 0 && s.latest < gone {
		s.latest, s.layers = gone, nil
	}
	for s.latest < latest {
		s.latest++
		if n > 0 && len(s.layers) > n {
			s.layers = append(s.layers[:0], s.layers[1:]...)
		}
		s.layers = append(s.layers, s.growth.newLayer(s.latest))
	}
}

func (s *shard) stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := Stats{URLs: s.added, Layers: len(s.layers)}
	right := 1.0 // probability that a new hash is recognized
	for _, l := range s.layers {
		stats.Bits += l.Bits()
		stats.Bytes += uint64(len(l.Words())) * 8
		right *= 1 - l.Error()
	}
	stats.Error = 1 - right
	if s.recent != nil {
		stats.Recent = s.recent.Len()
	}
	stats.Bytes += recentBytes * uint64(stats.Recent)
	return stats
}
