package scheduler_test

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/stretchr/testify/require"
)

func TestTaskIsReturnedUnchanged(t *testing.T) {
	for name, want := range map[string]scheduler.Task[string]{
		"with everything":      {Host: "a.test", Priority: 3, Item: "x"},
		"with nothing":         {},
		"with an odd name":     {Host: "\x00 Ä\xff"},
		"with an unnamed host": {Item: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			s := scheduler.New[string](scheduler.Options{})
			require.NoError(t, s.Add(want))
			lease, wait := s.TryNext(start)
			require.Zero(t, wait)
			require.Equal(t, want, lease.Task())
			require.Equal(t, want.Host, lease.Host())
			require.Equal(t, want.Item, lease.Item())
		})
	}
}

func TestAddressIsReturnedUnchanged(t *testing.T) {
	for _, addr := range []string{"192.0.2.1", "2001:db8::1", "fe80::1%eth0"} {
		s := scheduler.New[string](scheduler.Options{})
		want := scheduler.Host{Addr: netip.MustParseAddr(addr), Group: "a"}
		s.SetHost("a", want)
		got := s.Explain("a")
		require.Equal(t, want, scheduler.Host{Addr: got.Addr, Group: got.Group})
	}
}

// TestTryNextReturnsTheWait calls TryNext with one lease outstanding on a since the start.
func TestTryNextReturnsTheWait(t *testing.T) {
	for name, tt := range map[string]struct {
		tasks   []job
		outcome *scheduler.Outcome // nil means that the lease is not ended
		now     time.Duration
		want    time.Duration
	}{
		"nothing queued":                {nil, nil, 0, scheduler.Forever},
		"nothing queued, delay running": {nil, &scheduler.Outcome{}, 0, scheduler.Forever},
		"nothing queued, delay over":    {nil, &scheduler.Outcome{}, time.Hour, scheduler.Forever},
		"host leased":                   {jobs(there, "a1"), nil, time.Hour, scheduler.Forever},
		"address leased":                {jobs(here, "b1"), nil, time.Hour, scheduler.Forever},
		"delay of the host runs": {
			jobs(there, "a1"), &scheduler.Outcome{}, 0, 5 * time.Second,
		},
		"delay of the address runs": {
			jobs(here, "b1"), &scheduler.Outcome{}, time.Second, 4 * time.Second,
		},
		"the last nanosecond": {
			jobs(here, "b1"), &scheduler.Outcome{}, 5*time.Second - 1, 1,
		},
		"the latency delays": {
			jobs(there, "a1"), &scheduler.Outcome{Took: 10 * time.Minute}, time.Minute, 49 * time.Minute,
		},
		"the earlier of two": {
			append(jobs(there, "a1"), jobs(here, "b1")...),
			&scheduler.Outcome{Took: 3 * time.Second}, 2 * time.Second, 3 * time.Second,
		},
		"an infinite delay": {
			[]job{{Task: scheduler.Task[string]{Host: "a", Item: "a1"},
				host: scheduler.Host{Delay: math.MaxInt64}}},
			&scheduler.Outcome{}, 0, scheduler.Forever,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := scheduler.New[string](scheduler.Options{LeaseTimeout: -1})
			add(t, s, jobs(here, "a0")...)
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

func TestSecondDoneHasNoEffect(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{HostDelay: -1})
	add(t, s, jobs(here, "a0", "a1", "a2", "b1")...)
	first, _ := s.TryNext(start)
	first.Done(scheduler.Outcome{})
	second, _ := s.TryNext(start)
	third, _ := s.TryNext(start)
	require.Nil(t, third, "the address is leased")

	before := s.Stats()
	first.Done(scheduler.Outcome{Took: time.Hour})
	require.Equal(t, before, s.Stats())
	third, _ = s.TryNext(start)
	require.Nil(t, third, "a second Done of the first lease does not end the second")

	second.Done(scheduler.Outcome{})
	third, _ = s.TryNext(start)
	require.NotNil(t, third, "and starts no delay")
}

// TestLateDone ends a lease twice after its host was forgotten and the host's number was reused.
func TestLateDone(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{HostDelay: -1, LeaseTimeout: -1})
	add(t, s, jobs(anywhere, "a0")...)
	old, _ := s.TryNext(start)
	old.Done(scheduler.Outcome{})
	s.TryNext(start.Add(time.Minute))
	sweep(s)
	require.Zero(t, s.Stats().Hosts)

	add(t, s, jobs(there, "b0", "b1")...)
	lease, _ := s.TryNext(start)
	require.Equal(t, "b0", lease.Item())
	old.Done(scheduler.Outcome{})
	got, wait := s.TryNext(start.Add(time.Hour))
	require.Nil(t, got)
	require.Equal(t, scheduler.Forever, wait)
}

func TestLeaseWithoutDoneBlocksOnlyItsHostAndAddress(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{LeaseTimeout: -1})
	add(t, s, jobs(here, "a0", "b0", "a1")...)
	add(t, s, jobs(there, "c0")...)
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
	add(t, s, jobs(here, "a0", "a1", "a2")...)
	lease, _ := s.TryNext(start)
	lease.Done(scheduler.Outcome{})

	got, wait := s.TryNext(start.Add(-time.Hour))
	require.Nil(t, got, "the delay has not passed at the latest time")
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
	add(t, s, jobs(here, "a0", "b0")...)
	before := s.Stats()
	require.ErrorIs(t, s.Add(jobs(there, "c0")[0].Task), scheduler.ErrFull)
	require.Equal(t, before, s.Stats(), "a refused task changes nothing")

	lease, _ := s.TryNext(start)
	require.NoError(t, s.Add(jobs(there, "c0")[0].Task), "leased tasks do not count")
	require.ErrorIs(t, s.Add(jobs(there, "c1")[0].Task), scheduler.ErrFull)
	lease.Done(scheduler.Outcome{})
	require.ErrorIs(t, s.Add(jobs(there, "c1")[0].Task), scheduler.ErrFull)
}

