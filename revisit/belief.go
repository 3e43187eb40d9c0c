package revisit

import (
	"encoding/binary"
	"math"
	"math/bits"
)

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
// again. Without it a page that slept for a year would need months to be believed awake. A
// tenth of it or three times as much change little; more wastes visits on pages that stay as they
// are.
const wake = 0.001 / day

// Costs are tabled over log2 of a time, so many places to an octave. The nearest place will do: it
// is wrong by at most 1.5 % of the time, which is a third of a sixteenth of a bit.
const (
	perOctave = 24
	perCell   = perOctave * 4 / 3 // = perOctave * cellOctave
	places    = 32*perOctave + 1 + perCell/2
)

// farthest is more sixteenths of a bit than any floor: that of a single second has 421.
const farthest = 432

// costs are what an observation costs each rate. Those of one place lie together, so that a visit
// touches one cache line of the tables.
type costs [cells]int16

var (
	missCost  [places]costs                       // of a change within a time: -log2(1-exp(-x))
	quietCost [places]costs                       // of a time without a change: x/ln(2)
	floors    [places]int16                       // how low fading lets a cell sink in a time
	fade      [farthest + math.MaxUint8 + 1]int16 // what it leaves, by how far a cell is above
	octave    [128]uint8                          // places above a power of two, by the next 7 bits
	rates     [cells]float64                      // changes per second
)

func init() {
	for k := range cells {
		rates[k] = slowest * math.Exp2(float64(k)*cellOctave)
	}
	for i := range octave {
		octave[i] = uint8(math.Round(perOctave * math.Log2(1+(float64(i)+0.5)/128)))
	}
	for i := range places {
		x := wake * math.Exp2(float64(i)/perOctave)
		floors[i] = int16(perBit * math.Log2((1+x)/x)) // of the chance x/(1+x), much like 1-exp(-x)
	}
	for i := range fade {
		// In bits, to add two likelihoods means to take the better one and a little more.
		above := float64(i - farthest)
		more := perBit * math.Log2(1+math.Exp2(-math.Abs(above)/perBit))
		fade[i] = int16(math.Round(min(above, 0) - more))
	}
	fillCosts()
}

// fillCosts computes each cost once: the faster rates see at a place what the slowest one sees some
// places later.
func fillCosts() {
	for i := range places + (cells-1)*perCell {
		x := slowest * math.Exp2(float64(i)/perOctave)
		miss := int16(math.Round(-perBit * math.Log2(-math.Expm1(-x))))
		quiet := int16(min(math.Round(perBit*math.Log2E*x), 1<<14))
		for k := range cells {
			if at := i - k*perCell; at >= 0 && at < places {
				missCost[at][k], quietCost[at][k] = miss, quiet
			}
		}
	}
}

// observe adds so many seconds without a visit, with a change in them or not. The tail is their
// end, if it is known to hold no change and to begin with one.
func (b *belief) observe(gap, tail uint32, changed bool) {
	at := place(gap)
	cost := &quietCost[at]
	var dated costs
	switch {
	case changed && tail > 0:
		dated = datedCost(tail)
		cost = &dated
	case changed:
		cost = &missCost[at]
	}
	// Fading mixes the belief with knowing nothing, by the chance that the page became another one.
	// How much is left depends on the floor alone, so that one table serves all times.
	faded := (*[math.MaxUint8 + 1]int16)(fade[farthest-int(floors[at]):])
	var sums [cells]int32
	best := int32(math.MaxInt16)
	for k := range b {
		s := int32(faded[b[k]]) + int32(cost[k])
		sums[k] = s
		best = min(best, s)
	}
	// A belief is copied in words from here on, and words that were written in bytes are slow to read.
	var low uint64
	for k := range 8 {
		low = low>>8 | uint64(min(uint32(sums[k]-best), math.MaxUint8))<<56
	}
	var high uint32
	for k := 8; k < cells; k++ {
		high = high>>8 | min(uint32(sums[k]-best), math.MaxUint8)<<24
	}
	binary.LittleEndian.PutUint64(b[:8], low)
	binary.LittleEndian.PutUint32(b[8:], high)
}

// datedCost is the cost of a change so many seconds ago with none since. It has the density
// rate*exp(-rate*tail).
func datedCost(tail uint32) (dated costs) {
	dated = quietCost[place(tail)]
	for k := range dated {
		dated[k] -= int16(k * perBit * perCell / perOctave)
	}
	return dated
}

// place returns where in the tables of costs a number of seconds lies: 24 times its logarithm, from
// the position and the seven bits after its first one. It replaces a logarithm in each Observe.
func place(s uint32) int {
	zeros := bits.LeadingZeros32(s | 1)
	return (31-zeros)*perOctave + int(octave[s<<zeros>>24&0x7f])
}
