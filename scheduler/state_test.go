package scheduler_test

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/stretchr/testify/require"
)

// exampleState returns the state that FORMAT.md shows: a host that asked for a minute, one that has
// failed, and an address where a server asked to come back in an hour.
func exampleState(t testing.TB) []byte {
	s := scheduler.New[string](scheduler.Options{})
	s.SetDelay("slow.test", time.Minute)
	for _, host := range []string{"ill.test", "busy.test"} {
		addr := here
		if host == "ill.test" {
			addr = anywhere
		}
		require.NoError(t, s.Add(scheduler.Task[string]{Host: host, Addr: addr}))
		lease, _ := s.TryNext(start)
		o := scheduler.Outcome{Failed: true}
		if addr.IsValid() {
			o = scheduler.Outcome{Took: 3 * time.Second, RetryAfter: start.Add(time.Hour)}
		}
		lease.Done(o)
	}
	return s.AppendState(nil, start.Add(time.Second))
}

func TestFormatPageShowsWhatIsWritten(t *testing.T) {
	page, err := os.ReadFile("FORMAT.md")
	require.NoError(t, err)
	_, dump, found := strings.Cut(string(page), "```hexdump\n")
	require.True(t, found)
	dump, _, _ = strings.Cut(dump, "```")
	require.Equal(t, hex.Dump(exampleState(t)), dump)
}

func TestLoadState(t *testing.T) {
	const saved = time.Second // when exampleState was, after start
	for name, tt := range map[string]struct {
		at   time.Duration // of the restart
		want map[string]time.Duration
	}{
		"at once": {saved, map[string]time.Duration{
			"slow.test": time.Minute, "ill.test": 30 * time.Second,
			"busy.test": time.Hour - saved, "new.test": 5 * time.Second,
		}},
		"later": {saved + 10*time.Minute, map[string]time.Duration{
			"slow.test": time.Minute, "ill.test": 30 * time.Second,
			"busy.test": 50*time.Minute - saved, "new.test": 5 * time.Second,
		}},
		"after a day": {saved + 24*time.Hour, map[string]time.Duration{
			"slow.test": time.Minute, "ill.test": 30 * time.Second,
			"busy.test": 15 * time.Second, "new.test": 5 * time.Second,
		}},
		"after the clock was set back by a day": {-24 * time.Hour, map[string]time.Duration{
			"slow.test": time.Minute, "ill.test": 30 * time.Second,
			"busy.test": time.Hour - saved, "new.test": 5 * time.Second,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for host, want := range tt.want {
				s := scheduler.New[string](scheduler.Options{})
				now := start.Add(tt.at)
				require.NoError(t, s.LoadState(exampleState(t), now))
				require.NoError(t, s.Add(scheduler.Task[string]{Host: host}))
				lease, wait := s.TryNext(now)
				require.Nil(t, lease)
				require.Equal(t, want, wait, host)
			}
			s := scheduler.New[string](scheduler.Options{})
			now := start.Add(tt.at)
			require.NoError(t, s.LoadState(exampleState(t), now))
			add(t, s, tasks(here, "x1")...)
			if tt.want["busy.test"] > time.Minute {
				_, wait := s.TryNext(now.Add(5 * time.Second))
				require.Equal(t, tt.want["busy.test"]-5*time.Second, wait, "so has its address")
			}
		})
	}
}

// TestLoadStateOfWhatGoesOn saves when the delay of an unusual visit to a has passed: what made it
// unusual counts for the next one, which is out or about to be.
func TestLoadStateOfWhatGoesOn(t *testing.T) {
	later := start.Add(time.Hour)
	for name, tt := range map[string]struct {
		outcome scheduler.Outcome
		next    func(s *scheduler.Scheduler[string])
		want    time.Duration
	}{
		"a slow host is leased again": {
			scheduler.Outcome{Took: 20 * time.Second},
			func(s *scheduler.Scheduler[string]) { s.TryNext(later) }, 100 * time.Second,
		},
		"a host that failed is leased again": {
			scheduler.Outcome{Failed: true},
			func(s *scheduler.Scheduler[string]) { s.TryNext(later) }, 30 * time.Second,
		},
		"a host that failed waits for its turn": {
			scheduler.Outcome{Failed: true},
			func(s *scheduler.Scheduler[string]) {
				_, _ = s.AddBatch(tasks(here, "b1"))
				s.TryNext(start.Add(20 * time.Second)) // which leases b, and never ends
				s.TryNext(later)
			}, 30 * time.Second,
		},
		"a host that failed is idle": {
			scheduler.Outcome{Failed: true},
			func(s *scheduler.Scheduler[string]) { s.Drain("a"); s.TryNext(later) }, 5 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := scheduler.New[string](scheduler.Options{})
			add(t, s, tasks(here, "a1", "a2")...)
			lease, _ := s.TryNext(start)
			lease.Done(tt.outcome)
			tt.next(s)
			state := s.AppendState(nil, later)

			s = scheduler.New[string](scheduler.Options{})
			require.NoError(t, s.LoadState(state, later))
			add(t, s, tasks(anywhere, "a3")...)
			_, wait := s.TryNext(later)
			require.Equal(t, tt.want, wait)
		})
	}
}

