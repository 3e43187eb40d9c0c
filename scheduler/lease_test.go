package scheduler_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/scheduler"
)

// TestLostLeaseEnds has a lease without Done, and one whose Done comes too late.
func TestLostLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New[string](scheduler.Options{LeaseTimeout: time.Minute})
		add(t, s, jobs(here, "a1", "a2", "b1")...)
		lost := next(t, s)
		waiting := background(t.Context(), s)
		require.Equal(t, result{item: "b1", after: time.Minute + 10*time.Second}, <-waiting,
			"its address is open again, with a doubled delay as after any failure")

		before := s.Stats()
		require.EqualValues(t, 1, before.Lost)
		require.Equal(t, 1, before.Queued, "the task is not queued again")
		lost.Done(scheduler.Outcome{RetryAfter: time.Now().Add(time.Hour)})
		lost.Requeue(scheduler.Outcome{}, time.Time{})
		lost.Arrived(time.Now().Add(time.Hour))
		require.False(t, lost.Reach(there))
		require.Equal(t, before, s.Stats(), "a late Done has no effect")
		require.Equal(t, 1, s.Explain("a").Failures)
		require.Equal(t, 20*time.Second, (<-background(t.Context(), s)).after, "a backs off")
	})
}

func TestDrainedAfterLostLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New[string](scheduler.Options{})
		add(t, s, jobs(here, "a1")...)
		next(t, s)
		want := result{err: scheduler.ErrDrained, after: scheduler.DefaultLeaseTimeout}
		require.Equal(t, want, <-background(t.Context(), s))
	})
}

func TestRequeue(t *testing.T) {
	for name, tt := range map[string]struct {
		after time.Duration
		want  []string
	}{
		"now, behind the others":  {0, []string{"0s a1", "5s a2", "10s a3", "15s a1"}},
		"later, without blocking": {time.Hour, []string{"0s a1", "5s a2", "10s a3", "1h0m0s a1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := scheduler.New[string](scheduler.Options{MaxQueue: 3, MaxHostQueue: 3})
			add(t, s, jobs(here, "a1", "a2", "a3")...)
			lease, _ := s.TryNext(start)
			add(t, s, jobs(there, "b1")...) // so that the queue is full
			lease.Requeue(scheduler.Outcome{}, start.Add(tt.after))
			lease.Requeue(scheduler.Outcome{}, start.Add(tt.after))
			require.Equal(t, 4, s.Stats().Queued)
			require.ErrorIs(t, s.Add(scheduler.Task[string]{}), scheduler.ErrFull)
			got := append([]string{"0s a1"}, visits(s, goesWell)...)
			require.Equal(t, append(tt.want[:1:1], append([]string{"0s b1"}, tt.want[1:]...)...), got)
		})
	}
}

// TestReach has a host whose address becomes known on connecting.
func TestReach(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{})
	add(t, s, jobs(anywhere, "a1", "a2")...)
	add(t, s, jobs(here, "b1", "b2")...)
	lease, _ := s.TryNext(start)
	require.Equal(t, "a1", lease.Item())
	require.True(t, lease.Reach(there))
	require.True(t, lease.Reach(there), "it already has this address")
	require.True(t, lease.Reach(netip.AddrFrom16(there.As16())))
	other, _ := s.TryNext(start)
	require.Equal(t, "b1", other.Item())
	require.False(t, lease.Reach(here), "the address is leased by b")
	require.False(t, lease.Reach(here), "the second time it joins those who wait there")
	lease.Done(scheduler.Outcome{Skipped: true})
	none, wait := s.TryNext(start)
	require.Nil(t, none, "now a waits for the address as well")
	require.Equal(t, scheduler.DefaultLeaseTimeout, wait)
	other.Done(scheduler.Outcome{})
	require.Equal(t, []string{"5s a2", "10s b2"}, visits(s, goesWell), "a is ready immediately")
}

// TestReachHoldsTheAddress: an address that is learned during a visit counts for that visit.
func TestReachHoldsTheAddress(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{})
	add(t, s, jobs(anywhere, "a1")...)
	lease, _ := s.TryNext(start)
	require.True(t, lease.Reach(here))
	add(t, s, jobs(here, "b1")...)
	none, _ := s.TryNext(start)
	require.Nil(t, none)
	lease.Done(scheduler.Outcome{})
	_, wait := s.TryNext(start)
	require.Equal(t, 5*time.Second, wait)
}

