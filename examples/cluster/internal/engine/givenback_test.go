package engine

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
