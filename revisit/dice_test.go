package revisit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSmallTermsAddUp: sums on coarse numbers keep terms that are far below half a step.
func TestSmallTermsAddUp(t *testing.T) {
	var chance dice
	for _, term := range []float64{1e-6, 1e-4, 0.01, 0.3} {
		s, n := pack(pulsePrior), int(2000/term)
		if term < 0.01 {
			n = 2_000_000
		}
		for range n {
			s = chance.pack(s.unpack() + term)
		}
		require.InEpsilon(t, pulsePrior+float64(n)*term, s.unpack(), 0.1, "%v", term)
	}
	sum := float32(1 << 22)
	for range 1 << 22 {
		sum = chance.float32(float64(sum) + 0.125)
	}
	require.InEpsilon(t, 1<<22+1<<19, sum, 0.01)
	require.LessOrEqual(t, chance.pack(1e20), longestShort)
}

// TestThePastIsTheSameHoweverOftenItWasSeen: a page without a change for two months.
func TestThePastIsTheSameHoweverOftenItWasSeen(t *testing.T) {
	daily := walk()
	for range 60 {
		daily = daily.Observe(Visit{At: daily.Last().Add(dayLong)})
	}
	want := Bayes{Min: -1, Max: -1}.Next(daily)
	for _, every := range []time.Duration{time.Minute, 7 * time.Minute, time.Hour, 6 * time.Hour} {
		h := walk()
		for range 60 * dayLong / every {
			h = h.Observe(Visit{At: h.Last().Add(every)})
		}
		require.Empty(t, h.fault())
		require.InEpsilon(t, want, Bayes{Min: -1, Max: -1}.Next(h), 0.15, "every %v", every)
		require.InEpsilon(t, want, Bayes{Min: -1, Max: -1}.Next(h.Observe(Visit{At: h.Last().Add(every)})), 0.15)
	}
}

// TestFewChangesInManyVisits: halving leaves their share as it is.
func TestFewChangesInManyVisits(t *testing.T) {
	changes, visits := 0, 0
	for page := range 60 {
		h := walk()
		for n := range 6 * maxVisits {
			h = h.Observe(Visit{At: h.Last().Add(time.Hour), Changed: (n+17*page)%1000 == 0})
		}
		require.Empty(t, h.fault())
		v, c := h.Visits()
		changes, visits = changes+c, visits+v
	}
	require.InEpsilon(t, float64(visits)/1000, changes, 0.1)
}

// TestALargeHostWithoutARhythmHasNone: however many visits a span sees, its activity is that of the others.
func TestALargeHostWithoutARhythmHasNone(t *testing.T) {
	quiet := walk(quietFor(28, 28, 28, 28)...)
	var p Pulse
	rate, changed := quiet.rate()*day, 0.0
	require.Less(t, rate, 0.1)
	const visits = 400_000
	for range visits {
		v := Visit{At: quiet.Last().Add(dayLong)}
		if changed += rate; changed >= 1 {
			v.Changed, changed = true, changed-1
		}
		quiet.total++ // another page
		p.Observe(quiet, v)
	}
	require.Empty(t, p.fault())
	seen, expected := 0.0, 0.0
	for _, s := range p.activity {
		seen += s.changes.unpack() - pulsePrior
		expected += s.visits.unpack() - pulsePrior
	}
	require.InEpsilon(t, visits*rate, expected, 0.15)
	require.InEpsilon(t, visits*rate, seen, 0.15)
	require.LessOrEqual(t, p.lead, float32(leadOn))
}

// TestASpanThatIsFullKeepsItsActivity: its numbers are halved together.
func TestASpanThatIsFullKeepsItsActivity(t *testing.T) {
	var chance dice
	p := pulseOf([]byte{24, 0, 24, 1})
	at := p.newest - 1
	for i := range p.activity {
		p.activity[i] = span{changes: pack(2 * 0.9 * mostSeen), visits: pack(0.9 * mostSeen)}
	}
	h := walk(quietFor(7)...)
	h.last = uint32(at) * spanLength
	for range 1000 {
		p.learn(&h, h.last+day, false, &chance)
	}
	require.Empty(t, p.fault())
	require.Less(t, p.activity[0].changes.unpack(), 1.01*mostSeen)
	require.InEpsilon(t, 2, p.activity[0].activity(), 0.1)
}

func TestOneLateVisitDoesNotLengthenIntervals(t *testing.T) {
	for _, policy := range []Policy{
		Scale{Grow: 1.0001, Second: dayLong, Min: time.Hour}, AIMD{Add: time.Second, Second: dayLong, Min: time.Hour},
	} {
		for late := range 70 {
			h := History{}.Observe(Visit{At: start})
			for n := range 70 {
				wait := policy.Next(h)
				if n == late {
					wait += 100 * dayLong
				}
				h = h.Observe(Visit{At: h.Last().Add(wait)})
			}
			require.Less(t, policy.Next(h), 2*dayLong, "%T, visit %d", policy, late)
		}
	}
}

// TestAPriorFittedAgainAndAgain still believes a page that differs from the others.
func TestAPriorFittedAgainAndAgain(t *testing.T) {
	var pages []History
	for range 300 {
		h := walk()
		for d := range 120 {
			h = h.Observe(Visit{At: h.Last().Add(3 * dayLong), Changed: d*3%7 < 3})
		}
		pages = append(pages, h)
	}
	daily := walk()
	for range 30 {
		daily = daily.Observe(Visit{At: daily.Last().Add(dayLong), Changed: true})
	}
	var prior Prior
	for range 40 {
		prior = Fit(pages, prior)
	}
	require.LessOrEqual(t, Bayes{Prior: prior}.Next(daily), 2*dayLong)
	b, err := prior.AppendBinary(nil)
	require.NoError(t, err)
	require.NoError(t, new(Prior).UnmarshalBinary(b))
}
