package satstore

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// TestOptions says by the sentence what values stand for.
func TestOptions(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct {
		name  string
		o     Options
		field func(Options) any
		want  any
	}{
		{"an hour by default", Options{}, func(o Options) any { return o.Unit }, time.Hour},
		{"no negative unit", Options{Unit: -1}, func(o Options) any { return o.Unit }, time.Hour},
		{"slots that can be numbered", Options{Unit: 1}, func(o Options) any { return o.Unit },
			time.Microsecond},
		{"400 days of hours", Options{}, func(o Options) any { return o.Horizon }, int64(9600)},
		{"no horizon without an end", Options{Horizon: 1 << 62},
			func(o Options) any { return o.Horizon }, int64(maxHorizon)},
		{"a radix of 64", Options{}, func(o Options) any { return o.Radix }, 64},
		{"a radix of 1 would never end", Options{Radix: 1}, func(o Options) any { return o.Radix }, 2},
		{"not too many buckets of one width", Options{Radix: 1 << 20},
			func(o Options) any { return o.Radix }, maxFlat},
		{"any negative radix is none", Options{Radix: -9}, func(o Options) any { return o.Radix }, -1},
		{"64 MiB of buffers", Options{}, func(o Options) any { return o.Buffer }, int64(64 << 20)},
		{"buffers of some pages at least", Options{Buffer: 1, Page: 4096},
			func(o Options) any { return o.Buffer }, int64(8 * 4096)},
		{"pages of 4 KiB", Options{}, func(o Options) any { return o.Page }, 4096},
		{"no page of a byte", Options{Page: 1}, func(o Options) any { return o.Page }, 512},
		{"no page above a MiB", Options{Page: 1 << 30}, func(o Options) any { return o.Page }, 1 << 20},
		{"10 ms for a group", Options{}, func(o Options) any { return o.Commit },
			10 * time.Millisecond},
		{"no group but Sync's", Options{Commit: -1}, func(o Options) any { return o.Commit },
			time.Duration(-1)},
		{"a message takes the place of the data", Options{},
			func(o Options) any { return string(o.Merge(nil, []byte("data"), []byte("new"))) }, "new"},
		{"the first slot is given", Options{Start: -5}, func(o Options) any { return o.Start },
			int64(-5)},
	} {
		require.Equal(t, tt.want, tt.field(tt.o.withDefaults()), "%s: %+v", tt.name, tt.o)
	}
	start := Options{Unit: time.Hour}.withDefaults().Start
	require.Contains(t, []int64{now.Unix() / 3600, now.Unix()/3600 + 1}, start)
}

// TestOptionsCountAtCreation: those that shape the files cannot change, all others can.
func TestOptionsCountAtCreation(t *testing.T) {
	t.Parallel()
	was := Options{Start: 1, Commit: -1}
	for _, tt := range []struct {
		name string
		is   Options
		err  error
	}{
		{"the same", was, nil},
		{"another unit", Options{Unit: time.Minute, Commit: -1}, ErrOptions},
		{"another horizon", Options{Horizon: 400, Commit: -1}, ErrOptions},
		{"another radix", Options{Radix: 32, Commit: -1}, ErrOptions},
		{"another mode", Options{Mode: Naive, Commit: -1}, ErrOptions},
		{"another start", Options{Start: 77, Commit: -1}, nil},
		{"less memory", Options{Buffer: 1 << 20, Page: 1 << 10, Commit: -1}, nil},
		{"another flush", Options{Flush: FlushLarge, Commit: -1}, nil},
		{"compression", Options{Compression: Zstd, Commit: -1}, nil},
		{"no log", Options{NoLog: true}, nil},
		{"no sync", Options{NoSync: true, Commit: -1}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := Open(dir, was)
			require.NoError(t, err)
			mustAdd(t, s, "https://a.test/", 9, "x")
			abandon(s)
			s, err = Open(dir, tt.is)
			require.ErrorIs(t, err, tt.err)
			if err != nil {
				s, err = Open(dir, was)
				require.NoError(t, err, "nothing was changed")
			}
			require.Equal(t, map[string]string{"https://a.test/": "9 x"}, contents(t, s))
			require.EqualValues(t, 1, s.Now())
			require.NoError(t, s.Close())
		})
	}
}

// TestSlotsAndTimes: a time lies in its slot, and slots follow each other without a gap, for units
// of every sort, before 1970 too.
func TestSlotsAndTimes(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 6))
	for _, unit := range []time.Duration{
		time.Millisecond, 999 * time.Millisecond, time.Second, 1500 * time.Millisecond, time.Minute,
		time.Hour, 24 * time.Hour, 90*time.Minute + 1,
	} {
		s := mustOpen(t, vfs.NewMem(), Options{Unit: unit, Start: 1, Commit: -1})
		for range 200 {
			at := time.Unix(random.Int64N(8e9)-4e9, random.Int64N(1e9)) // 1843 to 2096
			slot := s.Slot(at)
			require.False(t, s.Start(slot).After(at), "%v in units of %v", at, unit)
			require.True(t, s.Start(slot+1).After(at), "%v in units of %v", at, unit)
			require.Equal(t, slot, s.Slot(s.Start(slot)))
			require.Equal(t, slot-1, s.Slot(s.Start(slot).Add(-1)))
			require.Equal(t, unit, s.Start(slot+1).Sub(s.Start(slot)))
		}
		require.NoError(t, s.Close())
	}
}

// TestNeverIsNotNow: the far ends of time keep their order, whatever the unit.
func TestNeverIsNotNow(t *testing.T) {
	ends := []time.Time{
		{}, time.Unix(-1<<40, 0), time.Unix(0, 0), time.Date(2261, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2263, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
	}
	slices.SortFunc(ends, time.Time.Compare)
	for _, unit := range []time.Duration{time.Microsecond, time.Millisecond, 1500 * time.Millisecond,
		time.Second, time.Hour} {
		for i, at := range ends[1:] {
			require.LessOrEqual(t, slotOf(ends[i], unit), slotOf(at, unit), "%v in %v", at, unit)
		}
		require.Negative(t, slotOf(time.Time{}, unit))
		require.Greater(t, slotOf(ends[len(ends)-1], unit), slotOf(time.Now(), unit))
	}
}