// TestReachDoesNotOvertake: an address that others wait for is not free.
func TestReachDoesNotOvertake(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{})
	add(t, s, jobs(anywhere, "a1")...)
	lease, _ := s.TryNext(start)
	add(t, s, jobs(here, "b1")...)
	require.False(t, lease.Reach(here), "b waits for the address")
}

// TestRotatingAddresses: the name server of host a rotates two addresses, at each of which others wait
// all the time. It still gets its share of the turns there.
func TestRotatingAddresses(t *testing.T) {
	for name, next := range map[string]func(n int) int{
		"in turn":   func(n int) int { return n % 2 },
		"of three":  func(n int) int { return n % 3 },
		"of four":   func(n int) int { return n % 4 },
		"at random": func(n int) int { return rand.New(rand.NewPCG(uint64(n), 7)).IntN(2) },
	} {
		t.Run(name, func(t *testing.T) {
			s := scheduler.New[string](scheduler.Options{})
			addresses := []netip.Addr{here, there, netip.MustParseAddr("192.0.2.33"), netip.MustParseAddr("192.0.2.34")}
			add(t, s, jobs(anywhere, "a")...)
			for i, addr := range addresses {
				for _, other := range []string{"b", "c", "d"} {
					add(t, s, jobs(addr, fmt.Sprint(other, i))...)
				}
			}
			now, dialed, visited, refused := start, 0, 0, 0
			for now.Before(start.Add(time.Hour)) {
				lease, wait := s.TryNext(now)
				if lease == nil {
					now = now.Add(wait)
					continue
				}
				outcome := scheduler.Outcome{}
				if lease.Host() == "a" {
					if dialed++; lease.Reach(addresses[next(dialed)]) {
						visited++
					} else {
						refused++
						outcome.Skipped = true
					}
				}
				lease.Requeue(outcome, time.Time{})
			}
			require.Greater(t, visited, 100, "of 1440 turns at two addresses with four hosts each")
			require.Less(t, refused, 10*visited)
		})
	}
}

func TestReachOfAnExemptAddress(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{Exempt: func(ip netip.Addr) bool { return ip == here }})
	add(t, s, jobs(there, "a1", "b1")...)
	lease, _ := s.TryNext(start)
	require.True(t, lease.Reach(here))
	other, _ := s.TryNext(start)
	require.Equal(t, "b1", other.Item(), "a has moved to another address")
	require.True(t, other.Reach(here), "an exempt address is never busy")
}

func TestUnboundedRetryAfter(t *testing.T) {
	for name, tt := range map[string]struct {
		limit, want time.Duration
	}{
		"one day by default": {0, 24 * time.Hour},
		"as set":             {time.Hour, time.Hour},
		"without a bound":    {-1, 100 * 365 * 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			s := scheduler.New[string](scheduler.Options{MaxRetryAfter: tt.limit})
			add(t, s, jobs(here, "a1", "b1")...)
			lease, _ := s.TryNext(start)
			lease.Done(scheduler.Outcome{Status: 503, RetryAfter: start.Add(100 * 365 * 24 * time.Hour)})
			_, wait := s.TryNext(start)
			require.Equal(t, time.Minute, wait, "b has not said so")
			lease, _ = s.TryNext(start.Add(time.Minute))
			require.Equal(t, "b1", lease.Item())
			lease.Done(scheduler.Outcome{})
			lease.Requeue(scheduler.Outcome{}, time.Time{})
			add(t, s, jobs(anywhere, "a2")...)
			now := start.Add(time.Hour / 2)
			_, wait = s.TryNext(now)
			require.Equal(t, start.Add(tt.want).Sub(now), wait)
		})
	}
}

// TestSlowSharedServer has a hundred hosts on one address, which takes 20 s for a page.
func TestSlowSharedServer(t *testing.T) {
	const took = 20 * time.Second
	s := scheduler.New[int](scheduler.Options{})
	for i := range 100 {
		s.SetHost(fmt.Sprint(i), scheduler.Host{Addr: here})
		for range 100 {
			require.NoError(t, s.Add(scheduler.Task[int]{Host: fmt.Sprint(i)}))
		}
	}
	busy := time.Duration(0)
	for now := start; now.Before(start.Add(time.Hour)); {
		lease, wait := s.TryNext(now)
		if lease == nil {
			now = now.Add(wait)
			continue
		}
		visited := now
		now = now.Add(took)
		busy += took
		lease.Done(scheduler.Outcome{Start: visited, Took: took})
	}
	require.Less(t, busy, time.Hour/4)
	require.Greater(t, busy, time.Hour/6)
}

