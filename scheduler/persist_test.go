package scheduler_test

import (
	"encoding/json"
	"maps"
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/scheduler"
)

// saved returns the entries of a host with a Crawl-delay of a minute, of a host that has failed,
// and of an address with a Retry-After of an hour.
func saved(t testing.TB) []scheduler.Entry {
	s := scheduler.New[string](scheduler.Options{})
	s.SetHost("slow.test", scheduler.Host{Delay: time.Minute})
	s.SetHost("busy.test", scheduler.Host{Addr: here})
	for _, host := range []string{"ill.test", "busy.test"} {
		require.NoError(t, s.Add(scheduler.Task[string]{Host: host}))
		lease, _ := s.TryNext(start)
		o := scheduler.Outcome{Failed: true}
		if host == "busy.test" {
			o = scheduler.Outcome{Took: 3 * time.Second, RetryAfter: start.Add(time.Hour)}
		}
		lease.Done(o)
	}
	return slices.Collect(s.All(start.Add(time.Second)))
}

// restored returns a Scheduler with restored entries.
func restored(t testing.TB, entries []scheduler.Entry, now time.Time) *scheduler.Scheduler[string] {
	s := scheduler.New[string](scheduler.Options{})
	for _, e := range entries {
		require.NoError(t, s.Restore(e, now))
	}
	return s
}

func TestRestore(t *testing.T) {
	for name, tt := range map[string]struct {
		at   time.Duration // of the restart
		busy time.Duration // when busy.test may be visited
	}{
		"immediately":                        {time.Second, time.Hour - time.Second},
		"later":                              {10 * time.Minute, 50 * time.Minute},
		"after a day":                        {24 * time.Hour, 15 * time.Second},
		"after the clock was set back a bit": {-time.Hour, 2 * time.Hour},
		"after the clock was set back a lot": {-30 * 24 * time.Hour, 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			now := start.Add(tt.at)
			for host, want := range map[string]time.Duration{
				"slow.test": time.Minute, "ill.test": 30 * time.Second, "busy.test": tt.busy,
				"new.test": 5 * time.Second,
			} {
				s := restored(t, saved(t), now)
				require.NoError(t, s.Add(scheduler.Task[string]{Host: host}))
				lease, wait := s.TryNext(now)
				require.Nil(t, lease)
				require.Equal(t, want, wait, host)
			}
			s := restored(t, saved(t), now)
			add(t, s, jobs(here, "x1")...)
			_, wait := s.TryNext(now.Add(5 * time.Second))
			want := time.Duration(0) // the address was not slow three times in a row
			if tt.at < time.Minute {
				want = min(time.Minute, time.Minute-tt.at) - 5*time.Second
			}
			require.Equal(t, want, wait, "its address is not closed for longer than a minute")
		})
	}
}

// TestACrawlDelayIsAtMostADay, whoever says so: a site, or a file that was written by another program.
func TestACrawlDelayIsAtMostADay(t *testing.T) {
	for name, set := range map[string]func(s *scheduler.Scheduler[string]) error{
		"set": func(s *scheduler.Scheduler[string]) error {
			return s.SetHost("a", scheduler.Host{CrawlDelay: math.MaxInt64})
		},
		"restored": func(s *scheduler.Scheduler[string]) error {
			return s.Restore(scheduler.Entry{Host: "a", CrawlDelay: math.MaxInt64}, start)
		},
	} {
		s := scheduler.New[string](scheduler.Options{})
		require.NoError(t, set(s), name)
		require.NoError(t, s.Add(scheduler.Task[string]{Host: "a"}))
		if lease, _ := s.TryNext(start); lease != nil {
			lease.Requeue(scheduler.Outcome{}, time.Time{})
		}
		_, wait := s.TryNext(start)
		require.Equal(t, 24*time.Hour, wait, name)
	}
}

// TestRestoreIntoASchedulerInUse: Restore works at any time.
func TestRestoreIntoASchedulerInUse(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{})
	add(t, s, jobs(here, "a1", "a2")...)
	lease, _ := s.TryNext(start)
	lease.Done(scheduler.Outcome{})
	now := start.Add(4 * time.Second)
	require.NoError(t, s.Restore(scheduler.Entry{}, now))
	_, wait := s.TryNext(now)
	require.Equal(t, 5*time.Second, wait)

	s.SetHost("a", scheduler.Host{Delay: time.Hour})
	require.NoError(t, s.Restore(scheduler.Entry{Host: "a", Delay: time.Minute, Failures: 2}, now))
	_, wait = s.TryNext(now)
	require.GreaterOrEqual(t, wait, time.Hour, "the longer delay stays")
	require.Equal(t, 2, s.Explain("a").Failures)
}

