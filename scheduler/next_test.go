package scheduler_test

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A script is a crawl with one worker. Visits take no time unless visit advances it.
type script struct {
	opts  scheduler.Options
	tasks []job
	// prepare is called before the tasks are added, at time 0.
	prepare func(s *scheduler.Scheduler[string], start time.Time)
	visit   func(item string) scheduler.Outcome
}

// run returns the time and the item of every lease.
func (c script) run(t *testing.T) (visits []string) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := scheduler.New[string](c.opts)
		if c.prepare != nil {
			c.prepare(s, start)
		}
		add(t, s, c.tasks...)
		for {
			lease, err := s.Next(t.Context())
			if err != nil {
				require.ErrorIs(t, err, scheduler.ErrDrained)
				return
			}
			visits = append(visits, fmt.Sprint(time.Since(start), " ", lease.Item()))
			var o scheduler.Outcome
			if c.visit != nil {
				o = c.visit(lease.Item())
			}
			lease.Done(o)
		}
	})
	return visits
}

func TestNextKeepsDelays(t *testing.T) {
	second := scheduler.Options{HostDelay: 5 * time.Second, AddrDelay: time.Second}
	for name, tt := range map[string]struct {
		script
		want []string
	}{
		"visits to one host are five seconds apart by default": {
			script{tasks: jobs(anywhere, "a1", "a2", "a3")},
			[]string{"0s a1", "5s a2", "10s a3"},
		},
		"so are visits to one address, and hosts take turns": {
			script{tasks: jobs(here, "a1", "a2", "a3", "b1", "b2", "c1")},
			[]string{"0s a1", "5s b1", "10s c1", "15s a2", "20s b2", "25s a3"},
		},
		"hosts with unknown addresses are independent": {
			script{tasks: jobs(anywhere, "a1", "a2", "b1", "b2")},
			[]string{"0s a1", "0s b1", "5s a2", "5s b2"},
		},
		"both delays apply": {
			script{opts: second, tasks: jobs(here, "a1", "a2", "b1", "b2")},
			[]string{"0s a1", "1s b1", "5s a2", "6s b2"},
		},
		"an address also applies to tasks queued before it was known": {
			script{
				opts:  second,
				tasks: append(jobs(anywhere, "a1", "b1"), jobs(here, "b2", "a2")...),
			},
			[]string{"0s b1", "1s a1", "5s b2", "6s a2"},
		},
		"a host that moves waits for its new address": {
			script{
				opts:  scheduler.Options{HostDelay: time.Second, AddrDelay: 5 * time.Second},
				tasks: append(jobs(here, "a1"), jobs(there, "a2", "b1")...),
			},
			[]string{"0s a1", "5s b1", "10s a2"},
		},
		"an address mapped into IPv6 is the same address": {
			script{tasks: append(jobs(here, "a1"),
				jobs(netip.AddrFrom16(here.As16()), "b1")...)},
			[]string{"0s a1", "5s b1"},
		},
		"negative delays mean no delay": {
			script{
				opts:  scheduler.Options{HostDelay: -1, AddrDelay: -1},
				tasks: jobs(here, "a1", "a2", "b1"),
			},
			[]string{"0s a1", "0s b1", "0s a2"},
		},
		"an address may have a delay when hosts have none": {
			script{
				opts:  scheduler.Options{HostDelay: -1, AddrDelay: time.Second},
				tasks: jobs(here, "a1", "a2", "b1"),
			},
			[]string{"0s a1", "1s b1", "2s a2"},
		},
		"no delay for hosts means none for addresses either, by default": {
			script{opts: scheduler.Options{HostDelay: -1}, tasks: jobs(here, "a1", "a2", "b1")},
			[]string{"0s a1", "0s b1", "0s a2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, tt.run(t))
		})
	}
}

func TestOutcomeSetsTheNextTime(t *testing.T) {
	took := func(d time.Duration) func(string) scheduler.Outcome {
		return func(string) scheduler.Outcome { return scheduler.Outcome{Took: d} }
	}
	sleeps := func(d time.Duration) func(string) scheduler.Outcome {
		return func(string) scheduler.Outcome { time.Sleep(d); return scheduler.Outcome{} }
	}
	items := jobs(here, "a1", "a2")
	for name, tt := range map[string]struct {
		script
		want string // the time of a2
	}{
		"delays count from the lease, not from its end": {
			script{visit: sleeps(3 * time.Second)}, "5s",
		},
		"a long visit delays the next one until its end": {
			script{visit: sleeps(7 * time.Second)}, "7s",
		},
		"delays count from the start, if given": {script{visit: func(string) scheduler.Outcome {
			time.Sleep(3 * time.Second)
			start := time.Now()
			time.Sleep(time.Second)
			return scheduler.Outcome{Start: start}
		}}, "8s"},
		"a start before the lease is ignored": {script{visit: func(string) scheduler.Outcome {
			return scheduler.Outcome{Start: time.Now().Add(-time.Hour)}
		}}, "5s"},
		"a start in the future is not": {script{visit: func(string) scheduler.Outcome {
			return scheduler.Outcome{Start: time.Now().Add(time.Hour)}
		}}, "1h0m5s"},
		"a low latency changes nothing":       {script{visit: took(time.Second)}, "5s"},
		"a high latency delays by five times": {script{visit: took(2 * time.Second)}, "10s"},
		"the factor is configurable": {script{
			opts: scheduler.Options{LatencyFactor: 2.5}, visit: took(4 * time.Second),
		}, "10s"},
		"the factor can be disabled": {script{
			opts: scheduler.Options{LatencyFactor: -1}, visit: took(time.Hour),
		}, "5s"},
		"a negative latency changes nothing": {script{visit: took(-time.Hour)}, "5s"},
		"a skipped visit does not count": {script{visit: func(string) scheduler.Outcome {
			return scheduler.Outcome{Skipped: true, Took: time.Hour, Start: time.Now()}
		}}, "0s"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.tasks = items
			require.Equal(t, []string{"0s a1", tt.want + " a2"}, tt.run(t))
		})
	}
}

