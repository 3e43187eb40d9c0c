package revisit

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// One visit with a wrong clock must not silence the visits after it, nor leave decades in the sums.
func TestOneWrongClockCostsOneVisit(t *testing.T) {
	for _, ahead := range []int{10, 3, 1, -1, -10, -40} { // in years
		for _, changed := range []bool{false, true} {
			h, at := History{}, start
			for n := range 100 {
				h = h.Observe(Visit{At: at, Changed: n%2 == 0})
				at = at.Add(dayLong)
			}
			h = h.Observe(Visit{At: at.AddDate(ahead, 0, 0), Changed: changed})
			for n := range 100 {
				h = h.Observe(Visit{At: at, Changed: n%2 == 0})
				require.Empty(t, h.fault())
				require.Equal(t, at, h.Last())
				at = at.Add(dayLong)
			}
			_, changes := h.Visits()
			require.InDelta(t, 99, changes, 1, "%d years", ahead)
			require.InDelta(t, 199, h.Span().Hours()/24, 3, "%d years", ahead)
		}
	}
}

// A policy decides itself when the next visit comes, so one wrong clock could cost many months.
func TestOneWrongClockKeepsTheIntervals(t *testing.T) {
	const every = 3 * dayLong // the page changes
	for name, p := range policies() {
		for _, ahead := range []int{10 * 365, 3 * 365, 365, 200, -10, -30, -100, -365, -10 * 365} { // in days
			for _, changed := range []bool{false, true} {
				h, at, last := History{}, start, start
				var usual time.Duration
				visit := func() {
					h = h.Observe(Visit{At: at, Changed: at.Sub(start)/every > last.Sub(start)/every})
					require.Empty(t, h.fault())
					last = at
					at = at.Add(p.Next(h))
				}
				for n := range 100 {
					if visit(); n >= 50 {
						usual = max(usual, p.Next(h))
					}
				}
				h = h.Observe(Visit{At: at.Add(time.Duration(ahead) * dayLong), Changed: changed})
				for n := range 20 {
					visit()
					require.LessOrEqual(t, p.Next(h), 2*usual, "%s, %d days, visit %d", name, ahead, n)
				}
			}
		}
	}
}

// Neither a visit with a wrong clock, nor several that were ahead, leave a time in the sums that did not
// pass.
func TestAWrongClockKeepsTheSums(t *testing.T) {
	for _, days := range []int{600, 3 * 365, 10 * 365, -10, -90, -365} {
		for _, changing := range []int{1, 2, 30} { // visits to a change
			for _, wrong := range []int{1, 2, 3} {
				if days < 0 && wrong > 1 {
					continue
				}
				h, n := walk(), 0
				visit := func(wrong int) {
					n++
					at := start.Add(time.Duration(2*n+wrong) * dayLong)
					h = h.Observe(Visit{At: at, Changed: n%changing == 0})
					require.Empty(t, h.fault())
				}
				for n < 100 {
					visit(0)
				}
				before := Bayes{}.Next(h)
				for range wrong {
					visit(days)
				}
				for range 5 {
					visit(0)
				}
				about := fmt.Sprintf("%d visits with a clock of %d days, a change every %d visits", wrong, days, changing)
				require.InDelta(t, 2*n, h.Span().Hours()/24, 15, about)
				require.InDelta(t, 2*n/changing, float64(h.total-h.quiet)/day, 15, about)
				if wrong == 1 {
					require.Less(t, Bayes{}.Next(h), before*3/2, about)
				}
			}
		}
	}
}

// A clock that was four years behind goes forward by more than an interval that counts.
func TestAClockFourYearsBehindKeepsTheSums(t *testing.T) {
	h := walk(quietFor(slices.Repeat([]float64{30}, 60)...)...)
	before := h.Span()
	h = h.Observe(Visit{At: h.Last().Add(-1450 * dayLong)})
	h = h.Observe(Visit{At: h.Last().Add((1450 + 60) * dayLong)})
	require.Empty(t, h.fault())
	require.InDelta(t, before.Hours()/24, h.Span().Hours()/24, 60)
}

// Two wrong clocks in a row, of which the second was further behind than the first visit, put no years into
// the sums.
func TestTwoWrongClocksInventNoTime(t *testing.T) {
	h := walk(slices.Repeat([]step{{1, true}, {1, false}}, 50)...)
	right, before := h.Last(), MLE{}.Next(h)
	for _, wrong := range [][]time.Duration{{-50, -1100}, {-1100, -1130}} {
		twice := h
		for _, days := range append(wrong, 1) {
			twice = twice.Observe(Visit{At: right.Add(days * dayLong)})
			require.Empty(t, twice.fault())
			require.LessOrEqual(t, twice.Span(), 101*dayLong, "%v", wrong)
		}
		require.LessOrEqual(t, MLE{}.Next(twice), 2*before, "%v", wrong)
	}
}

// The interval to a clock that was four years ahead was not counted, so the way back takes nothing.
func TestAClockFourYearsAheadKeepsTheSums(t *testing.T) {
	for _, days := range []time.Duration{1400, 1440, 1459, 1470, 1500} {
		h := walk(quietFor(slices.Repeat([]float64{30}, 60)...)...)
		right, before := h.Last(), h.Span()
		for _, later := range []time.Duration{30 + days, 60, 90, 120} {
			h = h.Observe(Visit{At: right.Add(later * dayLong)})
			require.Empty(t, h.fault())
		}
		require.InDelta(t, before.Hours()/24+120, h.Span().Hours()/24, 60, "%d days", days)
	}
}

// FORMAT.md says what the upper two of the gaps mean.
func TestTheFormOfDoubt(t *testing.T) {
	for _, tt := range []struct {
		changed      bool
		days         time.Duration // from the last visit
		form         byte
		total, quiet int // what is left of 20 days
	}{
		{false, -5, 3, 15, 15}, {true, -5, 1, 15, 0}, {false, -500, 2, 20, 20}, {false, 1500, 2, 20, 20},
	} {
		h := walk(slices.Repeat([]step{{1, tt.changed}}, 20)...)
		h = h.Observe(Visit{At: h.Last().Add(tt.days * dayLong)})
		b, err := h.AppendBinary(nil)
		require.NoError(t, err)
		require.Equal(t, tt.form, b[15]>>6)
		require.EqualValues(t, []int{tt.total, tt.quiet}, []int{int(h.total / day), int(h.quiet / day)})
	}
}