// TestAllAfterTheDelay calls All after the delay of an exceptional visit to a has passed. What made
// it exceptional still counts for the next visit, which is in flight or about to start.
// TestRestoreAllTwice, at one time and at a later one. What was added in between counts as visited.
func TestRestoreAllTwice(t *testing.T) {
	s := scheduler.New[int](scheduler.Options{HostDelay: 5 * time.Second})
	for i, host := range []string{"a", "b", "c"} {
		require.NoError(t, s.Restore(scheduler.Entry{}, start.Add(time.Duration(i/2)*time.Second)))
		require.NoError(t, s.Add(scheduler.Task[int]{Host: host}))
	}
	for _, host := range []string{"a", "b", "c"} {
		require.True(t, start.Add(6*time.Second).Equal(s.Explain(host).Until), host)
	}
	lease, _ := s.TryNext(start.Add(6*time.Second - 1))
	require.Nil(t, lease)
}

func TestAllAfterTheDelay(t *testing.T) {
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
				s.SetHost("b", scheduler.Host{Addr: here})
				_ = s.Add(scheduler.Task[string]{Host: "b"})
				s.TryNext(start.Add(20 * time.Second)) // leases b, without Done
				s.TryNext(later)
			}, 30 * time.Second,
		},
		"a host that failed is idle": {
			scheduler.Outcome{Failed: true},
			func(s *scheduler.Scheduler[string]) {
				lease, _ := s.TryNext(later.Add(-10 * time.Minute))
				lease.Done(scheduler.Outcome{})
				s.TryNext(later)
			}, 5 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := scheduler.New[string](scheduler.Options{LeaseTimeout: -1})
			add(t, s, jobs(here, "a1", "a2")...)
			lease, _ := s.TryNext(start)
			lease.Done(tt.outcome)
			tt.next(s)

			s = restored(t, slices.Collect(s.All(later)), later)
			add(t, s, jobs(anywhere, "a3")...)
			_, wait := s.TryNext(later)
			require.Equal(t, tt.want, wait)
		})
	}
}

// TestRestoreUnderOtherOptions: the pause is one delay of the present options, whatever the earlier
// ones were, and in whatever order the entries come.
func TestRestoreUnderOtherOptions(t *testing.T) {
	earlier := scheduler.New[string](scheduler.Options{HostDelay: time.Hour, GroupDelay: 3 * time.Hour})
	earlier.SetHost("b", scheduler.Host{CrawlDelay: 2 * time.Hour})
	entries := slices.Collect(earlier.All(start))
	for range 2 {
		for host, want := range map[string]time.Duration{"a": 5 * time.Second, "b": 2 * time.Hour} {
			s := scheduler.New[string](scheduler.Options{GroupDelay: time.Hour})
			for _, e := range slices.Concat(entries, entries) {
				require.NoError(t, s.Restore(e, start))
			}
			require.NoError(t, s.Add(scheduler.Task[string]{Host: host}))
			_, wait := s.TryNext(start)
			require.Equal(t, want, wait, host)
		}
		slices.Reverse(entries)
	}
}

// TestRestoreBoundsFailures: a damaged count costs no more successes than the longest back-off does.
func TestRestoreBoundsFailures(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{})
	require.NoError(t, s.Restore(scheduler.Entry{Host: "a", Failures: 255}, start))
	require.Equal(t, 8, s.Explain("a").Failures)
}

func TestRestoreHeedsExempt(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{Exempt: func(netip.Addr) bool { return true }})
	require.NoError(t, s.Restore(scheduler.Entry{Addr: here, Failures: 3}, start))
	require.Zero(t, s.Stats().Addrs)
}

func TestAllIsSmall(t *testing.T) {
	s := scheduler.New[int](scheduler.Options{})
	for i, task := range crowd(1000) {
		s.SetHost(task.Host, scheduler.Host{Addr: ip(i)})
		require.NoError(t, s.Add(task))
		lease, _ := s.TryNext(start)
		lease.Done(scheduler.Outcome{Failed: i%100 == 0})
	}
	require.Len(t, slices.Collect(s.All(start)), 1+10+10, "ten hosts and ten addresses have extras")
	for range s.All(start) {
		break // an iteration may end early
	}
}

