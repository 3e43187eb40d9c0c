package dedupe

import (
	"hash/maphash"
	"math/bits"
)

// The values that zero fields of [Options] stand for.
const (
	DefaultCapacity = 1_000_000
	DefaultRate     = 0.001
	DefaultRecent   = 1 << 16
)

// Options sizes a [Filter]. The zero Options holds a million URLs in about 10 MB.
type Options struct {
	// Capacity is the number of URLs for which Rate is promised. 0 means DefaultCapacity, and so
	// does a negative number. At a Rate of 0.001, each takes 14.4 bits from the start.
	Capacity int

	// Rate is the probability that a new URL is taken for an old one when Capacity is reached. 0
	// means DefaultRate, and so does all else that does not lie between 0 and 1.
	Rate float64

	// Recent is how many of the latest URLs, roughly, are kept in a list of their own. 0 means
	// DefaultRecent, a negative number none. It buys speed: pages link to the same few URLs over
	// and over. Each takes about 120 bytes.
	Recent int
}

func (o Options) withDefaults() Options {
	if o.Capacity <= 0 {
		o.Capacity = DefaultCapacity
	}
	if !(o.Rate > 0 && o.Rate < 1) { // also NaN
		o.Rate = DefaultRate
	}
	if o.Recent == 0 {
		o.Recent = DefaultRecent
	}
	return o
}

// A Filter remembers URLs. The latest ones are in a list in the order of their last use, and what
// falls out of the list goes into a Bloom filter (Ueda et al., "A parallel distributed crawler of
// producer-consumer modules", section 5.2.2). Its methods are safe for concurrent use.
//
// Both tiers know a URL by a 64-bit hash with a random seed. Two URLs with the same hash are one
// to the Filter, so the second is taken for an old one. With n URLs in the Filter that happens to
// a new one with a probability of n/2^64, which vanishes in Rate. Package maphash is no
// cryptographic hash, but as neither the seed nor a hash ever leaves the Filter, a site has
// nothing to search for such URLs with.
type Filter struct {
	seed     maphash.Seed
	capacity int
	shards   []shard // a power of two
	shift    int     // of a hash, leaves the number of its shard
}

const (
	// maxShards makes it rare that two goroutines meet in a shard, on machines of today.
	maxShards = 64

	// minShardCapacity is large enough that all shards fill up about equally.
	minShardCapacity = 1 << 14
)

// New returns an empty filter. It takes all the memory for its Capacity at once.
func New(o Options) *Filter {
	o = o.withDefaults()
	logShards := min(bits.Len(uint(o.Capacity/minShardCapacity)), bits.Len(maxShards)) - 1
	logShards = max(logShards, 0)
	f := &Filter{
		seed:     maphash.MakeSeed(),
		capacity: o.Capacity,
		shards:   make([]shard, 1<<logShards),
		shift:    64 - logShards,
	}
	for i := range f.shards {
		f.shards[i].init(o, len(f.shards))
	}
	return f
}

// Add remembers url and reports whether it is new. If several goroutines add the same new URL at
// the same time, one of them is told so. The url is taken byte by byte: pass it through
// [Canonical] first.
func (f *Filter) Add(url string) (added bool) {
	hash := maphash.String(f.seed, url)
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
	URLs     int     // reported as new so far
	Capacity int     // URLs for which the rate is promised
	Recent   int     // URLs in the list of the latest
	Bits     uint64  // of the Bloom filter
	Bytes    uint64  // of memory, estimated
	Error    float64 // probability that the next new URL is taken for an old one
}

// Stats returns the filter's sizes and what its error is now.
func (f *Filter) Stats() Stats {
	total := Stats{Capacity: f.capacity}
	for i := range f.shards {
		s := f.shards[i].stats()
		total.URLs += s.URLs
		total.Recent += s.Recent
		total.Bits += s.Bits
		total.Bytes += s.Bytes
		total.Error += s.Error / float64(len(f.shards)) // a new URL may meet any shard
	}
	return total
}
