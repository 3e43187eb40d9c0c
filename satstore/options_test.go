package satstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
