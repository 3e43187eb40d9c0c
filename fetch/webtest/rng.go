package webtest

import "math"

// Salts keep the random streams of one page apart, so that a change to one of them (say, more
// links) does not change the bytes of the others.
const (
	saltPath uint64 = iota + 1
	saltLinks
	saltSize
	saltText
	saltVersion
	saltChange
	saltLatency
	saltStamp
	saltCalendar
)

// rng is SplitMix64 (Steele, Lea and Flood 2014). math/rand would do, but its generators escape
// to the heap when they are drawn from through an interface, and a page draws a thousand times.
type rng uint64

// next advances by the golden ratio, which visits every state once.
func (r *rng) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	return mix(uint64(*r))
}

// below returns a number in [0, n). The bias of the plain multiplication is far below what a
// virtual web could show.
func (r *rng) below(n int) int { return int(r.next() >> 33 * uint64(n) >> 31) }

// unit returns a number in (0, 1), so that its logarithm is finite.
func (r *rng) unit() float64 { return (float64(r.next()>>11) + 0.5) / (1 << 53) }

// norm returns a standard normal number, by Box and Muller's method.
func (r *rng) norm() float64 {
	return math.Sqrt(-2*math.Log(r.unit())) * math.Cos(2*math.Pi*r.unit())
}

// mix is SplitMix64's finaliser: neighbouring keys give unrelated numbers.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// stream returns the generator for one purpose of one page.
func (w *Web) stream(salt uint64, host, page int) rng {
	return rng(mix(mix(w.seed^salt*0xd6e8feb86659fd93) + uint64(host)<<32 + uint64(page)))
}

// hashString is FNV-1a, for streams that depend on a URL rather than a page.
func hashString(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}
