package revisit

import (
	"bytes"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const dayLong = 24 * time.Hour

// start is the first visit of most tests.
var start = time.Unix(1_000_000_000, 0).UTC()

// A step is a visit so many days after the one before.
type step struct {
	days    float64
	changed bool
}

// walk visits at start and then after each of the steps.
func walk(steps ...step) History {
	at := start
	h := History{}.Observe(Visit{At: at})
	for _, s := range steps {
		at = at.Add(time.Duration(s.days * float64(dayLong)))
		h = h.Observe(Visit{At: at, Changed: s.changed})
	}
	return h
}

func quietFor(days ...float64) (steps []step) {
	for _, d := range days {
		steps = append(steps, step{d, false})
	}
	return steps
}

func TestObserveAddsUp(t *testing.T) {
	for _, tt := range []struct {
		name            string
		steps           []step
		total, quiet    float64 // days
		visits, changes int
		shortest        float64 // days
	}{
		{"first visit only", nil, 0, 0, 0, 0, 0},
		{"no change", quietFor(7), 7, 7, 1, 0, 0},
		{"one change", []step{{7, true}}, 7, 0, 1, 1, 7},
		{"both", []step{{7, true}, {3, false}, {2, true}, {4, false}, {1, false}}, 17, 8, 5, 2, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := walk(tt.steps...)
			require.EqualValues(t, tt.total*day, h.total)
			require.EqualValues(t, tt.quiet*day, h.quiet)
			visits, changes := h.Visits()
			require.Equal(t, tt.visits, visits)
			require.Equal(t, tt.changes, changes)
			require.InEpsilon(t, tt.shortest*day+1, h.shortest.long()+1, 3e-4)
			require.Equal(t, time.Duration(tt.total*float64(dayLong)), h.Span())
		})
	}
}

func TestObserveLeavesItsReceiver(t *testing.T) {
	before := walk(quietFor(1, 2)...)
	kept := before
	before.Observe(Visit{At: start.Add(50 * dayLong), Changed: true})
	require.Equal(t, kept, before)
}

func TestObserveLeavesOutWhatIsNotLater(t *testing.T) {
	h := walk(quietFor(7)...)
	require.Equal(t, h, h.Observe(Visit{At: start.Add(7 * dayLong), Changed: true}))
	require.Equal(t, h, h.Observe(Visit{At: start.Add(6 * dayLong), Changed: true}))
	require.Equal(t, start.Add(7*dayLong), h.Last())
}

// An interval that is much longer than all before may also be true: the next visits tell.
func TestALongPauseIsLittleEvidence(t *testing.T) {
	steps := make([]step, 50)
	for i := range steps {
		steps[i] = step{2, i%2 == 0}
	}
	busy := walk(steps...)
	paused := walk(append(steps, step{365, false})...)
	require.Equal(t, busy.Span()+365*dayLong, paused.Span())
	require.Less(t, Bayes{}.Next(paused), 2*Bayes{}.Next(busy))
	for range 10 {
		steps = append(steps, step{365, false})
	}
	require.Greater(t, Bayes{}.Next(walk(steps...)), 60*dayLong)
}

// A clock that goes back a little may be a report that comes late or twice.
func TestALateReportIsIgnored(t *testing.T) {
	h := walk(quietFor(7, 7)...)
	for _, ago := range []time.Duration{0, time.Hour, dayLong} {
		require.Equal(t, h, h.Observe(Visit{At: h.Last().Add(-ago), Changed: true}), "%v", ago)
	}
	back := h.Observe(Visit{At: h.Last().Add(-dayLong - time.Second), Changed: true})
	require.Equal(t, h.Last().Add(-dayLong-time.Second), back.Last())
	require.Equal(t, h.Span()-dayLong-time.Second, back.Span())
	behind := h.Observe(Visit{At: h.Last().AddDate(0, -1, 0)})
	require.Equal(t, h.Span(), behind.Span(), "no interval was so long")
}

