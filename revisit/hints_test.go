package revisit

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHintsMakeVisitsWorthMore(t *testing.T) {
	h := walk(quietFor(30, 30)...)
	good, bad := Hints{announced: 90, silent: 10, wrong: 1, days: 3000}, Hints{announced: 5, silent: 95, wrong: 300, days: 3000}
	plain := Bayes{}.Worth(h, 5*dayLong)
	require.Less(t, plain, DefaultPrice)
	require.Equal(t, plain, Bayes{}.Hinted(h, 5*dayLong, Hints{}, 0))
	require.Equal(t, plain, Bayes{}.Hinted(h, 5*dayLong, Hints{}, 3), "an unknown host")
	require.Greater(t, Bayes{}.Hinted(h, 5*dayLong, good, 1), DefaultPrice, "worth a visit at once")
	require.Less(t, Bayes{}.Hinted(h, 5*dayLong, good, 0), plain, "silence is information")
	require.InEpsilon(t, Bayes{}.Hinted(h, 5*dayLong, bad, 0), Bayes{}.Hinted(h, 5*dayLong, bad, 1), 0.35, "hints of an unreliable host hardly count")
	require.Less(t, Bayes{}.Hinted(h, 5*dayLong, bad, 1), DefaultPrice)
	require.Equal(t, math.Inf(1), Bayes{}.Hinted(History{}, 0, good, 1))
}

// TestHintsTellTheRate: frequent hints of a reliable host mean that a page changes often, and
// silence means that it does not, before any visit has confirmed it.
func TestHintsTellTheRate(t *testing.T) {
	host := Hints{announced: 90, silent: 10, wrong: 10, days: 3000}
	h := walk(quietFor(3, 10)...)
	octave := func(k Hints, days float64, hints int) (mean float64) {
		var usual Prior
		chances := h.posterior(&usual)
		k.hear(&chances, usual.orUsual(), days*day, hints)
		sum := 0.0
		for i, chance := range chances {
			mean += chance * float64(i)
			sum += chance
		}
		require.InDelta(t, 1, sum, 1e-9)
		return mean
	}
	before := octave(Hints{}, 10, 3)
	require.Equal(t, before, octave(Hints{}, 10, 0), "hints of an unknown host are no evidence")
	require.Greater(t, octave(host, 10, 3), before+1)
	require.Less(t, octave(host, 100, 0), before-0.3)
	require.False(t, math.IsNaN(octave(host, 1e5, math.MaxInt32)))
}

// TestTheGainOfHintsIsMarginal simulates crawlers that visit whenever x reaches a limit. With a few
// more visits, they catch as many more versions as the gain at the limit says.
func TestTheGainOfHintsIsMarginal(t *testing.T) {
	for _, s := range []signals{
		{change: 1, recall: 0.5, wrong: 1}, {change: 1, recall: 0.6, wrong: 0.2}, {change: 1, recall: 0.3, wrong: 3},
	} {
		silent, jump := (1-s.recall)*s.change, math.Log1p(s.recall*s.change/s.wrong)
		for _, limit := range []float64{0.4, 1, 2} {
			const share = 0.2
			moreOften, caughtMore := s.rates(limit * (1 - share))
			often, caught := s.rates(limit * (1 + share))
			got := (caughtMore - caught) / (moreOften - often)
			hints := int(limit / jump)
			gain := s.gain((limit-float64(hints)*jump)/silent, hints)
			require.InDelta(t, got, gain, 0.05*gain+0.02, "%+v at %v", s, limit)
		}
	}
	require.InEpsilon(t, gain(1), signals{1, 1e-6, 1000}.gain(1, 0), 1e-5, "hints that say nothing")
}

