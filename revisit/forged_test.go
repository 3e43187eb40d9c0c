package revisit

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Extremes of the numbers in an encoding.
var (
	extremes32 = []uint32{0, 1, 2, 1 << 10, 1 << 16, 1 << 31, math.MaxUint32,
		math.Float32bits(1), math.Float32bits(1000), math.Float32bits(1e20),
		math.Float32bits(math.MaxFloat32), math.Float32bits(-1), math.Float32bits(math.SmallestNonzeroFloat32),
		math.Float32bits(float32(math.Inf(1))), math.Float32bits(float32(math.NaN()))}
	extremes16 = []uint16{0, 1, 1 << 12, math.MaxUint16 - 1, math.MaxUint16, uint16(unknown.changes)}
)

// forge replaces some words of an encoding by extremes.
func forge(random *rand.Rand, b []byte) []byte {
	b = append([]byte(nil), b...)
	for range 1 + random.IntN(6) {
		if at := random.IntN(len(b)-3) &^ 1; random.IntN(2) == 0 {
			binary.LittleEndian.PutUint32(b[at:], extremes32[random.IntN(len(extremes32))])
		} else {
			binary.LittleEndian.PutUint16(b[at:], extremes16[random.IntN(len(extremes16))])
		}
	}
	return b
}

// TestForgedStateIsRefusedOrHarmless: what the decoders accept gives sane answers, whatever is observed
// next, and can be written and read again.
func TestForgedStateIsRefusedOrHarmless(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	h := walk(step{7, true}, step{3, false}, step{20, true})
	var hints Hints
	hints.Observe(h, Visit{At: h.Last().Add(dayLong), Changed: true}, 1)
	pulse := pulseOf([]byte{24, 0, 24, 1, 24, 2, 24, 5})
	pulse.lead = leadMost
	prior := Fit([]History{h}, Prior{})
	page, _ := h.AppendBinary(nil)
	host, _ := hints.AppendBinary(nil)
	clock, _ := pulse.AppendBinary(nil)
	rates, _ := prior.AppendBinary(nil)
	accepted := 0
	for range 20_000 {
		h, hints, pulse, prior := h, hints, pulse, prior
		for _, err := range []error{
			h.UnmarshalBinary(forge(random, page)), hints.UnmarshalBinary(forge(random, host)),
			pulse.UnmarshalBinary(forge(random, clock)), prior.UnmarshalBinary(forge(random, rates)),
		} {
			if err == nil {
				accepted++
			}
		}
		requireSane(t, random, h, hints, pulse, prior)
	}
	require.Greater(t, accepted, 1000)
}

// requireSane makes visits with what was decoded.
func requireSane(t *testing.T, random *rand.Rand, h History, hints Hints, pulse Pulse, prior Prior) {
	policy := Bayes{Prior: prior}
	for range 4 {
		v := Visit{At: h.Last().Add(time.Duration(random.Int64N(int64(60 * dayLong)))), Changed: random.IntN(2) == 0}
		for _, n := range []int{-1, 0, 3, math.MaxInt} {
			if worth := policy.Hinted(h, dayLong, hints, n); !(worth >= 0 && worth <= math.MaxFloat64) && !h.Last().IsZero() {
				t.Fatalf("%+v, %d hints of %+v, %+v: worth %v", h, n, hints, prior, worth)
			}
		}
		for _, p := range []Policy{policy, MLE{}, MLE{Rep: Mean}, AIMD{}, Nutch()} {
			if wait := p.Next(h); wait < time.Minute || wait > DefaultMax {
				t.Fatalf("%+v waits %v for %+v", p, wait, h)
			}
		}
		if elapsed := pulse.Elapsed(v.At.AddDate(0, 0, -random.IntN(40)), v.At); elapsed < 0 || elapsed > century {
			t.Fatalf("%+v: %v", pulse, elapsed)
		}
		v.Elapsed = pulse.Observe(h, v)
		hints.Observe(h, v, []int{0, 1, math.MaxInt}[random.IntN(3)])
		h = h.Observe(v)
		if v.Elapsed < 0 || v.Elapsed > century || h.fault()+pulse.fault() != "" {
			t.Fatalf("%v, %q, %q", v.Elapsed, h.fault(), pulse.fault())
		}
	}
	Fit([]History{h}, prior)
}

// TestForgedNumbersAreRefused has numbers that no Observe makes.
func TestForgedNumbersAreRefused(t *testing.T) {
	pulse := pulseOf([]byte{24, 0, 24, 1, 24, 2, 24, 5})
	h := walk(step{7, true}, step{3, false})
	for name, forged := range map[string]interface {
		AppendBinary([]byte) ([]byte, error)
	}{
		"hints whose sum is infinite": Hints{announced: math.MaxFloat32, silent: math.MaxFloat32},
		"hints beyond all bounds":     Hints{announced: 1e9, days: 1},
		"a day beyond 2106":           func() Pulse { p := pulse; p.newest = math.MaxUint16; return p }(),
		"a pace beyond all numbers":   func() Pulse { p := pulse; p.pace = math.MaxUint16; return p }(),
		"changes beyond all numbers":  func() Pulse { p := pulse; p.activity[3].changes = math.MaxUint16; return p }(),
		"an interval beyond all":      func() History { h := h; h.shortest = math.MaxUint16; return h }(),
		"a plan beyond all":           func() History { h := h; h.plan.from = math.MaxUint16; return h }(),
	} {
		b, err := forged.AppendBinary(nil)
		require.NoError(t, err)
		switch forged.(type) {
		case Hints:
			err = new(Hints).UnmarshalBinary(b)
		case Pulse:
			err = new(Pulse).UnmarshalBinary(b)
		default:
			err = new(History).UnmarshalBinary(b)
		}
		require.ErrorIs(t, err, ErrCorrupt, name)
	}
}

// TestAPriorCountsByItsShape: weights that are all twice as high are the same distribution, for a page
// that may have woken up, too.
func TestAPriorCountsByItsShape(t *testing.T) {
	h := walk(quietFor(100, 100)...)
	host := Hints{announced: 90, silent: 10, wrong: 10, days: 3000}
	scaled := usual.scaled()
	for _, p := range []Prior{usual, scaled} {
		want := Bayes{}.Worth(h, 50*dayLong)
		require.InEpsilon(t, want, Bayes{Prior: p}.Worth(h, 50*dayLong), 1e-6)
		for _, n := range []int{0, 1, 5} {
			want = Bayes{Prior: scaled}.Hinted(h, 50*dayLong, host, n)
			require.InEpsilon(t, want, Bayes{Prior: p}.Hinted(h, 50*dayLong, host, n), 1e-5, "%d hints", n)
		}
	}
}
