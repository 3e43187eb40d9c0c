package revisit

import "math"

// Each visit needs a logarithm and a power of two per rate. Those of package math accept any number
// and take five times as long.

// parts is how many pieces an octave is cut into. A piece is so small that a few terms of the
// series reach the precision of a float64.
const (
	parts    = 128
	partBits = 7
	mantissa = 52
	bias     = 1023
)

// powers has 2^(i/parts), and logs the reciprocal and the logarithm of the middle of each piece of
// [1, 2).
var (
	powers [parts]float64
	logs   [parts]struct{ reciprocal, log float64 }
)

func init() {
	for i := range parts {
		powers[i] = math.Exp2(float64(i) / parts)
		middle := 1 + (float64(i)+0.5)/parts
		logs[i].reciprocal, logs[i].log = 1/middle, math.Log2(middle)
	}
}

// log2 is math.Log2 within 1e-15, for normal numbers above 0.
func log2(x float64) float64 {
	bits := math.Float64bits(x)
	part := &logs[bits>>(mantissa-partBits)%parts]
	fraction := math.Float64frombits(bits&(1<<mantissa-1) | bias<<mantissa)
	r := fraction*part.reciprocal - 1 // at most 2^-8
	series := r * (1 - r*(1.0/2-r*(1.0/3-r*(1.0/4-r*(1.0/5-r*(1.0/6))))))
	return float64(int(bits>>mantissa)-bias) + (part.log + series*math.Log2E)
}

// exp2 is math.Exp2 within a relative error of 1e-15, for numbers from -1000 to 1000.
func exp2(x float64) float64 {
	n := math.Floor(x * parts)
	r := (x - n/parts) * math.Ln2 // at most 0.0055
	series := 1 + r*(1+r*(1.0/2+r*(1.0/6+r*(1.0/24+r*(1.0/120)))))
	whole := int64(n)
	power := math.Float64bits(powers[whole&(parts-1)]) + uint64(whole>>partBits)<<mantissa
	return math.Float64frombits(power) * series
}
