package scheduler_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/stretchr/testify/require"
)

func TestRules(t *testing.T) {
	second := scheduler.Options{HostDelay: time.Second}
	for name, tt := range map[string]struct {
		script
		want []string
	}{
		"tasks of higher priority come first, ties keep their order": {
			script{opts: second, tasks: ranked("a0", "a3", "a0x", "a7", "a3x", "a7x")},
			[]string{"0s a7", "1s a7x", "2s a3", "3s a3x", "4s a0", "5s a0x"},
		},
		"so do hosts that are ready": {
			script{opts: second, tasks: ranked("a0", "b0", "c2", "d1", "e2")},
			[]string{"0s c2", "0s e2", "0s d1", "0s a0", "0s b0"},
		},
		"an urgent task makes its host urgent, even if it is already ready": {
			script{opts: second, tasks: ranked("a0", "b5", "c1", "a7")},
			[]string{"0s a7", "0s b5", "0s c1", "1s a0"},
		},
		"but not before the other hosts of its address": {
			script{opts: scheduler.Options{AddrDelay: time.Second}, tasks: append(
				jobs(here, "a1", "b1"), job{
					scheduler.Task[string]{Host: "b", Priority: 7, Item: "b7"}, scheduler.Host{Addr: here},
				})},
			[]string{"0s a1", "1s b7", "6s b1"},
		},
		"priorities above the highest count as the highest": {
			script{opts: second, tasks: []job{
				{Task: scheduler.Task[string]{Host: "a", Priority: 100, Item: "a7"}},
				{Task: scheduler.Task[string]{Host: "a", Priority: 8, Item: "a7x"}},
			}},
			[]string{"0s a7", "1s a7x"},
		},
		"hosts of one group take turns, whatever their addresses": {
			script{opts: scheduler.Options{GroupDelay: 2 * time.Second}, tasks: append(
				grouped("g", append(jobs(here, "a1", "a2"), jobs(there, "b1")...)),
				jobs(anywhere, "c1")...)},
			[]string{"0s a1", "0s c1", "2s b1", "5s a2"},
		},
		"a group has the delay of a host by default": {
			script{tasks: grouped("g", jobs(anywhere, "a1", "b1"))},
			[]string{"0s a1", "5s b1"},
		},
		"a group may have no delay": {
			script{
				opts:  scheduler.Options{GroupDelay: -1},
				tasks: grouped("g", jobs(anywhere, "a1", "b1")),
			},
			[]string{"0s a1", "0s b1"},
		},
		"a group may have the name of a host": {
			script{tasks: append(grouped("b", jobs(anywhere, "a1")), jobs(anywhere, "b1")...)},
			[]string{"0s a1", "0s b1"},
		},
		"a host that waits for its group does not block its address": {
			script{opts: scheduler.Options{GroupDelay: 9 * time.Second, AddrDelay: time.Second},
				tasks: append(grouped("g", jobs(here, "a1", "b1")), jobs(here, "c1")...)},
			[]string{"0s a1", "1s c1", "9s b1"},
		},
		"a host that waits for its address does not block its group": {
			script{opts: scheduler.Options{AddrDelay: 9 * time.Second, GroupDelay: time.Second},
				tasks: grouped("g", append(jobs(here, "a1", "b1"), jobs(there, "c1")...))},
			[]string{"0s a1", "1s c1", "9s b1"},
		},
		"an exempt address has no delay": {
			script{
				opts:  scheduler.Options{Exempt: func(ip netip.Addr) bool { return ip == here }},
				tasks: append(jobs(here, "a1", "b1"), jobs(there, "c1", "d1")...),
			},
			[]string{"0s a1", "0s b1", "0s c1", "5s d1"},
		},
		"nor does the old address of a host that moved to an exempt one": {
			script{
				opts:  scheduler.Options{Exempt: func(ip netip.Addr) bool { return ip == here }},
				tasks: append(jobs(there, "a1", "b1"), jobs(here, "b2")...),
			},
			[]string{"0s a1", "0s b1", "5s b2"},
		},
		"a Crawl-delay of a year is obeyed for its host": {
			script{tasks: jobs(here, "a1", "a2", "b1"),
				prepare: func(s *scheduler.Scheduler[string], _ time.Time) {
					setDelay(s, "a", 365*24*time.Hour)
				}},
			[]string{"0s a1", "5s b1", "8760h0m0s a2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, tt.run(t))
		})
	}
}

