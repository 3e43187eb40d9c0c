package dedupe

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/spinneret-go/spinneret/dedupe/internal/layers"
)

// growth decides for all shards when the next layer starts. Shards fill up unevenly, so a single
// shard would start it too early or too late.
//
// Layers are numbered from 1. A Filter that grows keeps all of them, a Filter that rotates only the
// latest. The design follows Almeida et al., "Scalable Bloom filters" (2007), but with unequal
// shares of the error: the first layer has nearly all of it, since most filters never need another.
type growth struct {
	plan    Options
	shards  int
	step    int          // hashes that a shard adds to layers before it reports them
	latest  atomic.Int64 // layer; shards catch up at their next use
	settled atomic.Int64 // hashes in the layers of all shards, within one step per shard
	limit   atomic.Int64 // of settled, at which the next layer starts

	mu        sync.Mutex // held to start a layer
	bytes     int64      // of all layers so far
	saturated atomic.Bool
}

// init sets g to its first layer.
func (g *growth) init(o Options, shards int) {
	g.plan, g.shards = o, shards
	g.step = max(o.Capacity/max(o.Generations, 1)/shards/2048, 1)
	g.begin(1)
}

// begin starts a layer. It requires that g.mu is held, or that g is not shared yet.
func (g *growth) begin(layer int64) {
	g.bytes += g.sizeOf(layer)
	limit := g.settled.Load() + g.keysOf(layer)
	if g.plan.Generations > 0 {
		// Some of what the shards report from now on is in the layer before.
		limit += g.unreported()
	}
	g.limit.Store(limit)
	g.latest.Store(layer)
}

// resume brings g to the state of shards that were read from a file.
func (g *growth) resume(shards []shard) {
	latest, settled, inLatest := int64(1), 0, 0
	for i := range shards {
		latest = max(latest, shards[i].latest)
	}
	for i := range shards {
		s := &shards[i]
		settled += s.settled
		if s.latest == latest {
			inLatest += s.layers[len(s.layers)-1].Keys()
		}
	}
	// init has begun the first. A Filter that rotates may have started billions, of which the last few count.
	for layer := max(latest-maxLayers, 1) + 1; layer <= latest; layer++ {
		g.begin(layer)
	}
	g.limit.Add(int64(settled - inLatest))
	g.report(settled)
}

// keysOf returns the number of hashes that a layer is designed for.
func (g *growth) keysOf(layer int64) int64 {
	capacity := int64(g.plan.Capacity)
	switch {
	case g.plan.Generations > 0:
		return (capacity-1)/int64(g.plan.Generations) + 1
	case layer <= 2:
		return capacity
	case layer-2 >= int64(62-math.Ilogb(float64(capacity))):
		return math.MaxInt64 / 4 // beyond all memory
	}
	return capacity << (layer - 2)
}

// rateOf returns the layer's share of the error. The sum over all layers that exist at the same
// time is at most the rate of the plan.
func (g *growth) rateOf(layer int64) float64 {
	const first, others = 15.0 / 16, 1.0 / 20 // the rest is for layers that start late
	switch {
	case g.plan.Generations > 0:
		return g.plan.Rate / float64(g.plan.Generations+1)
	case layer == 1:
		return g.plan.Rate * first
	}
	return g.plan.Rate * others / math.Pow(2, float64(layer-1))
}

// listSize returns the size of a shard's list of the latest URLs, 0 if there is none.
func (g *growth) listSize() int {
	if g.plan.Recent < 1 {
		return 0
	}
	return (g.plan.Recent-1)/g.shards + 1
}

// unreported returns how many hashes the shards may have in their layers without having said so.
func (g *growth) unreported() int64 { return int64(g.shards) * int64(g.step-1) }

// newLayer returns one shard's part of a layer.
func (g *growth) newLayer(layer int64) *layers.Layer {
	return layers.New(g.shareOf(layer), g.rateOf(layer))
}

// shareOf returns for how many hashes a shard's part of a layer has room. A layer of a Filter that
// forgets may get more than it is designed for: what was not reported when it began, and when it ended.
func (g *growth) shareOf(layer int64) float64 {
	keys := g.keysOf(layer)
	if g.plan.Generations > 0 {
		keys += 2 * g.unreported()
	}
	return float64(keys) / float64(g.shards)
}

// sizeOf returns the bytes of a layer in all shards.
func (g *growth) sizeOf(layer int64) int64 {
	bits, _ := layers.Size(g.shareOf(layer), g.rateOf(layer))
	return int64((bits+63)/64*8) * int64(g.shards)
}

// report records that a shard added n more hashes to its layers.
func (g *growth) report(n int) {
	if g.settled.Add(int64(n)) < g.limit.Load() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.settled.Load() < g.limit.Load() {
		return // another shard came first
	}
	next := g.latest.Load() + 1
	if g.plan.Generations == 0 && g.exceeds(g.sizeOf(next)) {
		g.saturated.Store(true)
		g.limit.Store(math.MaxInt64)
		return
	}
	g.begin(next)
}

// exceeds reports whether more bytes would exceed MaxBytes.
func (g *growth) exceeds(more int64) bool {
	bound, list := g.plan.MaxBytes, int64(g.listSize())*int64(g.shards)*recentBytes
	return bound < 0 || bound > 0 && g.bytes+list+more > bound
}
