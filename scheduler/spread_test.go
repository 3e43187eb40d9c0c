package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/scheduler"
)

// TestPausesAreSpread: no two hosts or Schedulers come back at the same time, and none too early.
func TestPausesAreSpread(t *testing.T) {
	scheduler.Spread(true)
	defer scheduler.Spread(false)
	for name, o := range map[string]scheduler.Outcome{
		"back-off":    {Failed: true},
		"Retry-After": {RetryAfter: start.Add(30 * time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			seen := map[time.Duration]bool{}
			for range 10 {
				s := scheduler.New[string](scheduler.Options{})
				for i := range 100 {
					host := fmt.Sprint(i)
					require.NoError(t, s.Add(scheduler.Task[string]{Host: host}))
					lease, _ := s.TryNext(start)
					require.Equal(t, host, lease.Host())
					lease.Done(o)
					require.NoError(t, s.Add(scheduler.Task[string]{Host: host}))
					wait := s.Explain(host).Until.Sub(start)
					require.GreaterOrEqual(t, wait, 30*time.Second)
					require.LessOrEqual(t, wait, 33*time.Second)
					seen[wait] = true
				}
				time.Sleep(time.Microsecond) // the next one differs
			}
			require.Greater(t, len(seen), 900)
		})
	}
}

// TestHearsay: an address closes for as long as the evidence suggests.
func TestHearsay(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{})
	tomorrow := start.Add(24 * time.Hour)
	add(t, s, notBefore(tomorrow, jobs(here, "y1"))...) // an address without tasks is forgotten
	now := start
	visit := func(host string, o scheduler.Outcome) (closed time.Duration) {
		add(t, s, jobs(here, host+"1")...)
		lease, wait := s.TryNext(now)
		if lease == nil {
			now = now.Add(wait)
			lease, _ = s.TryNext(now)
		}
		require.Equal(t, host, lease.Host())
		lease.Done(o)
		add(t, s, jobs(here, "z1")...)
		lease, wait = s.TryNext(now)
		require.Nil(t, lease)
		now = now.Add(wait)
		lease, _ = s.TryNext(now)
		lease.Done(scheduler.Outcome{Skipped: true})
		return wait
	}
	busy := scheduler.Outcome{Status: 503, RetryAfter: tomorrow}
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 32} {
		require.Equal(t, want*time.Minute, visit(string(rune('a'+i)), busy))
	}
	require.LessOrEqual(t, visit("m", scheduler.Outcome{}), time.Minute)
	require.Equal(t, 8*time.Minute, visit("n", busy), "the successful visit counts")
}