// TestSeveralAtOnce takes all available leases each second, and ends none. Each request arrives
// immediately.
func TestSeveralAtOnce(t *testing.T) {
	opts := scheduler.Options{HostDelay: 2 * time.Second, AddrDelay: -1, GroupDelay: -1, LeaseTimeout: -1}
	for name, tt := range map[string]struct {
		host, addr, group int
		want              string
	}{
		"one by default":            {0, 9, 9, "0s a1, 0s b1"},
		"two of a host":             {2, 9, 9, "0s a1, 0s b1, 2s a2, 2s b2"},
		"one of an address":         {9, 0, 9, "0s a1"},
		"three of an address":       {9, 3, 9, "0s a1, 0s b1, 2s a2"},
		"one of a group":            {9, 9, 0, "0s a1"},
		"as many as can be counted": {-1, -1, -1, "0s a1, 0s b1, 2s a2, 2s b2, 4s a3"},
	} {
		t.Run(name, func(t *testing.T) {
			opts := opts
			opts.MaxPerHost, opts.MaxPerAddr, opts.MaxPerGroup = tt.host, tt.addr, tt.group
			s := scheduler.New[string](opts)
			add(t, s, grouped("g", jobs(here, "a1", "b1", "a2", "b2", "a3"))...)
			got := ""
			for now := time.Duration(0); now < 10*time.Second; now += time.Second {
				for lease, _ := s.TryNext(start.Add(now)); lease != nil; {
					got += fmt.Sprint(", ", now, " ", lease.Item())
					lease.Arrived(start.Add(now))
					lease, _ = s.TryNext(start.Add(now))
				}
			}
			require.Equal(t, ", "+tt.want, got)
		})
	}
}

// TestTheNextLeaseWaitsUntilTheRequestArrives has an address that allows two requests. The first
// one takes three seconds to arrive, for example because of a slow handshake.
func TestTheNextLeaseWaitsUntilTheRequestArrives(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{HostDelay: 5 * time.Second, AddrDelay: time.Second, MaxPerAddr: 2})
	add(t, s, jobs(here, "a1", "b1", "c1")...)
	first, _ := s.TryNext(start)
	none, wait := s.TryNext(start.Add(2 * time.Second))
	require.Nil(t, none)
	require.Equal(t, scheduler.DefaultLeaseTimeout-2*time.Second, wait)
	first.Arrived(start.Add(3 * time.Second))
	none, wait = s.TryNext(start.Add(3 * time.Second))
	require.Nil(t, none)
	require.Equal(t, time.Second, wait, "the delay counts from then")
	second, _ := s.TryNext(start.Add(4 * time.Second))
	require.Equal(t, "b1", second.Item())
	second.Arrived(start.Add(4 * time.Second))
	none, _ = s.TryNext(start.Add(6 * time.Second))
	require.Nil(t, none, "two are in flight")
	first.Done(scheduler.Outcome{Start: start.Add(5500 * time.Millisecond)})
	_, wait = s.TryNext(start.Add(6 * time.Second))
	require.Equal(t, 500*time.Millisecond, wait, "the later arrival counts")
}

func TestFailuresSlowTheirHost(t *testing.T) {
	var answers string // of each visit: a failure or not
	opts := scheduler.Options{AddrDelay: -1, Backoff: 10 * time.Second, MaxBackoff: time.Minute}
	for _, tt := range []struct{ answers, gaps string }{
		{"ffffff.", "[10s 20s 40s 1m0s 1m0s 1m0s]"},
		{"ffff....", "[10s 20s 40s 1m0s 20s 10s 5s]"}, // four failures, two, one, none
		{"f.f.ff..", "[10s 5s 10s 5s 10s 20s 10s]"},
	} {
		answers = tt.answers
		s := scheduler.New[string](opts)
		var gaps []time.Duration
		now, last := start, start
		for i := range answers {
			add(t, s, jobs(here, "a0")...)
			lease, wait := s.TryNext(now)
			if lease == nil {
				now = now.Add(wait)
				lease, _ = s.TryNext(now)
			}
			if i > 0 {
				gaps = append(gaps, now.Sub(last))
			}
			last = now
			if i < len(answers)-1 { // so that the host is never idle
				add(t, s, jobs(here, "a0")...)
			}
			lease.Done(scheduler.Outcome{Failed: answers[i] == 'f'})
		}
		require.Equal(t, tt.gaps, fmt.Sprint(gaps), tt.answers)
	}
}

