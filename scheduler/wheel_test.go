package scheduler

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// wheelTest is a wheel, and a map that it should equal.
type wheelTest struct {
	t      *testing.T
	wheel  wheel
	timers timers
	want   map[uint32]int64 // due times of the entries in the wheel
	fired  []uint32
}

func newWheelTest(t *testing.T, entries int) *wheelTest {
	w := &wheelTest{t: t, want: make(map[uint32]int64)}
	for range entries {
		w.timers[0].alloc()
	}
	w.wheel.timers = &w.timers
	w.wheel.fire = func(i uint32) { w.fired = append(w.fired, i) }
	return w
}

func (w *wheelTest) insert(i uint32, due int64) {
	w.timers.at(i).due = due
	w.wheel.insert(i)
	w.want[i] = due
}

func (w *wheelTest) advance(now int64) {
	var due []uint32
	for i, at := range w.want {
		if at <= now {
			due = append(due, i)
			delete(w.want, i)
		}
	}
	w.fired = nil
	w.wheel.advance(now)
	slices.Sort(due)
	slices.Sort(w.fired)
	if !slices.Equal(due, w.fired) {
		w.t.Fatalf("at %d, fired %v, want %v", now, w.fired, due)
	}
}

func (w *wheelTest) soonest() int64 {
	soonest := int64(math.MaxInt64)
	for _, at := range w.want {
		soonest = min(soonest, at)
	}
	return soonest
}

// TestWheelAgainstMap uses delays and steps of all magnitudes.
func TestWheelAgainstMap(t *testing.T) {
	const entries = 50
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 0))
		magnitude := func() int64 { return rng.Int64N(1 << (1 + rng.IntN(50))) }
		w, now, removed := newWheelTest(t, entries), rng.Int64()-rng.Int64(), false
		w.advance(now)
		for range 2000 {
			i := 1 + rng.Uint32N(entries)
			_, in := w.want[i]
			switch {
			case !in:
				w.insert(i, now+magnitude())
			case rng.IntN(8) == 0:
				w.wheel.remove(i)
				delete(w.want, i)
				removed = true
			default:
				now += magnitude()
				w.advance(now)
			}
			got, want := w.wheel.soonest(), w.soonest()
			if got > want || !removed && got < want {
				t.Fatalf("seed %d: soonest is %d, want %d", seed, got, want)
			}
		}
		w.advance(math.MaxInt64)
		require.Zero(t, w.wheel.inUse)
		require.Equal(t, [wheelLevels]uint64{}, w.wheel.used)
	}
}

func TestWheelAtTheLimitsOfTime(t *testing.T) {
	times := []int64{
		math.MinInt64, math.MinInt64 + 1, -1, 0, 1, 63, 64, math.MaxInt64 - 1, math.MaxInt64,
	}
	for _, due := range times {
		w := newWheelTest(t, 1)
		w.insert(1, due)
		for _, now := range times {
			w.advance(now)
		}
		require.Empty(t, w.want)
	}
}

// TestWheelFiresInOrder inserts entries in the order of their due times, as for equal delays.
func TestWheelFiresInOrder(t *testing.T) {
	const entries = 500
	rng := rand.New(rand.NewPCG(1, 0))
	w, due := newWheelTest(t, entries), int64(0)
	var want []uint32
	for i := range uint32(entries) {
		due += rng.Int64N(1 << 24)
		w.insert(i+1, due)
		want = append(want, i+1)
	}
	for now := int64(0); now <= due; now += 1 << 28 {
		w.wheel.advance(now)
	}
	w.wheel.advance(due)
	require.Equal(t, want, w.fired)
}

// TestWheelMovesEntriesRarely checks the constant cost: an entry moves at most once per level, even
// if time advances a nanosecond at a time.
func TestWheelMovesEntriesRarely(t *testing.T) {
	w := newWheelTest(t, 1)
	const due = 1 << 20
	w.insert(1, due)
	moves, at := 0, [2]int{}
	for now := int64(0); w.wheel.inUse != 0; now++ {
		w.wheel.advance(now)
		if w.wheel.inUse == 0 {
			break
		}
		if level, digit := w.wheel.first(); at != [2]int{level, digit} {
			moves, at = moves+1, [2]int{level, digit}
		}
	}
	require.Equal(t, []uint32{1}, w.fired)
	require.LessOrEqual(t, moves, wheelLevels)
}

func TestSlab(t *testing.T) {
	var s slab[*int]
	used := make(map[uint32]*int)
	var ids []uint32
	for n := range 3 * chunkLen {
		i := s.alloc()
		require.NotZero(t, i)
		require.NotContains(t, used, i)
		require.Nil(t, *s.at(i), "a new entry is zero")
		used[i] = &n
		*s.at(i) = &n
		ids = append(ids, i)
		if n%3 == 0 {
			back := ids[len(ids)/2]
			ids = slices.Delete(ids, len(ids)/2, len(ids)/2+1)
			delete(used, back)
			s.release(back)
		}
	}
	for i, want := range used {
		require.Same(t, want, *s.at(i), "entry %d", i)
	}
	require.Len(t, s.chunks, 3, "released entries are reused")
}
