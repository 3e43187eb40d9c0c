package calendar

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

type bucket struct{ start, width int64 }

func newTest(shape Shape, now int64) *Calendar[bucket] {
	return New(shape, now, func(start, width int64) *bucket { return &bucket{start, width} })
}

// A walker puts slots into a calendar and advances it. Every slot must be covered by exactly one
// bucket at all times, and become current with it.
type walker struct {
	t      *testing.T
	random *rand.Rand
	c      *Calendar[bucket]
	slots  map[*bucket][]int64
	splits int
	due    map[int64]int // slots that were put and are in the future
}

func (w *walker) put(slot int64) {
	b := w.c.At(slot)
	require.GreaterOrEqual(w.t, slot, b.start)
	require.Less(w.t, slot, b.start+b.width)
	require.Greater(w.t, b.start, w.c.Now())
	w.slots[b] = append(w.slots[b], slot)
}

// advance advances by up to the given number of slots, and makes pending splits at some time.
func (w *walker) advance(most int64) {
	limit := w.c.Now() + most
	for w.c.Now() < limit {
		was := w.c.Now()
		to := w.c.Next(limit)
		if to == was {
			require.True(w.t, w.split(), "no progress at %d", was)
			continue
		}
		near := w.c.Peek(to)
		b := w.c.Advance(to)
		require.True(w.t, near == b)
		require.Nil(w.t, w.c.Peek(to))
		for _, slot := range w.slots[b] {
			require.Equal(w.t, to, slot)
			w.due[slot]--
		}
		delete(w.slots, b)
		for slot := range w.due {
			if w.due[slot] == 0 {
				delete(w.due, slot)
			}
			require.True(w.t, slot > to || w.due[slot] == 0, "slot %d was skipped", slot)
		}
		if w.random.IntN(4) > 0 {
			for w.split() {
			}
		}
	}
}

// split splits one bucket and reports whether there was one.
func (w *walker) split() bool {
	b := w.c.Split()
	if b == nil {
		return false
	}
	require.Greater(w.t, b.start, w.c.Now(), "a current bucket is split")
	slots := w.slots[b]
	delete(w.slots, b)
	for _, slot := range slots {
		w.put(slot)
		require.Less(w.t, w.c.At(slot).width, b.width)
		require.True(w.t, w.c.Fits(b.start, b.width))
		w.splits++
	}
	return true
}

// compare checks all buckets.
func (w *walker) compare() {
	seen, last := 0, w.c.Now()
	for b := range w.c.All {
		if _, known := w.slots[b]; !known || b.start <= last {
			w.t.Fatalf("bucket %v after %d, known: %t", b, last, known)
		}
		last = b.start
		seen++
	}
	require.Len(w.t, w.slots, seen)
}

// restore continues with the content of a checkpoint.
func (w *walker) restore(shape Shape) {
	c := newTest(shape, w.c.Now())
	require.True(w.t, c.SetEnds(w.c.Ends()))
	for b := range w.c.All {
		require.True(w.t, c.Put(b, b.start, b.width), "%v %v", b, c.Ends())
	}
	w.c = c
	w.compare()
}

func TestWalk(t *testing.T) {
	t.Parallel()
	for _, shape := range []Shape{Default, {2, 2}, {1, 1}, {3, 5}, {10, 3}} {
		for _, start := range []int64{1000, -777, -MaxSlot, MaxSlot - 30_000} {
			t.Run(fmt.Sprint(shape, start), func(t *testing.T) {
				w := &walker{
					t: t, random: rand.New(rand.NewPCG(1, uint64(start))), c: newTest(shape, start),
					slots: map[*bucket][]int64{}, due: map[int64]int{},
				}
				for i := range 300 {
					for range w.random.IntN(4) {
						slot := min(w.c.Now()+1+w.random.Int64N(1<<(1+w.random.IntN(15))), MaxSlot+1)
						w.due[slot]++
						w.put(slot)
					}
					w.advance(1 + w.random.Int64N(1<<w.random.IntN(8)))
					w.compare()
					if i%50 == 0 {
						w.restore(shape)
					}
				}
				require.NotZero(t, w.splits)
			})
		}
	}
}

// TestLongGaps: empty slots are skipped, however many there are.
func TestLongGaps(t *testing.T) {
	c := newTest(Default, 0)
	const far = 1 << 40
	require.EqualValues(t, 7, c.Next(7))
	c.At(far)
	steps := 0
	for c.Now() < far {
		to := c.Next(far)
		if to > c.Now() {
			due := c.Advance(to)
			require.True(t, due == nil || c.Now() == far)
		}
		if b := c.Split(); b != nil {
			c.At(far)
		}
		steps++
		require.Less(t, steps, 20)
	}
}

// TestMinutesNeedFewBuckets: the minutes of 400 days have a few hundred buckets, not 576,000.
func TestMinutesNeedFewBuckets(t *testing.T) {
	buckets := map[*bucket]bool{}
	c := newTest(Default, 29_000_000)
	for slot := range int64(400 * 24 * 60) {
		buckets[c.At(c.Now()+1+slot)] = true
	}
	require.Less(t, len(buckets), 700)
}

// TestRestoreRefuses impossible states.
func TestRestoreRefuses(t *testing.T) {
	c := newTest(Default, 1000)
	good := c.Ends()
	for name, spoil := range map[string]func(ends []int64) []int64{
		"a missing level":               func(e []int64) []int64 { return e[1:] },
		"a level that ends in the past": func(e []int64) []int64 { e[0] = 1000; return e },
		"a level that is too long":      func(e []int64) []int64 { e[0] += 64; return e },
		"a level that ends in a bucket": func(e []int64) []int64 { e[0]--; return e },
		"a level after the next one":    func(e []int64) []int64 { e[1] = 0; return e },
	} {
		ends := spoil(append([]int64(nil), good...))
		require.False(t, newTest(Default, 1000).SetEnds(ends), name)
	}
	require.True(t, c.SetEnds(good))
	b := &bucket{}
	require.True(t, c.Put(b, 1001, 1))
	require.False(t, c.Put(b, 1001, 1), "twice")
	require.False(t, c.Put(b, 1000, 1), "passed")
	require.False(t, c.Put(b, 1<<20, 1), "too far for its width")
	require.False(t, c.Put(b, 1<<20+1, 1<<14), "in the middle of a bucket")
	require.False(t, c.Put(b, 1001, 3), "not the width of a level")
	require.True(t, c.Fits(1<<20, 1<<14))
	require.False(t, c.Fits(1<<20+1, 1<<14), "in the middle of a bucket")
	require.False(t, c.Fits(1000, 1), "passed")
	require.False(t, c.Fits(1<<20, 1), "too far for its width")
	require.False(t, c.Fits(1<<20, 3))
}