// TestTrapDoesNotFillTheQueue has a wildcard DNS entry with a new host for every link, and a site
// that is discovered during the crawl.
func TestTrapDoesNotFillTheQueue(t *testing.T) {
	for name, o := range map[string]scheduler.Options{
		"bound per host":    {MaxQueue: 100, MaxHostQueue: 50},
		"bound per address": {MaxQueue: 100, MaxAddrQueue: 50},
		"bound per group":   {MaxQueue: 100, MaxGroupQueue: 50},
	} {
		t.Run(name, func(t *testing.T) {
			s := scheduler.New[int](o)
			refused := 0
			for i := range 1000 {
				host := "trap.test"
				if o.MaxHostQueue == 0 {
					host = fmt.Sprint(i, ".trap.test")
				}
				s.SetHost(host, scheduler.Host{Addr: here, Group: "trap.test"})
				if err := s.Add(scheduler.Task[int]{Host: host, NotBefore: start.Add(time.Duration(i%2) * time.Hour)}); err != nil {
					require.Equal(t, scheduler.ErrHostFull, err)
					require.ErrorIs(t, err, scheduler.ErrFull)
					refused++
				}
			}
			require.Equal(t, 950, refused)
			s.SetHost("site.test", scheduler.Host{Addr: there, Group: "site.test"})
			require.NoError(t, s.Add(scheduler.Task[int]{Host: "site.test"}))
		})
	}
}

// TestUrgentTaskGoesFirst has a ready host behind a hundred thousand others.
func TestUrgentTaskGoesFirst(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{MaxQueue: -1})
	for i := range 100_000 {
		require.NoError(t, s.Add(scheduler.Task[string]{Host: fmt.Sprint(i)}))
	}
	add(t, s, jobs(anywhere, "a1")...)
	add(t, s, jobs(here, "b1")...)
	s.TryNext(start)
	for _, host := range []string{"a", "b"} {
		require.NoError(t, s.Add(scheduler.Task[string]{Host: host, Priority: 1, Item: "urgent " + host}))
		lease, _ := s.TryNext(start)
		require.Equal(t, "urgent "+host, lease.Item())
	}
}

// TestRetryDelaysNoOthers has a thousand pages of one host, one of which is retried later.
func TestRetryDelaysNoOthers(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{})
	add(t, s, notBefore(start.Add(24*time.Hour), jobs(here, "a-retry"))...)
	for range 1000 {
		add(t, s, jobs(here, "a")...)
	}
	got := visits(s, goesWell)
	require.Equal(t, "1h23m15s a", got[999])
	require.Equal(t, "24h0m0s a-retry", got[1000])
}

// TestDeferredTasksFollowPriority: tasks whose NotBefore has passed are leased by priority.
func TestDeferredTasksFollowPriority(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{HostDelay: time.Second})
	at := start.Add(3500 * time.Millisecond)
	add(t, s, ranked("a1", "a1x", "a0", "a0x")...)
	add(t, s, notBefore(at, ranked("a7", "a5"))...)
	add(t, s, ranked("a6")...)
	require.Equal(t, []string{"0s a6", "1s a1", "2s a1x", "3s a0", "4s a7", "5s a5", "6s a0x"},
		visits(s, goesWell))
}

// TestExtremeOutcomes: no measurement of the caller blocks a host forever.
func TestExtremeOutcomes(t *testing.T) {
	const forever, day = time.Duration(math.MaxInt64), 24 * time.Hour
	for name, tt := range map[string]struct {
		o    scheduler.Options
		out  scheduler.Outcome
		want time.Duration
	}{
		"latency": {out: scheduler.Outcome{Took: forever}, want: time.Hour},
		"latency, where hosts have longer delays": {scheduler.Options{HostDelay: day},
			scheduler.Outcome{Took: forever}, day},
		"a negative latency": {out: scheduler.Outcome{Took: math.MinInt64}, want: scheduler.DefaultHostDelay},
		"a start in the future": {out: scheduler.Outcome{Start: start.Add(forever)},
			want: day + scheduler.DefaultHostDelay},
		"both": {out: scheduler.Outcome{Start: start.Add(forever), Took: forever},
			want: day + time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			s := scheduler.New[string](tt.o)
			add(t, s, jobs(anywhere, "a1", "a2")...)
			lease, _ := s.TryNext(start)
			lease.Done(tt.out)
			_, wait := s.TryNext(start)
			require.Equal(t, tt.want, wait)
			for entry := range s.All(start) { // nor does a restored scheduler
				entry.Slow = max(entry.Slow, forever)
				successor := scheduler.New[string](tt.o)
				require.NoError(t, successor.Restore(entry, start))
				add(t, successor, jobs(anywhere, "a1")...)
				_, wait := successor.TryNext(start)
				require.LessOrEqual(t, wait, max(time.Hour, tt.o.HostDelay))
			}
		})
	}
}

