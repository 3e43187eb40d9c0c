package dedupe

import (
	"math/bits"

	"github.com/spinneret-go/spinneret/dedupe/internal/siphash"
)

// A Filter remembers URLs in memory, in a Bloom filter. With Options.Recent, the latest ones are in
// an LRU list, and go into the Bloom filter when the list evicts them (Ueda et al., "A parallel
// distributed crawler of producer-consumer modules", section 5.2.2, Algorithm 3). Its methods are
// safe for concurrent use. Use [New]: a Filter has no zero value.
//
// A Filter knows a URL by a 64-bit hash, SipHash with a random key, so no site can craft URLs that
// collide. By chance a new URL shares its hash with one of n others with a probability of n/2^64,
// which is negligible compared to Rate.
type Filter struct {
	key    siphash.Key
	plan   Options
	shards []shard // a power of two
	shift  int     // a hash shifted right by it is a shard number
	growth growth
}

const (
	// maxShards is large enough that two goroutines rarely need the same shard.
	maxShards = 64

	// minShardCapacity is large enough that all shards fill up about equally.
	minShardCapacity = 1 << 14
)

// New returns an empty Filter. It allocates the memory for its Capacity immediately, or for the
// first of its Generations.
func New(o Options) *Filter {
	o = o.withDefaults()
	logShards := min(bits.Len(uint(o.Capacity/minShardCapacity)), bits.Len(maxShards)) - 1
	f := newFilter(o, siphash.NewKey(), 1<<max(logShards, 0))
	for i := range f.shards {
		f.shards[i].catchUp()
	}
	return f
}

// newFilter returns a filter whose shards have no layers yet. Their number must be a power of two.
func newFilter(o Options, key siphash.Key, shards int) *Filter {
	f := &Filter{
		key:    key,
		plan:   o,
		shards: make([]shard, shards),
		shift:  64 - bits.Len(uint(shards)-1),
	}
	f.growth.init(o, shards)
	for i := range f.shards {
		f.shards[i].init(&f.growth)
	}
	return f
}

// Add remembers url and reports whether it is new. If several goroutines add the same new URL at
// the same time, Add returns true to one of them. URLs are compared byte by byte, so canonicalize
// them first.
func (f *Filter) Add(url string) (added bool) {
	hash := f.key.Sum64(url)
	return f.shards[hash>>f.shift].add(hash)
}

// Stats describes a [Filter]. URLs that are being added concurrently may or may not be counted.
type Stats struct {
	URLs     int    // reported as new so far
	Capacity int    // expected number of URLs
	Recent   int    // URLs in the list of the latest ones
	Bits     uint64 // of the Bloom filter
	Bytes    uint64 // of memory, estimated

	// Layers is the number of Bloom filters, which are searched in turn. The first is for Capacity
	// URLs, and each further one doubles the total. Layer 0 has 15/16 of the Rate, and layer i has
	// 1/20 of it, halved i times; the sum is below Rate. A URL takes 1.44*log2(1/share) bits: at a
	// Rate of 0.001, 14.5 in layer 0, and 22.1 + 1.44*(i-1) in layer i. So with the right Capacity,
	// a Filter costs 1 % more than a Bloom filter that cannot grow. With a half, a quarter or an
	// eighth of the right Capacity, it costs 27, 45 or 59 % more.
	Layers int

	// Error is the probability that the next new URL is taken for a known one.
	Error float64

	// Saturated means that the Filter is full and may not grow: Error exceeds Rate, or soon will.
	Saturated bool
}

// Stats returns the sizes of the Filter and its current error.
func (f *Filter) Stats() Stats {
	total := Stats{Capacity: f.plan.Capacity, Saturated: f.growth.saturated.Load()}
	for i := range f.shards {
		s := f.shards[i].stats()
		total.URLs += s.URLs
		total.Recent += s.Recent
		total.Bits += s.Bits
		total.Bytes += s.Bytes
		total.Layers = max(total.Layers, s.Layers)
		total.Error += s.Error / float64(len(f.shards)) // a new URL may meet any shard
	}
	return total
}