// rates returns how often a crawler visits that waits for x to reach a limit, and how many versions
// it catches.
func (s signals) rates(limit float64) (visits, caught float64) {
	random := rand.New(rand.NewPCG(1, 0))
	silent, hinted := (1-s.recall)*s.change, s.recall*s.change+s.wrong
	jump := math.Log(hinted / s.wrong)
	const rounds = 1_000_000
	time := 0.0
	for range rounds {
		x := 0.0
		for {
			next := random.ExpFloat64() / hinted
			if x+silent*next >= limit {
				time += (limit - x) / silent
				x = limit
				break
			}
			time += next
			if x += silent*next + jump; x >= limit {
				break
			}
		}
		caught -= math.Expm1(-x)
	}
	return rounds / time, caught / time
}

// TestHintsAreLearned: hosts of known recall and false hints, whose pages change at random.
func TestHintsAreLearned(t *testing.T) {
	for _, tt := range []struct{ recall, wrong float64 }{ // wrong a day
		{0.3, 0.001}, {0.7, 0.01}, {0.95, 0.0001}, {0.7, 0.1},
	} {
		random := rand.New(rand.NewPCG(1, 0))
		var host Hints
		for range 100 {
			rate := math.Exp2(-2 - 5*random.Float64()) // a day
			h := walk()
			for range 40 {
				days := 0.5 / rate * (0.5 + random.Float64())
				changes := poissonNumber(random, rate*days)
				hints := poissonNumber(random, tt.wrong*days)
				for range changes {
					if random.Float64() < tt.recall {
						hints++
					}
				}
				v := Visit{At: h.Last().Add(time.Duration(days * float64(dayLong))), Changed: changes > 0}
				host.Observe(h, v, hints)
				h = h.Observe(v)
			}
		}
		recall, wrong := host.reliability()
		require.InDelta(t, tt.recall, recall, 0.06, "%+v", tt)
		require.InDelta(t, tt.wrong, wrong*day, 0.1*tt.wrong+0.0001, "%+v", tt)
	}
}

// poissonNumber draws from a Poisson distribution.
func poissonNumber(random *rand.Rand, mean float64) (n int) {
	for at := random.ExpFloat64(); at < mean; at += random.ExpFloat64() {
		n++
	}
	return n
}

func TestAHostThatNeverHintsIsUnknown(t *testing.T) {
	var host Hints
	h := walk()
	for n := range 50 {
		v := Visit{At: h.Last().Add(10 * dayLong), Changed: n%2 == 0}
		host.Observe(h, v, 0)
		h = h.Observe(v)
	}
	require.Equal(t, Bayes{}.Worth(h, dayLong), Bayes{}.Hinted(h, dayLong, host, 0))
	require.Equal(t, Bayes{}.Worth(h, dayLong), Bayes{}.Hinted(h, dayLong, host, -1))
}

func FuzzHintsStayReasonable(f *testing.F) {
	f.Add([]byte{24, 0, 24, 1, 24, 2, 24, 5, 255, 255})
	f.Fuzz(func(t *testing.T, data []byte) {
		var host Hints
		h := walk()
		for ; len(data) >= 2; data = data[2:] {
			v := Visit{At: h.Last().Add(dayLong * 1 << (data[0] & 7)), Changed: data[1]&1 != 0}
			host.Observe(h, v, int(int8(data[1]))>>1)
			h = h.Observe(v)
		}
		recall, wrong := host.reliability()
		worth := Bayes{}.Hinted(h, dayLong, host, 3)
		if !(recall >= 0 && recall <= 1 && wrong > 0) || !(worth >= 0) {
			t.Fatalf("%+v: %v %v, worth %v", host, recall, wrong, worth)
		}
	})
}

// A visit with a clock ten years ahead is no decade without wrong hints.
func TestHintsIgnoreAWrongClock(t *testing.T) {
	var k Hints
	h := walk()
	k.Observe(h, Visit{At: start.AddDate(10, 0, 0)}, 1)
	require.Equal(t, Hints{}, k)
	k.Observe(h, Visit{At: start.AddDate(1, 0, 0)}, 1)
	require.NotEqual(t, Hints{}, k)
}
