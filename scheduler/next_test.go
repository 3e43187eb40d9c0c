package scheduler_test

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A script is a crawl with one worker, whose visits take no time unless visit says so.
type script struct {
	opts  scheduler.Options
	tasks []scheduler.Task[string]
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
		for _, task := range c.tasks {
			require.NoError(t, s.Add(task))
		}
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

// tasks makes tasks of items such as "a1", for host "a", that all go to one address.
func tasks(addr netip.Addr, items ...string) (tasks []scheduler.Task[string]) {
	for _, item := range items {
		tasks = append(tasks, scheduler.Task[string]{Host: item[:1], Addr: addr, Item: item})
	}
	return tasks
}

// at gives a task another address.
func at(addr netip.Addr, t scheduler.Task[string]) scheduler.Task[string] {
	t.Addr = addr
	return t
}

var (
	anywhere    netip.Addr
	here, there = ip(1), ip(2)
)

func TestNextKeepsDelays(t *testing.T) {
	second := scheduler.Options{HostDelay: 5 * time.Second, AddrDelay: time.Second}
	for name, tt := range map[string]struct {
		script
		want []string
	}{
		"visits to one host are five seconds apart by default": {
			script{tasks: tasks(anywhere, "a1", "a2", "a3")},
			[]string{"0s a1", "5s a2", "10s a3"},
		},
		"visits to one address are as far apart by default, and hosts take turns": {
			script{tasks: tasks(here, "a1", "a2", "a3", "b1", "b2", "c1")},
			[]string{"0s a1", "5s b1", "10s c1", "15s a2", "20s b2", "25s a3"},
		},
		"hosts of unknown address do not know of each other": {
			script{tasks: tasks(anywhere, "a1", "a2", "b1", "b2")},
			[]string{"0s a1", "0s b1", "5s a2", "5s b2"},
		},
		"both delays hold where both apply": {
			script{opts: second, tasks: tasks(here, "a1", "a2", "b1", "b2")},
			[]string{"0s a1", "1s b1", "5s a2", "6s b2"},
		},
		"the address of the task counts, not the one that the host had before": {
			script{
				opts:  second,
				tasks: append(tasks(here, "a1", "b1"), tasks(there, "c1", "a2")...),
			},
			[]string{"0s a1", "0s c1", "1s b1", "5s a2"},
		},
		"a host that moves waits for its new address": {
			script{
				opts: scheduler.Options{HostDelay: time.Second, AddrDelay: 5 * time.Second},
				tasks: []scheduler.Task[string]{
					at(here, tasks(here, "a1")[0]),
					at(there, tasks(here, "a2")[0]),
					at(there, tasks(here, "b1")[0]),
				},
			},
			[]string{"0s a1", "0s b1", "5s a2"},
		},
		"an address mapped into IPv6 is the same address": {
			script{tasks: append(tasks(here, "a1"),
				tasks(netip.AddrFrom16(here.As16()), "b1")...)},
			[]string{"0s a1", "5s b1"},
		},
		"negative delays are none": {
			script{
				opts:  scheduler.Options{HostDelay: -1, AddrDelay: -1},
				tasks: tasks(here, "a1", "a2", "b1"),
			},
			[]string{"0s a1", "0s b1", "0s a2"},
		},
		"an address may have a delay where hosts have none": {
			script{
				opts:  scheduler.Options{HostDelay: -1, AddrDelay: time.Second},
				tasks: tasks(here, "a1", "a2", "b1"),
			},
			[]string{"0s a1", "1s b1", "2s a2"},
		},
		"no delay of hosts means none of addresses either, by default": {
			script{opts: scheduler.Options{HostDelay: -1}, tasks: tasks(here, "a1", "a2", "b1")},
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
	items := tasks(here, "a1", "a2")
	for name, tt := range map[string]struct {
		script
		want string // the time of a2
	}{
		"delays count from the lease, not from its end": {
			script{visit: sleeps(3 * time.Second)}, "5s",
		},
		"a visit longer than the delay delays by its length": {
			script{visit: sleeps(7 * time.Second)}, "7s",
		},
		"delays count from the start, if told": {script{visit: func(string) scheduler.Outcome {
			time.Sleep(3 * time.Second)
			start := time.Now()
			time.Sleep(time.Second)
			return scheduler.Outcome{Start: start}
		}}, "8s"},
		"a start before the lease is not believed": {script{visit: func(string) scheduler.Outcome {
			return scheduler.Outcome{Start: time.Now().Add(-time.Hour)}
		}}, "5s"},
		"a start that has not come yet is": {script{visit: func(string) scheduler.Outcome {
			return scheduler.Outcome{Start: time.Now().Add(time.Hour)}
		}}, "1h0m5s"},
		"a low latency changes nothing":       {script{visit: took(time.Second)}, "5s"},
		"a high latency delays by five times": {script{visit: took(2 * time.Second)}, "10s"},
		"the factor may be another": {script{
			opts: scheduler.Options{LatencyFactor: 2.5}, visit: took(4 * time.Second),
		}, "10s"},
		"the factor may be off": {script{
			opts: scheduler.Options{LatencyFactor: -1}, visit: took(time.Hour),
		}, "5s"},
		"a negative latency changes nothing": {script{visit: took(-time.Hour)}, "5s"},
		"a skipped visit is none": {script{visit: func(string) scheduler.Outcome {
			return scheduler.Outcome{Skipped: true, Took: time.Hour, Start: time.Now()}
		}}, "0s"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.tasks = items
			require.Equal(t, []string{"0s a1", tt.want + " a2"}, tt.run(t))
		})
	}
}

func TestLatencySlowsTheHostAndNotItsAddress(t *testing.T) {
	got := script{
		tasks: tasks(here, "a1", "a2", "b1"),
		visit: func(string) scheduler.Outcome { return scheduler.Outcome{Took: time.Minute} },
	}.run(t)
	require.Equal(t, []string{"0s a1", "5s b1", "5m0s a2"}, got)
}

func TestNotBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := scheduler.New[string](scheduler.Options{})
		for i, after := range []time.Duration{12345678901, 0, -time.Hour} {
			require.NoError(t, s.Add(scheduler.Task[string]{
				Host: "a", NotBefore: start.Add(after), Item: fmt.Sprint(i),
			}))
		}
		for i, want := range []time.Duration{12345678901, 17345678901, 22345678901} {
			lease, err := s.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, time.Since(start), "tasks of a host keep their order")
			require.Equal(t, fmt.Sprint(i), lease.Item())
			lease.Done(scheduler.Outcome{})
		}
	})
}