// TestSchedulerInUseDuringAll would not return if All held a lock.
func TestSchedulerInUseDuringAll(t *testing.T) {
	s := restored(t, saved(t), start)
	entries := 0
	for e := range s.All(start) {
		if e.Host != "" {
			s.SetHost(e.Host, scheduler.Host{Delay: time.Hour})
		}
		entries++
	}
	require.Equal(t, len(saved(t)), entries)
}

func TestRestoreRefusesBadEntries(t *testing.T) {
	for want, e := range map[string]scheduler.Entry{
		"scheduler: restore entry of a: negative delay":                  {Host: "a", Delay: -1},
		"scheduler: restore entry of all others: only hosts have delays": {Delay: math.MaxInt64},
		"scheduler: restore entry of a: negative latency":                {Host: "a", Slow: -1},
		"scheduler: restore entry of a: -1 failures":                     {Host: "a", Failures: -1},
		"scheduler: restore entry of a: 256 failures":                    {Host: "a", Failures: 256},
		"scheduler: restore entry of a: it names 10.0.0.1 as well": {
			Host: "a", Addr: here,
		},
	} {
		s := scheduler.New[string](scheduler.Options{})
		require.EqualError(t, s.Restore(e, start), want)
		require.Zero(t, s.Stats())
	}
}

// FuzzRestore checks that accepted entries come out of All unchanged, so that they survive any
// number of restarts, and that nothing is leased immediately.
func FuzzRestore(f *testing.F) {
	for _, e := range saved(f) {
		text, err := json.Marshal(e)
		require.NoError(f, err)
		f.Add(text, int64(time.Second))
	}
	f.Add([]byte(`{"Addr":"fe80::1%25eth0","Slow":1,"Failures":255,"RetryAfter":"9999-01-01T00:00:00Z"}`), int64(-1))
	f.Fuzz(func(t *testing.T, text []byte, shift int64) {
		var e scheduler.Entry
		if json.Unmarshal(text, &e) != nil {
			return
		}
		now := start.Add(time.Duration(shift % math.MaxInt32))
		all := func(entries []scheduler.Entry) []scheduler.Entry {
			s := scheduler.New[string](scheduler.Options{})
			for _, e := range entries {
				require.NoError(t, s.Restore(e, now))
			}
			for host := range s.Reasons() {
				require.NoError(t, s.Add(scheduler.Task[string]{Host: host}))
			}
			lease, _ := s.TryNext(now.Add(scheduler.DefaultHostDelay - 1))
			require.Nil(t, lease)
			return slices.Collect(s.All(now))
		}
		if scheduler.New[string](scheduler.Options{}).Restore(e, now) != nil {
			return
		}
		once := all([]scheduler.Entry{e, {}})
		text, err := json.Marshal(once)
		require.NoError(t, err)
		var read []scheduler.Entry
		require.NoError(t, json.Unmarshal(text, &read))
		set := func(entries []scheduler.Entry) map[scheduler.Entry]bool {
			set := make(map[scheduler.Entry]bool)
			for _, e := range entries {
				e.RetryAfter = e.RetryAfter.UTC()
				set[e] = true
			}
			return set
		}
		if again := all(read); !maps.Equal(set(once), set(again)) {
			t.Errorf("%+v was restored, but All yields\n%+v", read, again)
		}
	})
}

// TestRestoreAndADelayLearnedLater: a delay that is longer than the default counts from the restart
// as well, however late it is learned.
func TestRestoreAndADelayLearnedLater(t *testing.T) {
	slow := scheduler.Host{CrawlDelay: time.Minute}
	for _, first := range []scheduler.Host{{}, {Addr: here}, {CrawlDelay: 6 * time.Second}} {
		for _, after := range []time.Duration{4 * time.Second, 10 * time.Second} {
			s := restored(t, []scheduler.Entry{{}}, start)
			if first != (scheduler.Host{}) {
				require.NoError(t, s.SetHost("a", first))
			}
			s.TryNext(start.Add(after))
			add(t, s, job{scheduler.Task[string]{Host: "a", Item: "a1"}, slow})
			_, wait := s.TryNext(start.Add(after))
			require.Equal(t, time.Minute, after+wait, "%+v", first)
		}
	}
}
