package engine

import (
	"context"
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
)

func lonelyMember(t *testing.T) (*Member, func()) {
	_, leases, _ := setup(t)()
	return join(t, leases, "m", func(ctx context.Context, c Claim) error {
		select {
		case <-c.Quit:
		case <-ctx.Done():
		}
		return nil
	})
}

func TestAnAddressIsBorrowedForItsDelay(t *testing.T) {
	m, _ := lonelyMember(t)
	until(t, func() bool { return m.ID() != "" })
	old := netip.MustParseAddr("127.0.0.1")
	c := claim(1)
	until(t, func() bool {
		m.Borrow(t.Context(), c, old, false, 31*time.Second)
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.held) > 0
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range m.held {
		require.True(t, h.until.After(h.ready), "usable from %v to %v", time.Until(h.ready), time.Until(h.until))
	}
}

func TestALeaseThatNobodyUsesIsGivenBack(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	_, leases, _ := setup(t)()
	run := func(ctx context.Context, c Claim) error {
		select {
		case <-c.Quit:
		case <-ctx.Done():
		}
		return nil
	}
	a, _ := join(t, leases, "a", run)
	b, _ := join(t, leases, "b", run)
	addr := netip.MustParseAddr("127.0.0.1")
	ca, cb := claim(1), claim(1)
	ca.Part, cb.Part = 1, 2
	until(t, func() bool { return a.Owned() > 0 && b.Owned() > 0 })
	// a asks once and writes the lease; then its partition goes away, or has no more URLs there.
	until(t, func() bool {
		a.Borrow(t.Context(), ca, addr, false, 10*time.Millisecond)
		l, known := a.view.lease(addrKey(addr))
		return known && l.Owner == a.ID()
	})
	end := time.Now().Add(45 * time.Second)
	for time.Now().Before(end) {
		if done, ok := b.Borrow(t.Context(), cb, addr, true, 10*time.Millisecond); ok {
			done()
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	l, _ := b.view.lease(addrKey(addr))
	t.Fatalf("the natural owner still waits: %v", l.Lease)
}

func TestAnAddressIsGivenBackAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	m, _ := lonelyMember(t)
	until(t, func() bool { return m.ID() != "" })
	addr := netip.MustParseAddr("127.0.0.1")
	c := claim(1)
	until(t, func() bool {
		done, ok := m.Borrow(t.Context(), c, addr, false, time.Millisecond)
		if ok {
			done()
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if h := m.held[addrKey(addr)]; h != nil {
			h.until = time.Now().Add(-1)
			return true
		}
		return false
	})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	m.giveBack(gone) // brokers are away
	until(t, func() bool {
		l, _ := m.view.lease(addrKey(addr))
		return l.Owner == ""
	})
}

// TestAReturnedAddressIsForgotten has a lease that has expired in the table: its natural owner needs
// none any more, whether its watcher has seen that or not.
func TestAReturnedAddressIsForgotten(t *testing.T) {
	m, _ := lonelyMember(t)
	until(t, func() bool { return m.ID() != "" && m.view.heard(m.ID()) != (time.Time{}) })
	addr := netip.MustParseAddr("127.0.0.1")
	key := addrKey(addr)
	known := func() bool { _, known := m.view.lease(key); return known }
	require.True(t, m.table.TryFor(t.Context(), key, returned(3), 0, time.Second))
	until(t, known)
	until(t, func() bool { return !known() })
	done, ok := m.Borrow(t.Context(), claim(1), addr, true, time.Millisecond)
	require.True(t, ok)
	done()

	unseen := netip.MustParseAddr("127.0.0.2")
	value, err := json.Marshal(Lease{Epoch: 3})
	require.NoError(t, err)
	m.view.see(&jet.Entry{Key: addrKey(unseen), Value: value, Revision: 1, Seen: time.Now().Add(-restTTL)})
	_, ok = m.Borrow(t.Context(), claim(1), unseen, true, time.Millisecond)
	require.False(t, ok, "it may still be in the table")
	m.view.see(&jet.Entry{Key: addrKey(unseen), Value: value, Revision: 1, Seen: time.Now().Add(-2 * restTTL)})
	done, ok = m.Borrow(t.Context(), claim(1), unseen, true, time.Millisecond)
	require.True(t, ok)
	done()
}
