package dedupe

// Defaults for zero fields of [Options].
const (
	DefaultCapacity = 1_000_000
	DefaultRate     = 0.001
)

// Options sizes a [Filter]. The zero Options is for a million URLs in about 2 MB.
type Options struct {
	// Capacity is the expected number of URLs. Zero or negative means DefaultCapacity. At a Rate of
	// 0.001, the Filter allocates 14.5 bits for each. Beyond the capacity it grows, which takes
	// more bits per URL: see Layers of [Stats].
	Capacity int

	// Rate is the maximum probability that a new URL is taken for a known one. 0 means DefaultRate,
	// as does any value that is not between 0 and 1. The minimum is 2^-64.
	Rate float64

	// Recent is the approximate number of the latest URLs that are kept in a list, in front of the
	// Bloom filter. Zero or negative means no list. A list of 65,536 catches nearly all repeated
	// links of a page's site. It pays if the Bloom filter is many times larger than the processor's
	// cache, from about 10^8 URLs on; below, a lookup in the list takes longer than one in the
	// filter. An entry takes about 120 bytes and contains pointers for the garbage collector to
	// follow: 7 ms per collection for 65,536, 130 ms and more for a million. README.md of this
	// package has the figures.
	Recent int

	// MaxBytes bounds the memory of a Filter that grows beyond its Capacity, with the full list of
	// Recent. If Capacity and Recent alone take more, it does not grow. 0 means unlimited; a negative
	// number means that it must not grow. A Filter that cannot grow is saturated: its
	// error exceeds Rate, as [Filter.Stats] reports.
	MaxBytes int64

	// Generations makes a Filter that forgets, for endless crawls. Zero or negative means that it
	// never forgets. Otherwise a URL is remembered for at least the next Capacity calls of Add, and
	// forgotten about 1/Generations later. URLs that are added again count too, but at most once in
	// Capacity/Generations. The memory is then constant, and MaxBytes has no effect.
	Generations int
}

func (o Options) withDefaults() Options {
	if o.Capacity <= 0 {
		o.Capacity = DefaultCapacity
	}
	if !(o.Rate > 0 && o.Rate < 1) { // also NaN
		o.Rate = DefaultRate
	}
	o.Rate = max(o.Rate, minRate)
	o.Recent = max(o.Recent, 0)
	o.Generations = min(max(o.Generations, 0), maxGenerations)
	return o
}

// minRate is the probability that two URLs have the same hash.
const minRate = 0x1p-64

// maxGenerations bounds the cost of a lookup, which searches each of them.
const maxGenerations = 64