// sweep makes a scheduler forget all hosts that it may forget.
func sweep(s *scheduler.Scheduler[string]) {
	for range 100 {
		s.SetHost("swept", scheduler.Host{Delay: -1})
	}
}

// TestForgottenHosts has a host with a delay and an address, and one without settings.
func TestForgottenHosts(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{AddrDelay: 8 * time.Second})
	s.TryNext(start)
	setDelay(s, "a", time.Minute)
	add(t, s, jobs(here, "a0")...)
	add(t, s, jobs(anywhere, "b0")...)
	for range 2 {
		lease, _ := s.TryNext(start)
		lease.Done(scheduler.Outcome{})
	}
	const day = 24 * time.Hour
	for _, tt := range []struct {
		after        time.Duration
		hosts, addrs int
	}{
		{65*time.Second - 1, 2, 1},
		{65 * time.Second, 1, 1},
		{day, 1, 1},
		{day + 3*time.Second, 0, 0}, // times are stored to about a second
	} {
		s.TryNext(start.Add(tt.after))
		sweep(s)
		hosts := maps.Collect(s.Reasons())
		delete(hosts, "swept")
		require.Len(t, hosts, tt.hosts, "%v", tt.after)
		require.Equal(t, tt.addrs, s.Stats().Addrs, "%v", tt.after)
	}
}

// TestHostsWithADelayAreForgotten: hosts with a Crawl-delay are forgotten within a year.
func TestHostsWithADelayAreForgotten(t *testing.T) {
	const hosts = 10_000
	s := scheduler.New[string](scheduler.Options{})
	s.TryNext(start)
	for i := range hosts {
		s.SetHost(fmt.Sprint(i), scheduler.Host{Addr: ip(i), Delay: time.Hour})
	}
	require.Equal(t, hosts, s.Stats().Hosts)
	s.TryNext(start.AddDate(1, 0, 0))
	for range hosts {
		s.SetHost("swept", scheduler.Host{Delay: -1})
	}
	require.Equal(t, scheduler.Stats{Hosts: 1, Idle: 1}, s.Stats())
}

// TestMaxIdleHosts has more hosts than the limit, all of which have an address.
func TestMaxIdleHosts(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{MaxIdleHosts: 100})
	for i := range 10_000 {
		s.SetHost(fmt.Sprint(i), scheduler.Host{Addr: ip(i)})
	}
	got := s.Stats()
	require.LessOrEqual(t, got.Hosts, 200)
	require.LessOrEqual(t, got.Addrs, 300)
}

