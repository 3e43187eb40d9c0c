package scheduler_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/stretchr/testify/require"
)

// TestExplain asks about host a, of which a0 was leased at the start, one second later.
func TestExplain(t *testing.T) {
	const s = time.Second
	base := []scheduler.Task[string]{at(here, tasks(anywhere, "a0")[0])}
	for name, tt := range map[string]struct {
		opts    scheduler.Options
		queued  []scheduler.Task[string]
		setting time.Duration
		outcome *scheduler.Outcome
		rule    scheduler.Rule
		want    string
	}{
		"a host with nothing queued": {
			outcome: &scheduler.Outcome{}, want: "has nothing queued",
		},
		"a host that is leased": {
			queued: tasks(here, "a1"), rule: scheduler.RuleLease,
			want: "waits for its lease that is out since 2026-01-01 00:00:00.000, 1 tasks queued",
		},
		"the delay of a host": {
			queued: tasks(here, "a1", "a2"), outcome: &scheduler.Outcome{}, rule: scheduler.RuleHostDelay,
			want: "waits for the delay of a host until 2026-01-01 00:00:05.000, 2 tasks queued",
		},
		"a Crawl-delay": {
			queued: tasks(here, "a1"), setting: time.Minute, outcome: &scheduler.Outcome{},
			rule: scheduler.RuleCrawlDelay,
			want: "waits for its Crawl-delay until 2026-01-01 00:01:00.000, 1 tasks queued",
		},
		"a latency": {
			queued: tasks(here, "a1"), outcome: &scheduler.Outcome{Took: 2 * s}, rule: scheduler.RuleLatency,
			want: "waits for its latency until 2026-01-01 00:00:10.000, 1 tasks queued",
		},
		"a back-off": {
			queued: tasks(here, "a1"), outcome: &scheduler.Outcome{Status: 503}, rule: scheduler.RuleBackoff,
			want: "waits for its back-off until 2026-01-01 00:00:30.000, 1 tasks queued",
		},
		"a Retry-After": {
			queued: tasks(here, "a1"), outcome: &scheduler.Outcome{RetryAfter: start.Add(9 * s)},
			rule: scheduler.RuleRetryAfter,
			want: "waits for its Retry-After until 2026-01-01 00:00:09.000, 1 tasks queued",
		},
		"the time of a task": {
			queued:  []scheduler.Task[string]{{Host: "a", NotBefore: start.Add(7 * s)}},
			outcome: &scheduler.Outcome{}, rule: scheduler.RuleNotBefore,
			want: "waits for the time of its task until 2026-01-01 00:00:07.000, 1 tasks queued",
		},
		"the delay of an address": {
			opts:   scheduler.Options{HostDelay: -1, AddrDelay: 5 * s},
			queued: tasks(here, "a1", "b1", "c1"), outcome: &scheduler.Outcome{},
			rule: scheduler.RuleAddrDelay,
			want: "waits for the delay of its address 10.0.0.1, in line with 2 other hosts, " +
				"until 2026-01-01 00:00:05.000, 1 tasks queued",
		},
		"the back-off of an address": {
			opts:   scheduler.Options{HostDelay: -1, AddrDelay: 5 * s, Backoff: 1, MaxBackoff: time.Hour},
			queued: tasks(here, "a1"), outcome: &scheduler.Outcome{Failed: true},
			rule: scheduler.RuleAddrBackoff,
			want: "waits for the back-off of its address 10.0.0.1 until 2026-01-01 00:00:10.000, " +
				"1 tasks queued",
		},
		"a host that is ready": {
			opts: scheduler.Options{HostDelay: -1}, queued: tasks(here, "a1"),
			outcome: &scheduler.Outcome{}, want: "is ready, 1 tasks queued",
		},
	} {
		t.Run(name, func(t *testing.T) {
			sched := scheduler.New[string](tt.opts)
			sched.SetDelay("a", tt.setting)
			add(t, sched, base...)
			lease, _ := sched.TryNext(start)
			add(t, sched, tt.queued...)
			if tt.outcome != nil {
				lease.Done(*tt.outcome)
			}
			if tt.want[:8] != "is ready" {
				got, _ := sched.TryNext(start.Add(s))
				require.Nil(t, got)
			}
			got := sched.Explain("a")
			require.Equal(t, tt.want, inUTC(got).String())
			require.Equal(t, tt.rule, got.Rule)
		})
	}
}

// inUTC makes the words of a Reason the same on every machine.
func inUTC(r scheduler.Reason) scheduler.Reason {
	r.Since, r.Until = r.Since.UTC(), r.Until.UTC()
	return r
}