// TestFailingHostDoesNotStopItsAddress has one failing host among twenty healthy ones.
func TestFailingHostDoesNotStopItsAddress(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{HostDelay: time.Second})
	for host := range 20 {
		task := scheduler.Task[string]{Host: fmt.Sprint(host)}
		for range 1000 {
			add(t, s, job{task, scheduler.Host{Addr: here}})
		}
	}
	visits := 0
	for now := start; now.Before(start.Add(1000 * time.Second)); {
		lease, wait := s.TryNext(now)
		if lease == nil {
			now = now.Add(wait)
			continue
		}
		visits++
		lease.Done(scheduler.Outcome{Failed: lease.Host() == "0"})
	}
	require.Greater(t, visits, 980, "the address loses a few visits of a thousand")
}

// TestFailuresAtOnceCountOnce has several requests in flight to an address when it breaks down.
func TestFailuresAtOnceCountOnce(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{
		HostDelay: -1, AddrDelay: time.Second, MaxPerAddr: 10, Backoff: 1, MaxBackoff: time.Hour,
	})
	add(t, s, jobs(here, "a", "b", "c", "d", "e")...)
	var out []*scheduler.Lease[string]
	for i := range 4 {
		now := start.Add(time.Duration(i) * time.Second)
		lease, _ := s.TryNext(now)
		lease.Arrived(now)
		out = append(out, lease)
	}
	for _, lease := range out {
		lease.Done(scheduler.Outcome{Failed: true})
	}
	_, wait := s.TryNext(start.Add(3 * time.Second))
	require.Equal(t, 2*time.Second, wait, "the delay is doubled once")
}

// TestNoDelays: one option turns off everything but Retry-After. It leaves alone what is set.
func TestNoDelays(t *testing.T) {
	slow := func(string) scheduler.Outcome { return scheduler.Outcome{Took: time.Minute, Failed: true} }
	for name, tt := range map[string]struct {
		opts scheduler.Options
		want []string
	}{
		"none":            {scheduler.Options{HostDelay: -1}, []string{"0s a1", "0s a2", "0s a3"}},
		"of addresses":    {scheduler.Options{HostDelay: -1, AddrDelay: time.Second}, []string{"0s a1", "5m0s a2", "10m0s a3"}},
		"back-off alone":  {scheduler.Options{HostDelay: -1, Backoff: time.Second}, []string{"0s a1", "1s a2", "3s a3"}},
		"latency alone":   {scheduler.Options{HostDelay: -1, LatencyFactor: 2}, []string{"0s a1", "2m0s a2", "4m0s a3"}},
		"the usual delay": {scheduler.Options{}, []string{"0s a1", "5m0s a2", "10m0s a3"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := scheduler.New[string](tt.opts)
			add(t, s, jobs(here, "a1", "a2", "a3")...)
			require.Equal(t, tt.want, visits(s, slow))
		})
	}
	s := scheduler.New[string](scheduler.Options{HostDelay: -1})
	add(t, s, jobs(here, "a1", "a2")...)
	require.Equal(t, []string{"0s a1", "1m0s a2"}, visits(s, func(string) scheduler.Outcome {
		return scheduler.Outcome{RetryAfter: start.Add(time.Minute)}
	}))
}

