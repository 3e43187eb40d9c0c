// Package layers stores 64-bit hashes in Bloom filters with an exactly known error.
//
// A [Layer] is a Bloom filter for a given number of keys. Several layers, searched in turn, make a
// filter that grows: its probability of a false positive is at most the sum of theirs.
package layers

import (
	"math"
	"math/bits"

	"github.com/bits-and-blooms/bloom/v3"
)

// A Layer is a Bloom filter of hashes. They must come from a keyed hash function, as the layer
// derives all its bit positions from them. It is not safe for concurrent use.
//
// The bits are stored in a filter of bits-and-blooms. The positions are computed here: the library
// would hash each hash again and divide for each position, which takes 1.5 times as long in a large
// filter and three times as long in one that fits into the cache (README.md of package dedupe).
type Layer struct {
	filter *bloom.BloomFilter
	keys   int // calls of Add
}

// New returns an empty layer whose error reaches rate with the given number of keys.
func New(keys, rate float64) *Layer {
	size, functions := Size(keys, rate)
	return Of(make([]uint64, (size+63)/64), size, functions, 0)
}

// Of returns a layer with existing bits, such as those read from a file. There must be words for
// all bits. The layer takes ownership of them.
func Of(words []uint64, size, functions uint64, keys int) *Layer {
	return &Layer{bloom.FromWithM(words, uint(size), uint(functions)), keys}
}

// Words returns the bits for storing them. The caller must not change them.
func (l *Layer) Words() []uint64 { return l.filter.BitSet().Words() }

// Bits returns the number of bits.
func (l *Layer) Bits() uint64 { return uint64(l.filter.Cap()) }

// Functions returns the number of hash functions.
func (l *Layer) Functions() uint64 { return uint64(l.filter.K()) }

// Keys returns the number of calls of Add.
func (l *Layer) Keys() int { return l.keys }

// Add sets the bits of a hash for which Test returns false.
func (l *Layer) Add(hash uint64) {
	set := l.filter.BitSet()
	start, step := positions(hash)
	for range l.filter.K() {
		set.Set(l.at(start))
		start = start*multiplier + step
	}
	l.keys++
}

// Test reports whether the hash was added, or looks as if it was.
func (l *Layer) Test(hash uint64) bool {
	set := l.filter.BitSet()
	start, step := positions(hash)
	for range l.filter.K() {
		if !set.Test(l.at(start)) {
			return false
		}
		start = start*multiplier + step
	}
	return true
}

// positions returns a hash's first position, as a fraction of 2^64 of the layer, and its step. The
// next position is the position times multiplier, plus the step. Callers distribute hashes over
// shards by their highest bits; the multiplications move the other bits up to the ones that at
// uses.
//
// Adding only steps, the double hashing of Kirsch and Mitzenmacher (2006), would be a little
// faster. But two hashes with similar starts and steps would then share nearly all of their bits.
// In small layers that happens once in a million, too often for the smallest error rates.
func positions(hash uint64) (start, step uint64) {
	return hash * 0x9e3779b97f4a7c15, (hash ^ hash>>32) * 0xd6e8feb86659fd93
}

// multiplier is that of Knuth's MMIX generator.
const multiplier = 6364136223846793005

// at scales a fraction of 2^64 to a bit, with a multiplication instead of a division.
func (l *Layer) at(fraction uint64) uint {
	bit, _ := bits.Mul64(fraction, l.Bits())
	return uint(bit)
}

// Error returns the probability that a key that was not added looks as if it was.
func (l *Layer) Error() float64 {
	k := float64(l.Functions())
	return math.Pow(shareSet(k*float64(l.keys)/float64(l.Bits()), k), k)
}

// minRate bounds the work of computing with rates, which may have been rounded to 0.
const minRate = 0x1p-1000

// Size returns the number of bits and of hash functions for a layer of n keys with the given error
// rate, or a little less. The minimum rate is 2^-1000. EstimateParameters of the bloom package
// returns the bits for a fractional number of functions, and misses the rate by some percent.
func Size(n, rate float64) (size, functions uint64) {
	rate = max(rate, minRate)
	k := max(1, math.Round(-math.Log2(rate)))
	return uint64(max(1, math.Ceil(k*n/loadAt(math.Pow(rate, 1/k), k)))), uint64(k)
}

// loadAt returns the number of hashes per bit that a Bloom filter with k functions has taken when
// the share p of its bits is set. The textbook's p = 1 - exp(-load) is for arbitrary keys. Here,
// each key was new to the filter, so it found a clear bit and set k(1-p)/(1-p^k) bits on average.
// Integrated, that is load = p + p^2/2 + ... + p^k/k: almost the same up to the planned number of
// keys, but not beyond.
func loadAt(p, k float64) float64 {
	load, power := 0.0, 1.0
	for j := 1.0; j <= k; j++ {
		power *= p
		load += power / j
	}
	return load
}

// shareSet returns the share of the bits that is set at a load. It inverts loadAt, which increases
// with p, by bisection.
func shareSet(load, k float64) float64 {
	low, high := 0.0, 1.0
	for range 50 {
		if p := (low + high) / 2; loadAt(p, k) < load {
			low = p
		} else {
			high = p
		}
	}
	return low
}