func TestExplainWhatOthersDo(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{})
	add(t, s, tasks(here, "a1", "b1")...)
	add(t, s, grouped("g", tasks(there, "c1"))...)
	add(t, s, grouped("g", tasks(anywhere, "d1"))...)
	add(t, s, tasks(ip(3), "e1", "f1")...)
	s.TryNext(start)
	s.TryNext(start)
	for host, want := range map[string]string{
		"b": "waits for the lease of its address 10.0.0.1 that is out since 2026-01-01 00:00:00.000, " +
			"1 tasks queued",
		"d": `waits for the lease of its group "g" that is out since 2026-01-01 00:00:00.000, ` +
			"1 tasks queued",
		"e": "is ready, 1 tasks queued",
		"f": "waits for its turn, in line with 1 other hosts, 1 tasks queued",
		"x": "is not known",
	} {
		require.Equal(t, want, inUTC(s.Explain(host)).String())
	}
	require.Equal(t, "Rule(200)", scheduler.Rule(200).String())
	require.Equal(t, "nothing", scheduler.NoRule.String())
}

func TestHosts(t *testing.T) {
	s := scheduler.New[int](scheduler.Options{})
	for i := range 1000 {
		require.NoError(t, s.Add(scheduler.Task[int]{Host: fmt.Sprint(i), Addr: ip(i), Group: "g"}))
	}
	all := maps.Collect(s.Hosts())
	require.Len(t, all, 1000)
	for host, reason := range all {
		require.Equal(t, s.Explain(host), reason)
	}
	for host := range s.Hosts() { // a walk may end, and the Scheduler be used meanwhile
		require.Len(t, s.Drain(host), 1)
		break
	}
	for host := range s.Hosts() {
		s.Drain(host)
	}
	require.Zero(t, s.Stats().Queued)
}

// TestLoad adds tasks for a host at twice the rate that its delay admits, for ten minutes.
func TestLoad(t *testing.T) {
	s := scheduler.New[int](scheduler.Options{})
	now := start
	s.TryNext(now)
	for ; now.Before(start.Add(10 * time.Minute)); now = now.Add(2500 * time.Millisecond) {
		require.NoError(t, s.Add(scheduler.Task[int]{Host: "a", Addr: here}))
		if lease, _ := s.TryNext(now); lease != nil {
			lease.Done(scheduler.Outcome{})
		}
	}
	r := s.Explain("a")
	require.Equal(t, 5*time.Second, r.Pace)
	require.InDelta(t, 2, r.Load(0), 0.05)
	require.InDelta(t, float64(r.Queued)*5/3600, r.Load(time.Hour), 1e-9, "a burst counts for longer")
	require.Zero(t, scheduler.Reason{}.Load(0))
}

// TestLoadOfASharedAddress has hosts that get a share each of what their address admits.
func TestLoadOfASharedAddress(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{})
	add(t, s, tasks(here, "a", "b", "c", "d", "e")...)
	lease, _ := s.TryNext(start)
	lease.Done(scheduler.Outcome{})
	require.Equal(t, 20*time.Second, s.Explain("b").Pace, "four are in line")
}

// TestStatsOfADrainedHost has the turn of an address left over, to which nobody wants to go.
func TestStatsOfADrainedHost(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{})
	add(t, s, tasks(here, "a1")...)
	require.Len(t, s.Drain("a"), 1)
	st := s.Stats()
	require.Zero(t, st.Ready)
	require.Zero(t, st.Waiting)
	s.TryNext(start)
	require.Equal(t, scheduler.Stats{Addrs: 1}, s.Stats())
}

func TestStatsOfReasons(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{AddrDelay: time.Second})
	add(t, s, tasks(here, "a1", "a2", "b1")...)
	for _, now := range []time.Duration{
		0,                                 // a1 waited for nothing
		time.Second + 50*time.Millisecond, // b1 for its address, 50 ms late
		65 * time.Second,                  // a2 for its own delay, a minute late
	} {
		lease, _ := s.TryNext(start.Add(now))
		lease.Done(scheduler.Outcome{})
	}
	st := s.Stats()
	require.EqualValues(t, 1, st.WaitedFor[scheduler.NoRule])
	require.EqualValues(t, 1, st.WaitedFor[scheduler.RuleAddrDelay])
	require.EqualValues(t, 1, st.WaitedFor[scheduler.RuleHostDelay])
	require.Equal(t, [6]int64{0, 0, 1, 0, 0, 1}, st.Lateness)
}