func TestRetryAfterIsExact(t *testing.T) {
	for name, tt := range map[string]struct {
		outcome scheduler.Outcome
		exempt  bool
		want    []string
	}{
		"for the host and its address": {
			scheduler.Outcome{Status: 429, RetryAfter: start.Add(time.Hour + 1)}, false,
			[]string{"1m0s b1", "1h0m0.000000001s a2"},
		},
		"with any status": {
			scheduler.Outcome{Status: 200, RetryAfter: start.Add(7 * time.Second)}, false,
			[]string{"7s b1", "12s a2"},
		},
		"if it is longer than the back-off": {
			scheduler.Outcome{Status: 503, RetryAfter: start.Add(7 * time.Second)}, false,
			[]string{"10s b1", "30s a2"},
		},
		"not for an exempt address": {
			scheduler.Outcome{RetryAfter: start.Add(time.Hour)}, true,
			[]string{"0s b1", "1h0m0s a2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := scheduler.New[string](scheduler.Options{Exempt: func(netip.Addr) bool { return tt.exempt }})
			add(t, s, jobs(here, "a1", "a2", "b1")...)
			lease, _ := s.TryNext(start)
			lease.Done(tt.outcome)
			var got []string
			for now := start; s.Stats().Queued > 0; {
				lease, wait := s.TryNext(now)
				if lease == nil {
					now = now.Add(wait)
					continue
				}
				got = append(got, fmt.Sprint(now.Sub(start), " ", lease.Item()))
				lease.Done(scheduler.Outcome{})
			}
			require.Equal(t, tt.want, got)
		})
	}
}

// TestGroupsAndAddressesBothApply has tasks whose groups and addresses compete.
func TestGroupsAndAddressesBothApply(t *testing.T) {
	const visits = 300
	s := scheduler.New[int](scheduler.Options{
		HostDelay: -1, AddrDelay: 3 * time.Second, GroupDelay: 2 * time.Second,
	})
	for i := range visits {
		host := fmt.Sprint(i % 36)
		s.SetHost(host, scheduler.Host{Addr: ip(i % 3), Group: fmt.Sprint(i % 4)})
		require.NoError(t, s.Add(scheduler.Task[int]{Host: host}))
	}
	last := make(map[any]time.Time)
	now := start
	for given := 0; given < visits; {
		lease, wait := s.TryNext(now)
		if lease == nil {
			now = now.Add(wait)
			continue
		}
		given++
		about := s.Explain(lease.Host())
		for key, delay := range map[any]time.Duration{
			about.Addr: 3 * time.Second, about.Group: 2 * time.Second,
		} {
			if at, ok := last[key]; ok {
				require.GreaterOrEqual(t, now.Sub(at), delay)
			}
			last[key] = now
		}
		lease.Done(scheduler.Outcome{})
	}
	require.Less(t, now.Sub(start), 320*time.Second, "three addresses, 100 visits each, one in 3 s")
}