// TestArrivalInTheFarFuture: such a request does not block its host forever, either.
func TestArrivalInTheFarFuture(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{MaxPerHost: 2, MaxPerAddr: 2, LeaseTimeout: -1})
	add(t, s, jobs(here, "a1", "a2")...)
	lease, _ := s.TryNext(start)
	lease.Arrived(start.Add(math.MaxInt64))
	_, wait := s.TryNext(start)
	require.Equal(t, 24*time.Hour+scheduler.DefaultHostDelay, wait)
}

// TestRotatingBusyAddresses: the name of a host moves from a free address to two busy ones in turn. It waits,
// and is not leased again and again at once.
func TestRotatingBusyAddresses(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{})
	busy := []netip.Addr{here, there}
	add(t, s, jobs(here, "b")...)
	add(t, s, jobs(there, "c")...)
	for range busy {
		_, _ = s.TryNext(start)
	}
	add(t, s, jobs(netip.MustParseAddr("192.0.2.77"), "a")...)
	for dialed := range 10 {
		lease, _ := s.TryNext(start)
		if lease == nil {
			return
		}
		require.False(t, lease.Reach(busy[dialed%2]))
		lease.Requeue(scheduler.Outcome{Skipped: true}, time.Time{})
	}
	t.Fatal("ten attempts at one instant")
}

// TestLeasesOfTwoSchedulers: under the lease of a queue with a long delay, a turn of another Scheduler that is
// free leaves the lease as it is.
func TestLeasesOfTwoSchedulers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tenant := scheduler.New[int](scheduler.Options{HostDelay: 300 * time.Millisecond})
		all := scheduler.New[struct{}](scheduler.Options{HostDelay: 20 * time.Millisecond})
		for i := range 1000 {
			require.NoError(t, tenant.Add(scheduler.Task[int]{Host: "h", Item: i}))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		requests := 0
		for l, err := tenant.Next(ctx); err == nil; l, err = tenant.Next(ctx) {
			time.Sleep(25 * time.Millisecond) // so that the turn is free
			turn, err := all.Wait(l.Context(ctx), "h")
			require.NoError(t, err)
			requests++
			require.True(t, l.Held())
			turn.Done(scheduler.Outcome{})
			l.Done(scheduler.Outcome{})
		}
		require.LessOrEqual(t, requests, 8)
	})
}

// TestUnknown: a visit of which nothing is known starts the delays that count without it.
func TestUnknown(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{})
	require.NoError(t, s.SetHost("a", scheduler.Host{Addr: here}))
	now := start
	for _, tt := range []struct {
		o    scheduler.Outcome
		wait time.Duration
	}{
		{scheduler.Outcome{Took: 10 * time.Second}, 50 * time.Second},
		{scheduler.Outcome{Unknown: true, Took: time.Second, Failed: true, Status: 503}, 50 * time.Second},
		{scheduler.Outcome{Unknown: true}, 50 * time.Second},
		{scheduler.Outcome{}, scheduler.DefaultHostDelay},
	} {
		add(t, s, jobs(anywhere, "a1", "a2")[0])
		lease, wait := s.TryNext(now)
		require.NotNil(t, lease, "%v", wait)
		lease.Done(tt.o)
		add(t, s, jobs(anywhere, "a1", "a2")[0])
		_, wait = s.TryNext(now)
		require.Equal(t, tt.wait, wait, "%+v", tt.o)
		require.Zero(t, s.Explain("a").Failures)
		now = now.Add(wait)
		lease, _ = s.TryNext(now)
		lease.Done(scheduler.Outcome{Skipped: true})
	}
}
