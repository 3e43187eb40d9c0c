package scheduler_test

import (
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/stretchr/testify/require"
)

func TestTaskComesBackAsItWas(t *testing.T) {
	for name, want := range map[string]scheduler.Task[string]{
		"with everything": {
			Host: "a.test", Addr: netip.MustParseAddr("2001:db8::1"), NotBefore: start, Item: "x",
		},
		"with nothing":         {},
		"with a zone":          {Host: "a", Addr: netip.MustParseAddr("fe80::1%eth0")},
		"of the far past":      {Host: "a", NotBefore: time.Unix(0, 0)},
		"with an odd name":     {Host: "\x00 Ä\xff"},
		"with an unnamed host": {Addr: ip(1), Item: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			s := scheduler.New[string](scheduler.Options{})
			require.NoError(t, s.Add(want))
			lease, wait := s.TryNext(start)
			require.Zero(t, wait)
			got := lease.Task()
			require.True(t, want.NotBefore.Equal(got.NotBefore), "%v", got.NotBefore)
			require.Equal(t, want.NotBefore.IsZero(), got.NotBefore.IsZero())
			got.NotBefore = want.NotBefore
			require.Equal(t, want, got)
			require.Equal(t, want.Host, lease.Host())
			require.Equal(t, want.Item, lease.Item())
		})
	}
}

// TestTryNextTellsHowLong asks a scheduler with one lease out, on a, since the start.
func TestTryNextTellsHowLong(t *testing.T) {
	for name, tt := range map[string]struct {
		tasks   []scheduler.Task[string]
		outcome *scheduler.Outcome // nil means that the lease stays out
		now     time.Duration
		want    time.Duration
	}{
		"nothing queued":              {nil, nil, 0, scheduler.Forever},
		"nothing queued, delay runs":  {nil, &scheduler.Outcome{}, 0, scheduler.Forever},
		"nothing queued, delay is up": {nil, &scheduler.Outcome{}, time.Hour, scheduler.Forever},
		"host leased":                 {tasks(there, "a1"), nil, time.Hour, scheduler.Forever},
		"address leased":              {tasks(here, "b1"), nil, time.Hour, scheduler.Forever},
		"delay of the host runs": {
			tasks(there, "a1"), &scheduler.Outcome{}, 0, 5 * time.Second,
		},
		"delay of the address runs": {
			tasks(here, "b1"), &scheduler.Outcome{}, time.Second, 4 * time.Second,
		},
		"the last nanosecond": {
			tasks(here, "b1"), &scheduler.Outcome{}, 5*time.Second - 1, 1,
		},
		"the latency delays": {
			tasks(there, "a1"), &scheduler.Outcome{Took: time.Hour}, time.Hour, 4 * time.Hour,
		},
		"the earlier of two": {
			append(tasks(there, "a1"), tasks(here, "b1")...),
			&scheduler.Outcome{Took: 3 * time.Second}, 2 * time.Second, 3 * time.Second,
		},
		"a delay without end": {
			tasks(anywhere, "a1"), &scheduler.Outcome{Took: math.MaxInt64}, 0, scheduler.Forever,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := scheduler.New[string](scheduler.Options{})
			add(t, s, tasks(here, "a0")...)
			lease, _ := s.TryNext(start)
			add(t, s, tt.tasks...)
			if tt.outcome != nil {
				lease.Done(*tt.outcome)
			}
			got, wait := s.TryNext(start.Add(tt.now))
			require.Nil(t, got)
			require.Equal(t, tt.want, wait)
		})
	}
}

func TestLeaseGivenBackTwiceCountsOnce(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{HostDelay: -1})
	add(t, s, tasks(here, "a0", "a1", "a2", "b1")...)
	first, _ := s.TryNext(start)
	first.Done(scheduler.Outcome{})
	second, _ := s.TryNext(start)
	third, _ := s.TryNext(start)
	require.Nil(t, third, "the address is leased")

	before := s.Stats()
	first.Done(scheduler.Outcome{Took: time.Hour})
	require.Equal(t, before, s.Stats())
	third, _ = s.TryNext(start)
	require.Nil(t, third, "the first lease gives back nothing of the second")

	second.Done(scheduler.Outcome{})
	third, _ = s.TryNext(start)
	require.NotNil(t, third, "and has started no delay")
}

