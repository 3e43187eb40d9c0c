package revisit

import "math"

// A belief is how well each of a few rates of change explains the visits so far. Each cell holds a
// number of bits, in sixteenths: how much worse its rate explains the visits than the best rate
// does. It is a likelihood. The prior belongs to the policy, so a better prior takes effect for all
// pages immediately. The zero belief knows nothing.
type belief [cells]uint8

// The rates are an octave apart, from one change in 1,024 days to 32 changes a day. These constants
// are on disk. Do not change them.
const (
	cells   = 16
	slowest = 1.0 / (1024 * day) // in changes per second
	perBit  = 16
)

const day = 24 * 60 * 60 // seconds

// rates are the rates of the cells, in changes per second.
var rates [cells]float64

// wake is the chance, per second, that a page turns into another one, so that all rates are
// possible again. Without it, a page that slept for a year would need months to be recognized as
// awake. A tenth of it or three times as much changes little; more wastes visits on steady pages.
const wake = 0.001 / day

// missBits has the cost of a change in bits, by the expected number of changes: 16 entries per
// octave, starting at 2^missFrom. The costs of two neighboring rates are 16 entries apart.
var missBits [missEntries]float64

const (
	missOctave  = 16
	missFrom    = -27 // a second at the slowest rate
	missEntries = (6+cells-missFrom)*missOctave + 1
)

// likelihoods maps the value of a cell to a likelihood relative to the best rate.
var likelihoods [math.MaxUint8 + 1]float64

func init() {
	for k := range rates {
		rates[k] = slowest * math.Exp2(float64(k))
	}
	for i := range missBits {
		x := math.Exp2(missFrom + float64(i)/missOctave)
		missBits[i] = -math.Log2(-math.Expm1(-x))
	}
	for b := range likelihoods {
		likelihoods[b] = math.Exp2(-float64(b) / perBit)
	}
}

// missCost returns the index in missBits of the costs of a change within some seconds: that of the
// slowest rate, with the other rates 16 entries apart. It replaces an exponential and a logarithm
// for each rate.
func missCost(gap float64) []float64 {
	return missBits[int(math.Round((log2(gap*slowest)-missFrom)*missOctave)):]
}

// observe adds a time in seconds that ended with a visit, and whether the visit found a change. A
// positive tail means that the last change is known to be that many seconds ago.
//
// Numbers are rounded up or down by chance: what a visit adds is often far less than a sixteenth of a
// bit, and rounding to the nearest would lose that, however many such visits come.
func (b *belief) observe(gap, tail float64, changed bool, chance *dice) {
	var bits [cells]float64
	switch {
	case !changed: // exp(-x)
		for k, rate := range rates {
			bits[k] = rate * gap * math.Log2E
		}
	case tail > 0: // the density of the last change: rate*exp(-rate*tail)
		for k, rate := range rates {
			bits[k] = rate*tail*math.Log2E - float64(k)
		}
	default: // 1-exp(-x)
		miss := missCost(gap)
		for k := range bits {
			bits[k] = miss[k*missOctave]
		}
	}
	// Either the page is still the same, or it has become another one.
	woke := wake * gap / (1 + wake*gap)
	best := math.Inf(1)
	for k := range bits {
		bits[k] -= log2(likelihoods[b[k]] + woke)
		best = min(best, bits[k])
	}
	for k := range b {
		b[k] = uint8(min(perBit*(bits[k]-best)+chance.roll(), math.MaxUint8))
	}
}