// TestBadInput passes invalid values. Nothing panics, and the promises hold.
func TestBadInput(t *testing.T) {
	year := 365 * 24 * time.Hour
	for name, do := range map[string]func(t *testing.T, s *scheduler.Scheduler[string]){
		"a host without a name is a host": func(t *testing.T, s *scheduler.Scheduler[string]) {
			add(t, s, job{}, job{})
			lease, _ := s.TryNext(start)
			lease.Done(scheduler.Outcome{})
			_, wait := s.TryNext(start)
			require.Equal(t, 5*time.Second, wait)
		},
		"a delay of zero or less is none": func(t *testing.T, s *scheduler.Scheduler[string]) {
			setDelay(s, "a", -year)
			setDelay(s, "a", 0)
			require.Zero(t, s.Stats().Hosts)
		},
		"the longest possible Crawl-delay": func(t *testing.T, s *scheduler.Scheduler[string]) {
			setDelay(s, "a", 1<<63-1)
			add(t, s, jobs(here, "a1", "a2", "b1")...)
			lease, _ := s.TryNext(start)
			lease.Done(scheduler.Outcome{})
			lease, _ = s.TryNext(start.Add(5 * time.Second))
			require.Equal(t, "b1", lease.Item())
			lease.Done(scheduler.Outcome{})
			_, wait := s.TryNext(start.Add(100 * year))
			require.Greater(t, wait, 100*year)
		},
		"a lease that is copied": func(t *testing.T, s *scheduler.Scheduler[string]) {
			add(t, s, jobs(here, "a1", "a2", "a3")...)
			lease, _ := s.TryNext(start)
			second := *lease
			lease.Done(scheduler.Outcome{})
			other, _ := s.TryNext(start.Add(5 * time.Second))
			second.Done(scheduler.Outcome{})
			require.Equal(t, "a2", other.Item())
			require.Equal(t, 1, s.Stats().Out)
		},
		"the clock jumps ahead by a year": func(t *testing.T, s *scheduler.Scheduler[string]) {
			add(t, s, jobs(here, "a1", "a2")...)
			lease, _ := s.TryNext(start)
			lease.Done(scheduler.Outcome{})
			lease, _ = s.TryNext(start.Add(year))
			require.Equal(t, "a2", lease.Item())
		},
		"the clock jumps back by a year": func(t *testing.T, s *scheduler.Scheduler[string]) {
			add(t, s, jobs(here, "a1", "a2")...)
			lease, _ := s.TryNext(start)
			lease.Done(scheduler.Outcome{})
			_, wait := s.TryNext(start.Add(-year))
			require.Equal(t, 5*time.Second, wait, "the latest time counts")
		},
		"an invalid address": func(t *testing.T, s *scheduler.Scheduler[string]) {
			add(t, s, jobs(netip.Addr{}, "a1", "b1")...)
			require.Equal(t, 2, s.Stats().Ready)
		},
		"a Retry-After of 300 years": func(t *testing.T, s *scheduler.Scheduler[string]) {
			add(t, s, jobs(here, "a1", "a2", "b1")...)
			lease, _ := s.TryNext(start)
			lease.Done(scheduler.Outcome{RetryAfter: start.AddDate(400, 0, 0)})
			other, _ := s.TryNext(start.Add(time.Hour))
			other.Done(scheduler.Outcome{})
			_, wait := s.TryNext(start.Add(time.Hour))
			require.Equal(t, 23*time.Hour, wait, "is obeyed for a day")
		},
		"a zero lease": func(t *testing.T, s *scheduler.Scheduler[string]) {
			var lease scheduler.Lease[string]
			lease.Done(scheduler.Outcome{})
			require.Zero(t, lease.Task())
		},
	} {
		t.Run(name, func(t *testing.T) { do(t, scheduler.New[string](scheduler.Options{})) })
	}
}

// TestManyTasksOfOneHost is a small version of BenchmarkOneHost.
func TestManyTasksOfOneHost(t *testing.T) {
	const n = 100_000
	s := scheduler.New[int32](scheduler.Options{MaxQueue: -1})
	for i := range int32(n) {
		_ = s.Add(scheduler.Task[int32]{Host: "a", Item: i, Priority: uint8(i % 8)})
	}
	_ = s.Add(scheduler.Task[int32]{Host: "b", Item: -1})
	first, _ := s.TryNext(start)
	second, _ := s.TryNext(start)
	require.EqualValues(t, 7, first.Item())
	require.EqualValues(t, -1, second.Item(), "the other host is not starved")
	second.Done(scheduler.Outcome{})
	first.Done(scheduler.Outcome{})
	for i := range int32(n - 1) {
		lease, _ := s.TryNext(start.Add(time.Duration(i+1) * scheduler.DefaultHostDelay))
		require.EqualValues(t, 7-(i+1)/(n/8), lease.Item()%8)
		lease.Done(scheduler.Outcome{})
	}
	require.Zero(t, s.Stats().Queued)
}

// TestDelayLearnedDuringARequest: it counts from the last lease that was given without it.
func TestDelayLearnedDuringARequest(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{HostDelay: -1, MaxPerHost: 4})
	add(t, s, jobs(anywhere, "a1", "a2", "a3")...)
	for _, at := range []time.Duration{0, time.Second} {
		lease, _ := s.TryNext(start.Add(at))
		require.NotNil(t, lease, "no delay yet")
	}
	setDelay(s, "a", 30*time.Second)
	_, wait := s.TryNext(start.Add(3 * time.Second))
	require.Equal(t, 28*time.Second, wait)
}
