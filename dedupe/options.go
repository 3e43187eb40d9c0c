package dedupe

// The values that zero fields of [Options] stand for.
const (
	DefaultCapacity = 1_000_000
	DefaultRate     = 0.001
	DefaultRecent   = 1 << 16
)

// Options sizes a [Filter]. The zero Options plans for a million URLs in about 10 MB.
type Options struct {
	// Capacity is the number of URLs that are planned for. 0 means DefaultCapacity, and so does a
	// negative number. At a Rate of 0.001, each takes 14.5 bits from the start. Beyond the plan
	// the Filter grows, which takes more bits for each URL: see Layers of [Stats].
	Capacity int

	// Rate is the probability that a new URL is taken for an old one, at most. 0 means
	// DefaultRate, and so does all else that does not lie between 0 and 1. Less than 2^-64 cannot
	// be had, and means that.
	Rate float64

	// Recent is how many of the latest URLs, roughly, are kept in a list of their own. 0 means
	// DefaultRecent, a negative number none. It buys speed and exactness: pages link to the same
	// few URLs over and over. Each takes about 120 bytes, and has pointers that the collector
	// follows: 7 ms in a whole collection for DefaultRecent, 130 ms and more for a million. The
	// package's README.md says how many of the sightings in real crawls a list catches.
	Recent int

	// MaxBytes bounds the memory to which the Filter grows beyond its plan. 0 means no bound, a
	// negative number that it never grows. What cannot grow any more is saturated: it goes on
	// with an error above Rate, and [Filter.Stats] says so.
	MaxBytes int64

	// Generations makes a Filter that forgets, for crawls without an end. 0 means that it never
	// forgets, and so does a negative number. Otherwise a URL is remembered until Capacity others
	// were met since it was last met, and maybe longer by a share of 1/Generations. Memory is
	// then constant, and MaxBytes means nothing.
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
	if o.Recent == 0 {
		o.Recent = DefaultRecent
	}
	o.Recent = max(o.Recent, -1)
	o.Generations = min(max(o.Generations, 0), maxGenerations)
	return o
}

// minRate is where two URLs as likely have the same hash.
const minRate = 0x1p-64

// maxGenerations is where more of them would only make each look-up slower.
const maxGenerations = 64