// TestLateDone gives a lease back twice after its host was forgotten and its number taken by
// another one.
func TestLateDone(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{HostDelay: -1})
	add(t, s, tasks(here, "a0")...)
	old, _ := s.TryNext(start)
	old.Done(scheduler.Outcome{})
	require.Zero(t, s.Stats().Hosts)
	require.Zero(t, s.Stats().Addrs)

	add(t, s, tasks(there, "b0", "b1")...)
	lease, _ := s.TryNext(start)
	require.Equal(t, "b0", lease.Item())
	old.Done(scheduler.Outcome{})
	got, wait := s.TryNext(start.Add(time.Hour))
	require.Nil(t, got)
	require.Equal(t, scheduler.Forever, wait)
}

func TestLeaseNeverGivenBackBlocksOnlyItsHostAndAddress(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{})
	add(t, s, tasks(here, "a0", "b0")...)
	add(t, s, tasks(there, "a1", "c0")...)
	lost, _ := s.TryNext(start)
	require.Equal(t, "a0", lost.Item())

	lease, _ := s.TryNext(start)
	require.Equal(t, "c0", lease.Item())
	lease.Done(scheduler.Outcome{})
	lease, wait := s.TryNext(start.Add(time.Hour))
	require.Nil(t, lease)
	require.Equal(t, scheduler.Forever, wait)
	st := s.Stats()
	require.Equal(t, [5]int{2, 1, 0, 1, 1}, [5]int{st.Queued, st.Waiting, st.Ready, st.Leased, st.Out})
}

func TestClockGoesBack(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{})
	add(t, s, tasks(here, "a0", "a1", "a2")...)
	lease, _ := s.TryNext(start)
	lease.Done(scheduler.Outcome{})

	got, wait := s.TryNext(start.Add(-time.Hour))
	require.Nil(t, got, "an hour ago was before the delay had passed")
	require.Equal(t, 5*time.Second, wait)

	lease, _ = s.TryNext(start.Add(5 * time.Second))
	lease.Done(scheduler.Outcome{Start: start.Add(-time.Hour)})
	got, wait = s.TryNext(start.Add(-time.Hour))
	require.Nil(t, got)
	require.Equal(t, 5*time.Second, wait, "an early start does not shorten the delay")

	lease, _ = s.TryNext(start.Add(10 * time.Second))
	require.Equal(t, "a2", lease.Item())
}

func TestErrFull(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{MaxQueue: 2})
	add(t, s, tasks(here, "a0", "b0")...)
	before := s.Stats()
	require.ErrorIs(t, s.Add(tasks(there, "c0")[0]), scheduler.ErrFull)
	require.Equal(t, before, s.Stats(), "nothing is left of a refused task")

	lease, _ := s.TryNext(start)
	require.NoError(t, s.Add(tasks(there, "c0")[0]), "a leased task is not queued")
	require.ErrorIs(t, s.Add(tasks(there, "c1")[0]), scheduler.ErrFull)
	lease.Done(scheduler.Outcome{})
	require.ErrorIs(t, s.Add(tasks(there, "c1")[0]), scheduler.ErrFull)
}

// TestHostIsForgottenOnlyWhenItsDelayHasPassed moves the hand that sweeps over the hosts.
func TestHostIsForgottenOnlyWhenItsDelayHasPassed(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{AddrDelay: 8 * time.Second})
	add(t, s, tasks(here, "a0")...)
	lease, _ := s.TryNext(start)
	lease.Done(scheduler.Outcome{})
	for _, tt := range []struct {
		after        time.Duration
		hosts, addrs int
	}{
		{5*time.Second - 1, 1, 1},
		{5 * time.Second, 0, 1},
		{8*time.Second - 1, 0, 1},
		{8 * time.Second, 0, 0},
	} {
		s.TryNext(start.Add(tt.after))
		for range 3 {
			s.SetDelay("b", time.Minute)
			s.SetDelay("b", 0)
		}
		got := s.Stats()
		require.Equal(t, [2]int{tt.hosts, tt.addrs}, [2]int{got.Hosts, got.Addrs}, "%v", tt.after)
	}
}

