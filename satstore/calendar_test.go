package satstore

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCalendar walks through slots of calendars of all sorts. Every slot has one bucket at all
// times, which covers it and comes due with it, and no bucket is split that has come due.
func TestCalendar(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{
		{Horizon: 10, Radix: 64}, {Horizon: 9600, Radix: 64}, {Horizon: 3000, Radix: 4},
		{Horizon: 20_000, Radix: 3}, {Horizon: 576_000, Radix: 64}, {Horizon: 700, Radix: -1},
		{Horizon: 9600, Radix: 600},
	} {
		for _, start := range []int64{1000, -777} {
			t.Run(fmt.Sprintf("%d/%d/%d", o.Horizon, o.Radix, start), func(t *testing.T) {
				walkCalendar(t, o, start)
			})
		}
	}
}

func walkCalendar(t *testing.T, o Options, start int64) {
	random := rand.New(rand.NewPCG(1, uint64(start)))
	c := newCalendar(o, start)
	records := map[*bucket][]int64{}
	c.create = func(start, width int64) *bucket { return &bucket{start: start, width: width} }
	put := func(slot int64) {
		b := c.at(slot)
		require.GreaterOrEqual(t, slot, b.start)
		require.True(t, b.width == 0 || slot < b.start+b.width)
		require.Greater(t, b.start, c.now)
		records[b] = append(records[b], slot)
	}
	splits := 0
	for range 1200 {
		put(c.now + 1 + random.Int64N(10))
		put(c.now + 1 + random.Int64N(o.Horizon*3/2))
		due := c.advance()
		if due != nil {
			require.Equal(t, c.now, due.start)
			require.EqualValues(t, 1, due.width)
			for _, slot := range records[due] {
				require.Equal(t, c.now, slot)
			}
			delete(records, due)
		}
		for {
			split, more := c.settle()
			if !more {
				break
			}
			if split != nil {
				slots := records[split]
				delete(records, split)
				for _, slot := range slots {
					put(slot)
					splits++
				}
			}
		}
		require.LessOrEqual(t, len(records), 1300)
	}
	seen, last := 0, c.now
	for b := range c.all {
		require.Contains(t, records, b)
		require.Greater(t, b.start, last)
		last = b.start
		seen++
	}
	require.Len(t, records, seen)
	if o.Radix > 0 && o.Horizon > maxFlat {
		require.NotZero(t, splits)
	}
}

// TestMinutesNeedFewBuckets: minutes over 400 days have some hundred buckets, not 576,000.
func TestMinutesNeedFewBuckets(t *testing.T) {
	buckets := 0
	for _, l := range newCalendar(Options{Horizon: 576_000, Radix: DefaultRadix}, 0).levels {
		buckets += len(l.ring)
	}
	require.Less(t, buckets, 500)
}

// TestSpace: no two spans that are in use overlap, and what was released is not given out before it
// is settled.
func TestSpace(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(4, 4))
	s := &space{end: 1}
	owner := map[uint32]string{0: "header"}
	var used []span
	released := map[uint32]bool{}
	for range 3000 {
		switch n := random.IntN(10); {
		case n < 6:
			f := span{n: 1 + uint32(random.IntN(20))}
			at, fits := s.take(f.n)
			require.True(t, fits)
			f.at = at
			for i := f.at; i < f.end(); i++ {
				require.Empty(t, owner[i])
				require.False(t, released[i])
				owner[i] = "used"
			}
			used = append(used, f)
		case n < 9 && len(used) > 0:
			i := random.IntN(len(used))
			f := used[i]
			used[i] = used[len(used)-1]
			used = used[:len(used)-1]
			for i := f.at; i < f.end(); i++ {
				delete(owner, i)
				released[i] = n < 8
			}
			if n < 8 {
				s.release(f)
			} else {
				s.giveBack(f)
			}
		default:
			s.pins = random.IntN(2)
			s.settle()
			if s.pins == 0 {
				clear(released)
			}
		}
	}
	s.pins = 0
	s.settle()
	again, overlap := newSpace(used)
	require.EqualValues(t, -1, overlap)
	require.Equal(t, s.free, again.free)
	require.Equal(t, s.end, again.end)
	_, overlap = newSpace(append(used, used[0]))
	require.EqualValues(t, used[0].at, overlap/grain)
}

// TestBuffer: what went into a buffer comes out of its blocks, whatever the size of a page.
func TestBuffer(t *testing.T) {
	for _, page := range []int{512, 4096, 1 << 20} {
		p := newPagePool(Options{Buffer: 1 << 20, Page: page})
		random := rand.New(rand.NewPCG(2, uint64(page)))
		var b buffer
		var want []byte
		count := 0
		for len(want) < 3*blockSize {
			entry := make([]byte, random.IntN(3000))
			for i := range entry {
				entry[i] = byte(random.Int())
			}
			b.append(p, entry)
			want = append(want, entry...)
			count++
		}
		var got []byte
		for i := range b.cuts {
			raw, n := b.block(p, i, nil)
			require.Less(t, len(raw), blockSize+3000)
			got = append(got, raw...)
			count -= n
		}
		require.Equal(t, want, got)
		require.Zero(t, count)
		require.Equal(t, (len(want)+page-1)/page, p.used)
		b.clear(p)
		require.Zero(t, p.used)
	}
}
