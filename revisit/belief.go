package revisit

import "math"

// A belief is how well each of a few rates of change explains what the visits showed, all of them
// with the same weight before the first visit: a likelihood, not a posterior. The prior is the
// policy's, so that a better prior counts at once for all pages.
//
// A cell holds the bits, in sixteenths, by which its rate explains the visits worse than the best
// one does. The zero belief knows nothing.
type belief [cells]uint8

// The rates lie 4/3 octaves apart, from one change in 1,024 days to 25 changes a day. These
// constants are on disk. Do not change them.
const (
	cells      = 12
	cellOctave = 4.0 / 3
	slowest    = 1.0 / (1024 * day) // in changes per second
	perBit     = 16
)

const day = 24 * 60 * 60 // seconds

// wake is the chance, per second, that a page turns into another one and all rates are possible
// again. Without it a page that slept for a year would need months to be believed awake. Once in
// 1,000 days cost least on real logs; more often wastes visits on pages that stay as they are.
const wake = 0.001 / day

// Tables over log2(x), where x is a rate times a time. Their step divides the distance of two
// cells, so that one position serves all cells. They reach from the slowest rate in a second to
// the fastest one in 136 years.
const (
	perOctave = 12
	perCell   = 16 // = perOctave * cellOctave
	tableFrom = -28
	tableTo   = 21
	tableLen  = (tableTo-tableFrom)*perOctave + 2
)

var (
	missBits  [tableLen]float32 // what a change within x costs a rate: -log2(1-exp(-x))
	gains     [tableLen]float32 // gain(x)
	rates     [cells]float64    // changes per second
	quietBits [cells]float32    // what a second without a change costs
	weights   [256]float32      // likelihood of a cell's value
	mixBits   [256]uint8        // log2(1+2^-d)
	logs      [257]float64      // log2(1+i/256)
)

func init() {
	for i := range tableLen {
		x := math.Exp2(tableFrom + float64(i)/perOctave)
		missBits[i] = float32(-perBit * math.Log2(-math.Expm1(-x)))
		gains[i] = float32(gain(x))
	}
	for i := range logs {
		logs[i] = math.Log2(1 + float64(i)/256)
	}
	for k := range cells {
		rates[k] = slowest * math.Exp2(float64(k)*cellOctave)
		quietBits[k] = float32(perBit * math.Log2E * rates[k])
	}
	defaultWorth = worthOfVersions(DefaultFair)
	for v := range weights {
		bits := float64(v) / perBit
		weights[v] = float32(math.Exp2(-bits))
		mixBits[v] = uint8(math.Round(perBit * math.Log2(1+math.Exp2(-bits))))
	}
}

// gain is what one more visit is worth in versions, at the margin, when a page has changed x times
// on average since the last one. Visits at a rate of r to a page with changes at a rate of l catch
// r(1-exp(-l/r)) versions; the derivative by r depends on x = l/r alone.
func gain(x float64) float64 {
	if x < 1e-3 { // where the difference below loses its digits
		return x * x * (0.5 - x*(1.0/3-x/8))
	}
	return 1 - (1+x)*math.Exp(-x)
}

// after returns the belief after so many seconds without a visit, with a change in them or not. The
// tail is their end, if it is known to hold no change and to begin with one.
func (b belief) after(gap, tail float64, changed bool) belief {
	bits := b.faded(gap)
	switch {
	case !changed:
		addQuiet(&bits, gap)
	case tail > 0:
		// The last change at a known time has the density rate*exp(-rate*tail).
		for k := range bits {
			bits[k] -= float32(k) * (perBit * cellOctave)
		}
		addQuiet(&bits, tail)
	default:
		at, share := position(gap)
		for k := range bits {
			i := at + k*perCell
			bits[k] += missBits[i] + share*(missBits[i+1]-missBits[i])
		}
	}
	return pack(&bits)
}

// addQuiet adds what a time without a change costs each rate: exp(-rate*time).
func addQuiet(bits *[cells]float32, quiet float64) {
	for k := range bits {
		bits[k] += quietBits[k] * float32(quiet)
	}
}

// faded mixes the belief with knowing nothing, by the chance that the page became another one in
// so many seconds. In bits, to add two likelihoods means to take the better one and a little more.
func (b belief) faded(gap float64) (bits [cells]float32) {
	x := wake * gap
	floor := int(perBit * log2((1+x)/x)) // of the chance x/(1+x), much like 1-exp(-x)
	for k, v := range b {
		worse, better := max(int(v), floor), min(int(v), floor)
		bits[k] = float32(better)
		if d := worse - better; d < len(mixBits) {
			bits[k] -= float32(mixBits[d])
		}
	}
	return bits
}

// pack measures all cells from the best one.
func pack(bits *[cells]float32) (b belief) {
	best := bits[0]
	for _, v := range bits[1:] {
		best = min(best, v)
	}
	for k, v := range bits {
		b[k] = uint8(min(v-best+0.5, math.MaxUint8))
	}
	return b
}

// position returns where in the tables the slowest rate times so many seconds lies.
func position(s float64) (at int, share float32) {
	p := (log2(s*slowest) - tableFrom) * perOctave
	at = int(p)
	return at, float32(p - float64(at))
}

// log2 is math.Log2 for positive normal numbers, right to 3e-6 and five times as fast.
func log2(v float64) float64 {
	b := math.Float64bits(v)
	i := b >> 44 & 0xff
	rest := float64(b&(1<<44-1)) / (1 << 44)
	return float64(int(b>>52)-1023) + logs[i] + rest*(logs[i+1]-logs[i])
}

// timeAt is the inverse of position.
func timeAt(at int, share float32) (s float64) {
	return math.Exp2(tableFrom+(float64(at)+float64(share))/perOctave) / slowest
}