func TestSettingsOfIdleHostsAreKept(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{})
	add(t, s, grouped("g", jobs(here, "a0"))...)
	lease, _ := s.TryNext(start)
	lease.Done(scheduler.Outcome{})
	s.TryNext(start.Add(time.Hour))
	sweep(s)
	add(t, s, jobs(here, "b0")...)
	lease, _ = s.TryNext(start.Add(time.Hour))
	require.Equal(t, "b0", lease.Item())
	add(t, s, job{Task: scheduler.Task[string]{Host: "a", Item: "a1"}})
	lease, _ = s.TryNext(start.Add(time.Hour))
	require.Nil(t, lease, "its address is leased")
}

func TestDelayAppliesToAReadyHost(t *testing.T) {
	for name, addr := range map[string]netip.Addr{"in a waitlist": here, "without address": anywhere} {
		t.Run(name, func(t *testing.T) {
			s := scheduler.New[string](scheduler.Options{AddrDelay: -1})
			add(t, s, jobs(addr, "a0", "a1", "b0")...)
			lease, _ := s.TryNext(start)
			lease.Done(scheduler.Outcome{})
			lease, _ = s.TryNext(start.Add(5 * time.Second)) // a is ready, but it is b's turn
			require.Equal(t, "b0", lease.Item())
			lease.Done(scheduler.Outcome{})

			setDelay(s, "a", time.Minute)
			got, wait := s.TryNext(start.Add(5 * time.Second))
			require.Nil(t, got)
			require.Equal(t, 55*time.Second, wait)
			lease, _ = s.TryNext(start.Add(time.Minute))
			require.Equal(t, "a1", lease.Item())
		})
	}
}

// TestExtremeOptions checks that no number in Options or Outcome breaks the order of times.
func TestExtremeOptions(t *testing.T) {
	for name, opts := range map[string]scheduler.Options{
		"factor is not a number":      {LatencyFactor: math.NaN()},
		"factor is infinite":          {LatencyFactor: math.Inf(1)},
		"factor is minus infinite":    {LatencyFactor: math.Inf(-1)},
		"delays are infinite":         {HostDelay: math.MaxInt64, AddrDelay: math.MaxInt64},
		"delays are far below zero":   {HostDelay: math.MinInt64, AddrDelay: math.MinInt64},
		"the queue has no bound":      {MaxQueue: math.MaxInt},
		"the queue bound is negative": {MaxQueue: math.MinInt},
	} {
		t.Run(name, func(t *testing.T) {
			s := scheduler.New[string](opts)
			add(t, s, jobs(here, "a0", "a1", "b0")...)
			for _, now := range []time.Time{start, {}, start.AddDate(400, 0, 0)} {
				for _, o := range []scheduler.Outcome{
					{}, {Took: math.MaxInt64}, {Took: math.MinInt64},
					{Start: start.AddDate(900, 0, 0)},
				} {
					add(t, s, jobs(here, "a2", "c0")...)
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

// TestSimulationFarFromNow simulates two delays at a time far from the present.
func TestSimulationFarFromNow(t *testing.T) {
	for _, begin := range []time.Time{time.Unix(0, 0), start.AddDate(200, 0, 0)} {
		s := scheduler.New[string](scheduler.Options{})
		add(t, s, jobs(here, "a0", "b0", "a1")...)
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

// TestALongerDelayCountsFromTheLastVisit, also if it is found out in a robots.txt whose body took
// longer than the delay before. A host without a delay is not remembered for more than a minute.
func TestALongerDelayCountsFromTheLastVisit(t *testing.T) {
	for after, want := range map[time.Duration]time.Duration{
		4 * time.Second:             86 * time.Second,
		65*time.Second - 1:          25*time.Second + 1,
		5*time.Second + time.Minute: 0,
	} {
		s := scheduler.New[int](scheduler.Options{HostDelay: 5 * time.Second})
		require.NoError(t, s.Add(scheduler.Task[int]{Host: "a"}))
		lease, _ := s.TryNext(start)
		lease.Done(scheduler.Outcome{})
		_, wait := s.TryNext(start.Add(after))
		require.Equal(t, scheduler.Forever, wait)
		s.SetHost("a", scheduler.Host{CrawlDelay: 90 * time.Second})
		require.NoError(t, s.Add(scheduler.Task[int]{Host: "a"}))
		_, wait = s.TryNext(start.Add(after))
		require.Equal(t, want, wait)
	}
}