func TestSetDelayIsRemembered(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{})
	s.SetDelay("a", time.Minute)
	s.SetDelay("b", time.Second)
	s.TryNext(start.Add(time.Hour))
	require.Equal(t, scheduler.Stats{Hosts: 1, Idle: 1}, s.Stats(), "b asks for nothing unusual")

	s.SetDelay("a", 0)
	require.Zero(t, s.Stats(), "a neither, now")
}

func TestSetDelayPutsOffAHostThatIsReady(t *testing.T) {
	for name, addr := range map[string]netip.Addr{"in a line": here, "without address": anywhere} {
		t.Run(name, func(t *testing.T) {
			s := scheduler.New[string](scheduler.Options{AddrDelay: -1})
			add(t, s, tasks(addr, "a0", "a1", "b0")...)
			lease, _ := s.TryNext(start)
			lease.Done(scheduler.Outcome{})
			lease, _ = s.TryNext(start.Add(5 * time.Second)) // a is ready, but it is b's turn
			require.Equal(t, "b0", lease.Item())
			lease.Done(scheduler.Outcome{})

			s.SetDelay("a", time.Minute)
			got, wait := s.TryNext(start.Add(5 * time.Second))
			require.Nil(t, got)
			require.Equal(t, 55*time.Second, wait)
			lease, _ = s.TryNext(start.Add(time.Minute))
			require.Equal(t, "a1", lease.Item())
		})
	}
}

// TestOddOptions holds that no number in Options or Outcome breaks the order of times.
func TestOddOptions(t *testing.T) {
	for name, opts := range map[string]scheduler.Options{
		"factor is not a number":    {LatencyFactor: math.NaN()},
		"factor is infinite":        {LatencyFactor: math.Inf(1)},
		"factor is minus infinite":  {LatencyFactor: math.Inf(-1)},
		"delays are without end":    {HostDelay: math.MaxInt64, AddrDelay: math.MaxInt64},
		"delays are far below zero": {HostDelay: math.MinInt64, AddrDelay: math.MinInt64},
		"the queue has no bound":    {MaxQueue: math.MaxInt},
		"the queue has less than 0": {MaxQueue: math.MinInt},
	} {
		t.Run(name, func(t *testing.T) {
			s := scheduler.New[string](opts)
			add(t, s, tasks(here, "a0", "a1", "b0")...)
			for _, now := range []time.Time{start, {}, start.AddDate(400, 0, 0)} {
				for _, o := range []scheduler.Outcome{
					{}, {Took: math.MaxInt64}, {Took: math.MinInt64},
					{Start: start.AddDate(900, 0, 0)},
				} {
					add(t, s, tasks(here, "a2", "c0")...)
					lease, wait := s.TryNext(now)
					if lease == nil {
						require.Positive(t, wait)
						continue
					}
					lease.Done(o)
				}
			}
			st := s.Stats()
			require.Equal(t, st.Hosts, st.Idle+st.Waiting+st.Ready+st.Leased)
			require.EqualValues(t, 3+2*12, int64(st.Queued)+st.Given)
		})
	}
}

// TestSimulationFarFromNow runs two delays at a time that has nothing to do with now.
func TestSimulationFarFromNow(t *testing.T) {
	for _, begin := range []time.Time{time.Unix(0, 0), start.AddDate(200, 0, 0)} {
		s := scheduler.New[string](scheduler.Options{})
		add(t, s, tasks(here, "a0", "b0", "a1")...)
		now := begin
		for _, want := range []string{"a0", "b0", "a1"} {
			lease, _ := s.TryNext(now)
			require.NotNil(t, lease, "%v", now)
			require.Equal(t, want, lease.Item())
			lease.Done(scheduler.Outcome{})
			_, wait := s.TryNext(now)
			if want != "a1" {
				require.Equal(t, 5*time.Second, wait)
				now = now.Add(wait)
			}
		}
	}
}

func TestHostNameKeepsNothingAlive(t *testing.T) {
	url := "http://" + strings.Repeat("a", 10) + ".test/" + strings.Repeat("x", 1000)
	s := scheduler.New[int](scheduler.Options{})
	require.NoError(t, s.Add(scheduler.Task[int]{Host: url[7:22]}))
	lease, _ := s.TryNext(start)
	require.Equal(t, url[7:22], lease.Host())
	require.NotSame(t, unsafe.StringData(url[7:]), unsafe.StringData(lease.Host()))
}
