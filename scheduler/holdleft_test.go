package scheduler_test

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/scheduler"
)

// A caller who has left holds the group for nobody.
func TestACallerIsNotHeldBackByOneWhoLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New[string](scheduler.Options{HostDelay: -1, AddrDelay: time.Second, GroupDelay: time.Second})
		X, Y, Z := netip.MustParseAddr("1.0.0.1"), netip.MustParseAddr("1.0.0.2"), netip.MustParseAddr("1.0.0.3")
		s.SetHost("d", scheduler.Host{Addr: Z, Group: "g"})
		s.SetHost("a", scheduler.Host{Addr: X, Group: "g"})
		s.SetHost("b", scheduler.Host{Addr: Y, Group: "g"})
		s.SetHost("c", scheduler.Host{Addr: X})
		require.NoError(t, s.Add(scheduler.Task[string]{Host: "d"}))
		d := next(t, s)
		require.Equal(t, "d", d.Host())
		ctx, cancel := context.WithCancel(t.Context())
		callA := waitFor(ctx, s, "a")
		synctest.Wait()
		require.NoError(t, s.Add(scheduler.Task[string]{Host: "a"}))
		require.NoError(t, s.Add(scheduler.Task[string]{Host: "c"}))
		c := next(t, s)
		require.Equal(t, "c", c.Host())
		d.Done(scheduler.Outcome{})
		time.Sleep(1500 * time.Millisecond)
		bctx, bcancel := context.WithTimeout(t.Context(), time.Hour)
		defer bcancel()
		callB := waitFor(bctx, s, "b")
		synctest.Wait()
		cancel()
		<-callA
		require.NoError(t, s.Verify())
		c.Done(scheduler.Outcome{})
		began := time.Now()
		<-callB
		require.Less(t, time.Since(began), time.Minute)
	})
}