func TestObserveTakesTimesOutsideOfItsCenturies(t *testing.T) {
	old := History{}.Observe(Visit{At: time.Date(1850, 1, 1, 0, 0, 0, 0, time.UTC)})
	require.Equal(t, int64(1), old.Last().Unix())
	far := old.Observe(Visit{At: time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC), Changed: true})
	require.Equal(t, int64(math.MaxUint32), far.Last().Unix())
	require.Empty(t, far.fault())
	require.True(t, History{}.Last().IsZero())
}

func TestLastModifiedSplitsTheInterval(t *testing.T) {
	at := start.Add(10 * dayLong)
	for _, tt := range []struct {
		name      string
		changed   bool
		modified  time.Time
		quietDays float64
	}{
		{"it is believed when it lies between the visits", true, start.Add(6 * dayLong), 4},
		{"none", true, time.Time{}, 0},
		{"one in the future is a lie", true, at.Add(time.Second), 0},
		{"one before the last visit is a lie when the page changed", true, start.Add(-dayLong), 0},
		{"one of the very last visit too", true, start, 0},
		{"one of the request's time says nothing", true, at, 0},
		{"one of just before that too", true, at.Add(-time.Hour), 0},
		{"one that comes without a change counts as none", false, start.Add(6 * dayLong), 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := walk().Observe(Visit{At: at, Changed: tt.changed, LastModified: tt.modified})
			require.EqualValues(t, tt.quietDays*day, h.quiet)
			if tt.changed {
				require.InEpsilon(t, (10-tt.quietDays)*day, h.shortest.long(), 3e-4)
			}
		})
	}
}

// The clock of the host replaces the time that passed, and splits it as the wall clock does.
func TestElapsedIsTheTimeThatCounts(t *testing.T) {
	at := start.Add(10 * dayLong)
	h := walk().Observe(Visit{At: at, Elapsed: 5 * dayLong})
	require.EqualValues(t, 5*day, h.total)
	require.Equal(t, at, h.Last())
	h = walk().Observe(Visit{
		At: at, Changed: true, LastModified: start.Add(6 * dayLong), Elapsed: 20 * dayLong,
	})
	require.EqualValues(t, 20*day, h.total)
	require.EqualValues(t, 8*day, h.quiet)
	require.Equal(t, walk(step{10, true}), walk().Observe(Visit{At: at, Changed: true, Elapsed: -1}))
}

// A server that always says "just now" must not look like a page that changes every second.
func TestALyingServerTeachesNothing(t *testing.T) {
	honest, lying := walk(), walk()
	for n := range 30 {
		at := start.Add(time.Duration(n+1) * 7 * dayLong)
		honest = honest.Observe(Visit{At: at, Changed: true})
		lying = lying.Observe(Visit{At: at, Changed: true, LastModified: at})
	}
	require.Equal(t, honest, lying)
}

func TestCountersAreHalvedTogether(t *testing.T) {
	h := walk()
	at := start
	for n := range 3 * maxVisits {
		at = at.Add(time.Hour)
		h = h.Observe(Visit{At: at, Changed: n%3 == 0})
		require.Empty(t, h.fault(), "after %d visits", n)
	}
	visits, changes := h.Visits()
	require.LessOrEqual(t, visits, maxVisits)
	require.Greater(t, visits, maxVisits/3)
	require.InDelta(t, 1.0/3, float64(changes)/float64(visits), 0.01)
	require.InDelta(t, 2.0/3, float64(h.quiet)/float64(h.total), 0.01)
	require.InDelta(t, 3600, float64(h.total)/float64(h.visits), 4)
}

// A history from elsewhere may claim more time than has passed since 1970.
func TestTimeDoesNotOverflow(t *testing.T) {
	h := walk(quietFor(1)...)
	h.total, h.quiet = math.MaxUint32, math.MaxUint32-5
	for _, changed := range []bool{true, false} {
		got := h.Observe(Visit{At: time.Unix(math.MaxUint32, 0), Changed: changed})
		require.Empty(t, got.fault(), "%+v", got)
		require.Greater(t, got.total, uint32(1e9))
	}
}