// TestLatencyOfAnAddress: one slow page of one host does not slow down its address.
func TestLatencyOfAnAddress(t *testing.T) {
	slow := func(items ...string) func(string) scheduler.Outcome {
		return func(item string) (o scheduler.Outcome) {
			if slices.Contains(items, item) {
				o.Took = time.Minute
			}
			return o
		}
	}
	for name, tt := range map[string]struct {
		visit func(string) scheduler.Outcome
		want  []string
	}{
		"one": {slow("a1"), []string{"0s a1", "5s b1", "10s c1", "15s d1", "20s e1"}},
		"two in a row": {
			slow("a1", "b1"), []string{"0s a1", "5s b1", "10s c1", "15s d1", "20s e1"},
		},
		"three in a row": {
			slow("b1", "c1", "d1"), []string{"0s a1", "5s b1", "10s c1", "15s d1", "5m15s e1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := script{tasks: jobs(here, "a1", "b1", "c1", "d1", "e1"), visit: tt.visit}.run(t)
			require.Equal(t, tt.want, got)
		})
	}
}

// TestNotBefore has three tasks of a host, the first of which is deferred.
func TestNotBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := scheduler.New[string](scheduler.Options{})
		s.TryNext(start) // sets the current time
		for i, after := range []time.Duration{12345678901, 0, -time.Hour} {
			require.NoError(t, s.Add(scheduler.Task[string]{
				Host: "a", NotBefore: start.Add(after), Item: fmt.Sprint(i),
			}))
		}
		for i, want := range []time.Duration{0, 5 * time.Second, 12345678901} {
			lease, err := s.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, time.Since(start), "it does not delay the others")
			require.Equal(t, fmt.Sprint((i+1)%3), lease.Item())
			lease.Done(scheduler.Outcome{})
		}
	})
}

func TestDelayOfAHost(t *testing.T) {
	set := func(d ...time.Duration) func(*scheduler.Scheduler[string], time.Time) {
		return func(s *scheduler.Scheduler[string], _ time.Time) {
			for _, d := range d {
				setDelay(s, "a", d)
			}
		}
	}
	for name, tt := range map[string]struct {
		prepare func(*scheduler.Scheduler[string], time.Time)
		want    []string
	}{
		"a longer delay slows that host only": {
			set(time.Minute), []string{"0s a1", "5s b1", "10s b2", "1m0s a2"},
		},
		"a shorter delay is ignored": {
			set(time.Second), []string{"0s a1", "5s b1", "10s a2", "15s b2"},
		},
		"the last delay replaces earlier ones": {
			set(time.Hour, 12*time.Second), []string{"0s a1", "5s b1", "10s b2", "15s a2"},
		},
		"a negative one cancels it": {
			set(time.Hour, -1), []string{"0s a1", "5s b1", "10s a2", "15s b2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := script{tasks: jobs(here, "a1", "a2", "b1", "b2"), prepare: tt.prepare}.run(t)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestDelayOfALeasedHost(t *testing.T) {
	var s *scheduler.Scheduler[string]
	got := script{
		tasks:   jobs(here, "a1", "a2", "b1"),
		prepare: func(it *scheduler.Scheduler[string], _ time.Time) { s = it },
		visit: func(string) scheduler.Outcome {
			setDelay(s, "a", time.Minute)
			return scheduler.Outcome{}
		},
	}.run(t)
	require.Equal(t, []string{"0s a1", "5s b1", "1m0s a2"}, got)
}

// TestWorkersShareTheWork has more workers than hosts, so that most of them wait. The exact times
// show that no wake-up is lost and no lease is late.
func TestWorkersShareTheWork(t *testing.T) {
	const workers, hosts, rounds = 50, 20, 10
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := scheduler.New[time.Duration](scheduler.Options{})
		for i := range hosts * rounds {
			host := fmt.Sprint(i % hosts)
			s.SetHost(host, scheduler.Host{Addr: ip(i % hosts)})
			require.NoError(t, s.Add(scheduler.Task[time.Duration]{
				Host: host, Item: time.Duration(i/hosts) * 5 * time.Second,
			}))
		}
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for {
					lease, err := s.Next(t.Context())
					if err != nil {
						assert.ErrorIs(t, err, scheduler.ErrDrained)
						return
					}
					if got := time.Since(start); got != lease.Item() {
						t.Errorf("host %s: lease at %v, want %v", lease.Host(), got, lease.Item())
					}
					time.Sleep(time.Second)
					lease.Done(scheduler.Outcome{})
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, hosts*rounds, s.Stats().Given)
	})
}
