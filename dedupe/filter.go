package dedupe

import (
	"math/bits"

	"github.com/spinneret-go/spinneret/dedupe/internal/siphash"
)

// A Filter remembers URLs. The latest ones are in a list in the order of their last use, and what
// falls out of the list goes into a Bloom filter (Ueda et al., "A parallel distributed crawler of
// producer-consumer modules", section 5.2.2, Algorithm 3). Its methods are safe for concurrent use.
//
// Both tiers know a URL by a 64-bit hash. Two URLs with the same hash are one to the Filter, so
// the second is taken for an old one. With n URLs in the Filter that happens to a new one with a
// probability of n/2^64, which vanishes in Rate. The hash is SipHash with a random key, so that no
// site can make URLs that collide.
type Filter struct {
	key    siphash.Key
	plan   Options
	shards []shard // a power of two
	shift  int     // of a hash, leaves the number of its shard
	growth growth
}

const (
	// maxShards makes it rare that two goroutines meet in a shard, on machines of today.
	maxShards = 64

	// minShardCapacity is large enough that all shards fill up about equally.
	minShardCapacity = 1 << 14
)

// New returns an empty filter. It takes all the memory for its Capacity at once, or for the first
// of its Generations.
func New(o Options) *Filter {
	o = o.withDefaults()
	logShards := min(bits.Len(uint(o.Capacity/minShardCapacity)), bits.Len(maxShards)) - 1
	f := newFilter(o, siphash.NewKey(), 1<<max(logShards, 0))
	for i := range f.shards {
		f.shards[i].catchUp()
	}
	return f
}

// newFilter returns a filter whose shards have no layers yet. It requires a power of two.
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
// the same time, one of them is told so. The url is compared byte by byte: pass it through
// weburl.Canonical first.
func (f *Filter) Add(url string) (added bool) {
	hash := f.key.Sum64(url)
	return f.shards[hash>>f.shift].add(hash)
}

// Len returns how many URLs were reported as new.
func (f *Filter) Len() int {
	n := 0
	for i := range f.shards {
		n += f.shards[i].len()
	}
	return n
}

// Stats describes a [Filter] at one moment. If URLs are added meanwhile, some are counted and
// some are not.
type Stats struct {
	URLs     int    // reported as new so far
	Capacity int    // URLs that were planned for
	Recent   int    // URLs in the list of the latest
	Bits     uint64 // of the Bloom filter
	Bytes    uint64 // of memory, estimated

	// Layers is how many Bloom filters there are in a row. The first is for Capacity URLs, and
	// each further one doubles the total. With i counted from 0, layer i has a share of the rate:
	// 15/16 of it for i = 0, and 1/20 of it, halved i times, for the others. The sum is below
	// Rate. A URL takes 1.44*log2(1/share) bits, which at 0.001 is 14.5, and for the others
	// 22.1 + 1.44*(i-1). So a plan that was right costs 1 % more than a Bloom filter that cannot
	// grow, and one that was half, a quarter or an eighth of the truth 27, 45 or 59 % more.
	Layers int

	// Error is the probability that the next new URL is taken for an old one.
	Error float64

	// Saturated says that the Filter is full and must not grow: Error is above Rate, or soon is.
	Saturated bool
}

// Stats returns the filter's sizes and what its error is now.
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