func TestShortKeepsOrderAndPrecision(t *testing.T) {
	for _, exact := range []uint32{0, 1, 2047, 2048, 4095, 3600, day, 6 * day} {
		require.EqualValues(t, exact, shorten(exact).long())
	}
	random := rand.New(rand.NewPCG(1, 0))
	for range 100_000 {
		a, b := random.Uint32()>>random.UintN(32), random.Uint32()>>random.UintN(32)
		if a > b {
			a, b = b, a
		}
		require.LessOrEqual(t, shorten(a), shorten(b), "%d %d", a, b)
		require.InDelta(t, float64(a), shorten(a).long(), float64(a)/4096, "%d", a)
	}
	require.InEpsilon(t, float64(math.MaxUint32), shorten(math.MaxUint32).long(), 1.0/4096)
}

// The hexdump in FORMAT.md is what the code writes.
func TestFormatPage(t *testing.T) {
	page, err := os.ReadFile("FORMAT.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(page), "```hexdump changed\n")
	require.True(t, found)
	dump, _, _ := strings.Cut(rest, "```")
	var want []byte
	for line := range strings.Lines(dump) {
		row, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(line[8:]), " ", ""))
		require.NoError(t, err)
		want = append(want, row...)
	}
	h := History{}.Observe(Visit{At: time.Unix(day, 0)})
	h = h.Observe(Visit{At: time.Unix(2*day, 0), Changed: true})
	got, err := h.AppendBinary(nil)
	require.NoError(t, err)
	require.Equal(t, hex.Dump(want), hex.Dump(got))
	require.Len(t, got, Size)
}

func TestUnmarshalRefusesWhatNoHistoryIs(t *testing.T) {
	good, err := walk(step{7, true}, step{7, false}).AppendBinary(nil)
	require.NoError(t, err)
	var h History
	require.NoError(t, h.UnmarshalBinary(good))
	require.Equal(t, walk(step{7, true}, step{7, false}), h)
	require.NoError(t, h.UnmarshalBinary(make([]byte, Size)))
	require.Equal(t, History{}, h)

	for name, spoil := range map[string]func(b []byte) []byte{
		"too short":                   func(b []byte) []byte { return b[:Size-1] },
		"too long":                    func(b []byte) []byte { return append(b, 0) },
		"visits without a time":       func(b []byte) []byte { return append(make([]byte, 4), b[4:]...) },
		"more quiet time than time":   func(b []byte) []byte { b[11] = 255; return b },
		"more changes than visits":    func(b []byte) []byte { b[14] = 255; return b },
		"time without visits":         func(b []byte) []byte { clear(b[12:16]); return b },
		"changes without an interval": func(b []byte) []byte { clear(b[16:18]); return b },
		"visits without outcomes":     func(b []byte) []byte { clear(b[20:24]); return b },
		"less time than visits":       func(b []byte) []byte { clear(b[4:12]); b[4] = 1; return b },
		"changes in no time":          func(b []byte) []byte { copy(b[8:12], b[4:8]); return b },
		"a belief without visits":     func(b []byte) []byte { clear(b[4:24]); return b },
		"a belief without a best rate": func(b []byte) []byte {
			return append(b[:24], bytes.Repeat([]byte{3}, cells)...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := walk(quietFor(1)...)
			kept := h
			require.ErrorIs(t, h.UnmarshalBinary(spoil(append([]byte{}, good...))), ErrCorrupt)
			require.Equal(t, kept, h)
		})
	}
}

// historyOf walks through visits made from the bytes: two bytes for each.
func historyOf(data []byte) History {
	at := start
	h := History{}.Observe(Visit{At: at})
	for ; len(data) >= 2; data = data[2:] {
		// From a second to some 70 years, so that overflows come soon.
		gap := time.Duration(1+uint64(data[0]&0x1f)) * time.Second << (data[0] >> 5 * 4)
		if data[1]&0xf8 == 0xf8 {
			at = at.Add(-2 * gap) // the clock jumps back
		}
		at = at.Add(gap)
		v := Visit{At: at, Changed: data[1]&1 != 0}
		if data[1]&2 != 0 {
			v.LastModified = at.Add(-gap * time.Duration(data[1]>>2) / 50)
		}
		if data[1]&4 != 0 {
			v.Elapsed = gap * time.Duration(data[1]) / 64
		}
		h = h.Observe(v)
	}
	return h
}

