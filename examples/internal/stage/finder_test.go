package stage

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// answers returns a Finder whose lookups take a second, except for dead hosts, which never answer.
func answers(room int, dead func(host string) bool) *Finder {
	return NewFinder(func(ctx context.Context, host string) (netip.Addr, error) {
		if dead(host) {
			<-ctx.Done()
			return netip.Addr{}, context.Cause(ctx)
		}
		time.Sleep(time.Second)
		return netip.MustParseAddr("192.0.2.1"), nil
	}, func() func() { return func() {} }, room)
}

// TestDeadNameServerDelaysOnlyItsHosts: an owner with a thousand names has at most eight lookups at
// a time, and the names of others do not wait for them.
func TestDeadNameServerDelaysOnlyItsHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := answers(1<<20, func(host string) bool { return host != "honest.org" })
		var failed []time.Duration
		results := make(chan Finding)
		for n := range 4 * ownerLookups {
			require.True(t, f.Find(t.Context(), fmt.Sprintf("h%d.dead.org", n), false, func(r Finding) { results <- r }))
		}
		require.True(t, f.Find(t.Context(), "honest.org", false, func(r Finding) {
			require.NoError(t, r.Err)
			require.Equal(t, time.Second, time.Since(start))
		}))
		for range 4 * ownerLookups {
			r := <-results
			require.ErrorIs(t, r.Err, context.DeadlineExceeded)
			require.Equal(t, start, r.Began)
			failed = append(failed, time.Since(start))
		}
		for n, at := range failed {
			require.Equal(t, time.Duration(n/ownerLookups+1)*lookupTimeout, at)
		}
		f.Wait()
		require.Empty(t, f.searches)
		require.Empty(t, f.owners)
		require.Zero(t, f.waiting)
	})
}

// TestKnownHostsDoNotWaitForNewOnes whose name servers are dead, however many owners these have.
func TestKnownHostsDoNotWaitForNewOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := answers(1<<20, func(host string) bool { return host != "known.org" && host != "new.org" })
		for n := range 2 * newLookups {
			require.True(t, f.Find(t.Context(), fmt.Sprintf("dead%d.org", n), false, func(Finding) {}))
		}
		synctest.Wait()
		done := make(chan struct{})
		require.True(t, f.Find(t.Context(), "new.org", false, func(r Finding) {
			require.NoError(t, r.Err)
			require.Equal(t, 2*lookupTimeout+time.Second, time.Since(start), "it waits for earlier lookups")
			close(done)
		}))
		slow := 0
		r := f.Addr(t.Context(), "known.org", func() { slow++ })
		require.NoError(t, r.Err)
		require.Equal(t, time.Second, time.Since(start))
		<-done
		f.Wait()
	})
}

// TestFinderHasBounds: of hosts, and of the items that wait for them.
func TestFinderHasBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := answers(ownerShare*4, func(string) bool { return true })
		find := func(host string, known bool) bool { return f.Find(t.Context(), host, known, func(Finding) {}) }
		for n := range 4 {
			require.True(t, find("a.one.org", false), n)
		}
		require.False(t, find("a.one.org", false), "the room of an owner is bounded")
		require.False(t, find("b.one.org", false))
		for n := range ownerShare*4/waitShare - 4 {
			require.True(t, find(fmt.Sprintf("dead%d.org", n), false), n)
		}
		require.False(t, find("two.org", false), "the room of all owners is bounded")
		require.True(t, find("b.one.org", true), "except for hosts that were found before")
		for n := len(f.searches); n < maxSearches; n++ {
			require.True(t, find(fmt.Sprintf("known%d.org", n), true))
		}
		require.False(t, find("known.org", true))
		require.ErrorIs(t, f.Addr(t.Context(), "known.org", nil).Err, ErrManyLookups)
		f.Wait()
		require.True(t, find("two.org", false))
		f.Wait()
	})
}

// TestSlowLookup: slow is called once, and the lookup ends with the crawl.
func TestSlowLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := 0
		f := answers(100, func(string) bool { return true })
		f.hold = func() func() { held++; return func() { held-- } }
		start, slow := time.Now(), []time.Duration(nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := errors.New("the crawl ends")
		time.AfterFunc(10*time.Second, func() { cancel(ended) })
		time.AfterFunc(5*time.Second, func() {
			began, searching := f.Since("dead.org")
			require.True(t, searching)
			require.Equal(t, start, began)
			require.Equal(t, 1, f.Len())
		})
		r := f.Addr(ctx, "dead.org", func() { slow = append(slow, time.Since(start)) })
		require.ErrorIs(t, r.Err, ended)
		require.Equal(t, 10*time.Second, time.Since(start))
		require.True(t, slices.Equal(slow, []time.Duration{patience}), slow)
		f.Wait()
		require.Zero(t, held)
		_, searching := f.Since("dead.org")
		require.False(t, searching)
	})
}

// TestALookupDuringASleep is repeated, as nobody is to blame for it.
func TestALookupDuringASleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for passed, want := range map[time.Duration]int{lookupTimeout: 1, time.Hour: 2} {
			lookups := 0
			err := NewLookups().Do(t.Context(), "a.test", true, func(context.Context) error {
				if lookups++; lookups == 1 {
					time.Sleep(passed)
				}
				return context.DeadlineExceeded
			})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, want, lookups)
		}
	})
}
