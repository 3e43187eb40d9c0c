package revisit

import (
	"math"
	"math/bits"
)

// Dice are random numbers that follow from what is observed, so that the same visits always give the same
// numbers. They round a sum of many small terms to a coarse number without losing the terms: on average
// it stays exact.
type dice uint64

// throw returns dice for a visit at a time to a page with this history.
func (h *History) throw(at uint32) dice {
	d := uint64(at)<<32 | uint64(h.last^h.total)
	d = (d ^ d>>33) * 0xff51afd7ed558ccd // the last step of MurmurHash3
	d = (d ^ d>>33) * 0xc4ceb9fe1a85ec53
	return dice(d ^ d>>33)
}

// roll returns the next number from 0 to below 1.
func (d *dice) roll() float64 {
	*d = *d*6364136223846793005 + 1442695040888963407 // Knuth's MMIX
	return float64(*d>>11) / (1 << 53)
}

// pack is pack for a sum of small terms.
func (d *dice) pack(v float64) short {
	v = min(v*unit, math.MaxUint32)
	step := uint32(1) << max(bits.Len32(uint32(v))-mantissaBits-1, 0) // from one short to the next
	return shorten(uint32(min(v+d.roll()*float64(step), math.MaxUint32)) &^ (step - 1))
}

// float32 rounds a sum, which must not be negative.
func (d *dice) float32(v float64) float32 {
	const lost = 1<<29 - 1 // bits of a float64 that a float32 has not
	bits := math.Float64bits(v) + uint64(d.roll()*(lost+1))
	return float32(math.Float64frombits(bits &^ lost))
}