func TestLoadStateOfStricterOptions(t *testing.T) {
	strict := scheduler.New[string](scheduler.Options{HostDelay: time.Hour})
	s := scheduler.New[string](scheduler.Options{})
	require.NoError(t, s.LoadState(strict.AppendState(nil, start), start))
	add(t, s, tasks(anywhere, "a1", "a2")...)
	_, wait := s.TryNext(start)
	require.Equal(t, time.Hour, wait, "it may have been visited under the old delay")
	lease, _ := s.TryNext(start.Add(time.Hour))
	lease.Done(scheduler.Outcome{})
	_, wait = s.TryNext(start.Add(time.Hour))
	require.Equal(t, 5*time.Second, wait)
}

func TestStateIsSmall(t *testing.T) {
	s := scheduler.New[int](scheduler.Options{})
	for i, task := range crowd(1000) {
		require.NoError(t, s.Add(task))
		lease, _ := s.TryNext(start)
		lease.Done(scheduler.Outcome{Failed: i%100 == 0})
	}
	state := s.AppendState([]byte("before"), start)
	require.Equal(t, "before", string(state[:6]))
	require.Less(t, len(state), 48+10*(40+10)+6, "ten hosts and ten addresses are unusual")
	require.Zero(t, testing.AllocsPerRun(10, func() { state = s.AppendState(state[:0], start) }))
}

func TestLoadStateOfASchedulerInUse(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{})
	add(t, s, tasks(here, "a1")...)
	require.ErrorContains(t, s.LoadState(exampleState(t), start), "holds nothing")
}

// reseal gives data the checksum that belongs to it.
func reseal(data []byte) []byte {
	body := data[:len(data)-4]
	sum := crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))
	return binary.LittleEndian.AppendUint32(body, sum)
}

func TestLoadStateRefusesBadData(t *testing.T) {
	good := exampleState(t)
	edit := func(at int, b ...byte) []byte {
		data := append([]byte(nil), good...)
		copy(data[at:], b)
		return reseal(data)
	}
	for name, tt := range map[string]struct {
		data   []byte
		offset int
		reason string
	}{
		"nothing":               {nil, 0, "no state"},
		"something else":        {[]byte(strings.Repeat("x", 100)), 0, "no state"},
		"a later version":       {edit(4, 2), 4, "unknown version"},
		"one bit is wrong":      {append([]byte{'S' ^ 1}, good[1:]...), 0, "no state"},
		"a negative delay":      {edit(23, 0x80), 24, "negative delay"},
		"more than is counted":  {edit(40, 2), 76, "more than was counted"},
		"less than is counted":  {edit(40, 9), len(good) - 4, "cut off"},
		"an unknown kind":       {edit(44, 3), 56, "unknown kind"},
		"a name without an end": {edit(46, 200), 48, "cut off"},
		"nothing but a header":  {reseal(append([]byte(nil), good[:48]...)), 44, "cut off"},
		"an entry twice": {reseal(append(append(append([]byte(nil), good[:40]...),
			2, 0, 0, 0), append(append(good[44:63:63], good[44:63]...), 0, 0, 0, 0)...)), 82, "named twice"},
	} {
		t.Run(name, func(t *testing.T) {
			s := scheduler.New[string](scheduler.Options{})
			err := s.LoadState(tt.data, start)
			require.ErrorIs(t, err, scheduler.ErrCorrupt)
			var corrupt *scheduler.CorruptError
			require.True(t, errors.As(err, &corrupt))
			require.Equal(t, scheduler.CorruptError{Offset: tt.offset, Reason: tt.reason}, *corrupt)
			require.Zero(t, s.Stats().Hosts)
		})
	}
	for n := range good {
		s := scheduler.New[string](scheduler.Options{})
		require.ErrorIs(t, s.LoadState(good[:n], start), scheduler.ErrCorrupt, "the first %d bytes", n)
	}
	for i := range 8 * len(good) {
		data := append([]byte(nil), good...)
		data[i/8] ^= 1 << (i % 8)
		s := scheduler.New[string](scheduler.Options{})
		require.ErrorIs(t, s.LoadState(data, start), scheduler.ErrCorrupt, "bit %d", i)
	}
}

// FuzzLoadState holds that what is accepted and written again is the same from then on, and that
// nothing is leased at once.
func FuzzLoadState(f *testing.F) {
	f.Add(exampleState(f), int64(0))
	f.Add(exampleState(f), int64(-1e18))
	f.Add([]byte("SPNS\x01\x00\x00\x000000000\x98000000000000000000000000\x01\x00\x00\x00"+
		"\x820\x04000000\x9d00000"), int64(-77)) // a Retry-After before the beginning of time
	f.Fuzz(func(t *testing.T, data []byte, shift int64) {
		if len(data) < 4 {
			return
		}
		now := start.Add(time.Duration(shift))
		state := func(data []byte) []byte {
			s := scheduler.New[string](scheduler.Options{})
			if err := s.LoadState(data, now); err != nil {
				require.ErrorIs(t, err, scheduler.ErrCorrupt)
				return nil
			}
			for host := range s.Hosts() {
				require.NoError(t, s.Add(scheduler.Task[string]{Host: host}))
			}
			lease, _ := s.TryNext(now.Add(scheduler.DefaultHostDelay - 1))
			require.Nil(t, lease)
			return s.AppendState(nil, now)
		}
		if once := state(reseal(append([]byte(nil), data...))); once != nil {
			require.Equal(t, once, state(once))
		}
	})
}