func TestSetDelay(t *testing.T) {
	set := func(d ...time.Duration) func(*scheduler.Scheduler[string], time.Time) {
		return func(s *scheduler.Scheduler[string], _ time.Time) {
			for _, d := range d {
				s.SetDelay("a", d)
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
		"a shorter delay is not taken": {
			set(time.Second), []string{"0s a1", "5s b1", "10s a2", "15s b2"},
		},
		"the last delay replaces those before": {
			set(time.Hour, 12*time.Second), []string{"0s a1", "5s b1", "10s b2", "15s a2"},
		},
		"zero takes it back": {
			set(time.Hour, 0), []string{"0s a1", "5s b1", "10s a2", "15s b2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := script{tasks: tasks(here, "a1", "a2", "b1", "b2"), prepare: tt.prepare}.run(t)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestSetDelayWhileLeased(t *testing.T) {
	var s *scheduler.Scheduler[string]
	got := script{
		tasks:   tasks(here, "a1", "a2", "b1"),
		prepare: func(it *scheduler.Scheduler[string], _ time.Time) { s = it },
		visit: func(string) scheduler.Outcome {
			s.SetDelay("a", time.Minute)
			return scheduler.Outcome{}
		},
	}.run(t)
	require.Equal(t, []string{"0s a1", "5s b1", "1m0s a2"}, got)
}

// TestWorkersShareTheWork has more workers than hosts, so that most wait at any time: that no
// wake-up is lost and no lease comes late shows in the exact times.
func TestWorkersShareTheWork(t *testing.T) {
	const workers, hosts, rounds = 50, 20, 10
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := scheduler.New[time.Duration](scheduler.Options{})
		for i := range hosts * rounds {
			require.NoError(t, s.Add(scheduler.Task[time.Duration]{
				Host: fmt.Sprint(i % hosts), Addr: ip(i % hosts),
				Item: time.Duration(i/hosts) * 5 * time.Second,
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

// result is what a Next in another goroutine returned, and when.
type result struct {
	item  string
	err   error
	after time.Duration
}

// background calls Next in a goroutine and gives each lease back at once.
func background(ctx context.Context, s *scheduler.Scheduler[string]) <-chan result {
	start, results := time.Now(), make(chan result, 1)
	go func() {
		lease, err := s.Next(ctx)
		r := result{err: err, after: time.Since(start)}
		if lease != nil {
			r.item = lease.Item()
			lease.Done(scheduler.Outcome{})
		}
		results <- r
	}()
	synctest.Wait()
	return results
}