func FuzzHistoryKeepsItsRulesAndItsBytes(f *testing.F) {
	f.Add([]byte{0x67, 1, 0x67, 0, 0xff, 1, 0x01, 3})
	f.Add([]byte(strings.Repeat("\xff\x01\x00\xff", 40)))
	f.Fuzz(func(t *testing.T, data []byte) {
		h := historyOf(data)
		if fault := h.fault(); fault != "" {
			t.Fatalf("%+v: %s", h, fault)
		}
		b, err := h.AppendBinary(nil)
		if err != nil || len(b) != Size {
			t.Fatal(len(b), err)
		}
		var again History
		if err := again.UnmarshalBinary(b); err != nil || again != h {
			t.Fatalf("%+v became %+v, %v", h, again, err)
		}
	})
}

// What parses is written back to the same bytes, and every policy lives with it.
func FuzzUnmarshalIsTheInverse(f *testing.F) {
	seed, _ := walk(step{7, true}, step{1, false}).AppendBinary(nil)
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		var h History
		if h.UnmarshalBinary(data) != nil {
			t.Skip()
		}
		b, _ := h.AppendBinary(nil)
		if string(b) != string(data) {
			t.Fatalf("%x became %x", data, b)
		}
		checkBounds(t, h)
		for _, at := range []time.Time{h.Last().Add(time.Second), time.Unix(math.MaxUint32, 0)} {
			for _, changed := range []bool{false, true} {
				if next := h.Observe(Visit{At: at, Changed: changed}); next.fault() != "" {
					t.Fatalf("%+v became %+v: %s", h, next, next.fault())
				}
			}
		}
	})
}

// diary is a history kept without saving memory.
type diary []Visit

// read returns the sums that a History keeps, from all visits of the diary.
func (d diary) read() (total, quiet uint32, changes int, shortest float64) {
	for i, v := range d[1:] {
		gap := uint32(v.At.Sub(d[i].At) / time.Second)
		total += gap
		if !v.Changed {
			quiet += gap
			continue
		}
		changes++
		tail := uint32(0)
		// Believed from the visit before to a little before this one.
		still, m := v.At.Sub(v.LastModified), v.LastModified
		if !m.IsZero() && m.After(d[i].At) && still > v.At.Sub(d[i].At)/freshShare {
			tail = uint32(still / time.Second)
		}
		quiet += tail
		if moved := float64(gap - tail); shortest == 0 || moved < shortest {
			shortest = moved
		}
	}
	return total, quiet, changes, shortest
}

func TestObserveAgreesWithADiary(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 1))
		at, h, d := start, History{}, diary{}
		for range 2 + random.IntN(60) {
			v := Visit{At: at, Changed: random.IntN(3) == 0}
			if random.IntN(2) == 0 {
				// Whole seconds, before, after and beside the interval.
				ago := time.Duration(random.IntN(40*24*3600)-10*24*3600) * time.Second
				v.LastModified = at.Add(-ago)
			}
			h, d = h.Observe(v), append(d, v)
			at = at.Add(time.Duration(1+random.IntN(20*24*3600)) * time.Second)
		}
		total, quiet, changes, shortest := d.read()
		require.Equal(t, total, h.total, "seed %d", seed)
		require.Equal(t, quiet, h.quiet, "seed %d", seed)
		require.EqualValues(t, len(d)-1, h.visits, "seed %d", seed)
		require.EqualValues(t, changes, h.changes, "seed %d", seed)
		require.InEpsilon(t, shortest+1, h.shortest.long()+1, 3e-4, "seed %d", seed)
	}
}
