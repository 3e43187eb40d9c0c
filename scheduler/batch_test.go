package scheduler_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/stretchr/testify/require"
)

func TestAddBatchReturnsWhatIsRefused(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{MaxQueue: 3, MaxHostQueue: 2})
	refused, err := s.AddBatch(tasks(here, "a1", "a2", "a3", "b1", "b2"))
	require.ErrorIs(t, err, scheduler.ErrHostFull)
	require.ErrorIs(t, err, scheduler.ErrFull, "a full host is full, too")
	require.Equal(t, tasks(here, "a3", "b2"), refused)

	refused, err = s.AddBatch(tasks(here, "c1"))
	require.Equal(t, scheduler.ErrFull, err)
	require.Len(t, refused, 1)
	require.Len(t, s.Drain("a"), 2)
	refused, err = s.AddBatch(refused)
	require.NoError(t, err)
	require.Empty(t, refused)
	require.Equal(t, 2, s.Stats().Queued)
}

func TestTryNextBatch(t *testing.T) {
	s := scheduler.New[string](scheduler.Options{})
	add(t, s, tasks(here, "a1", "b1")...)
	add(t, s, tasks(anywhere, "c1", "d1", "e1")...)
	leases := make([]scheduler.Lease[string], 3)
	n, wait := s.TryNextBatch(start, leases)
	require.Equal(t, 3, n)
	require.Zero(t, wait)
	old := leases[0] // a copy is the same lease
	for i := range leases {
		leases[i].Done(scheduler.Outcome{})
	}
	n, wait = s.TryNextBatch(start, leases)
	require.Equal(t, 1, n, "b waits for the address")
	require.Zero(t, wait)
	leases[0].Done(scheduler.Outcome{})
	old.Done(scheduler.Outcome{Skipped: true})

	n, wait = s.TryNextBatch(start, leases)
	require.Zero(t, n)
	require.Equal(t, 5*time.Second, wait)
	n, _ = s.TryNextBatch(start, nil)
	require.Zero(t, n)
}

func TestNextBatchWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New[string](scheduler.Options{})
		add(t, s, tasks(anywhere, "a1", "b1", "a2", "b2")...)
		begin, leases := time.Now(), make([]scheduler.Lease[string], 10)
		for _, want := range []time.Duration{0, 5 * time.Second} {
			n, err := s.NextBatch(t.Context(), leases)
			require.NoError(t, err)
			require.Equal(t, 2, n)
			require.Equal(t, want, time.Since(begin))
			for i := range n {
				leases[i].Done(scheduler.Outcome{})
			}
		}
		n, err := s.NextBatch(t.Context(), leases)
		require.ErrorIs(t, err, scheduler.ErrDrained)
		require.Zero(t, n)
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New[string](scheduler.Options{})
		add(t, s, tasks(here, "a1", "a2", "b1")...)
		out := next(t, s)
		one, other := background(t.Context(), s), background(t.Context(), s)
		time.Sleep(time.Second)
		s.Close()
		s.Close()
		want := result{err: scheduler.ErrClosed, after: time.Second}
		require.Equal(t, want, <-one)
		require.Equal(t, want, <-other)

		require.ErrorIs(t, s.Add(tasks(there, "c1")[0]), scheduler.ErrClosed)
		refused, err := s.AddBatch(tasks(there, "c1"))
		require.ErrorIs(t, err, scheduler.ErrClosed)
		require.Len(t, refused, 1)
		lease, wait := s.TryNext(time.Now().Add(time.Hour))
		require.Nil(t, lease)
		require.Equal(t, scheduler.Forever, wait)

		out.Done(scheduler.Outcome{Status: 503})
		require.Equal(t, 1, s.Explain("a").Failures, "the visit counts")
		require.Len(t, s.Drain("a"), 1, "and what is queued can be had")
		require.Len(t, s.Drain("b"), 1)
	})
}

func TestDrainMovesAHost(t *testing.T) {
	from := scheduler.New[string](scheduler.Options{})
	to := scheduler.New[string](scheduler.Options{})
	queue := grouped("g", tasks(here, "a1", "a2", "a3"))
	queue[1].Priority, queue[2].NotBefore = 3, start.Add(time.Hour)
	add(t, from, queue...)
	add(t, from, tasks(here, "b1")...)
	lease, _ := from.TryNext(start)
	require.Equal(t, "a2", lease.Item())

	moved := from.Drain("a")
	require.Equal(t, queue[0], moved[0])
	require.True(t, queue[2].NotBefore.Equal(moved[1].NotBefore))
	require.Nil(t, from.Drain("unknown"))
	require.Empty(t, from.Drain("a"))
	refused, err := to.AddBatch(moved)
	require.NoError(t, err)
	require.Empty(t, refused)

	lease.Done(scheduler.Outcome{})
	lease, _ = from.TryNext(start.Add(5 * time.Second))
	require.Equal(t, "b1", lease.Item(), "the lease of a has kept its address")
	lease, _ = to.TryNext(start)
	require.Equal(t, "a1", lease.Item())
}
