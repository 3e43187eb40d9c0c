package resolve_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/spinneret-go/spinneret/hostcache"
	"github.com/spinneret-go/spinneret/hostcache/resolve"
)

// TestALookupWhoseServerCannotBeFound: that says nothing about the host.
func TestALookupWhoseServerCannotBeFound(t *testing.T) {
	names := newNetwork(t, zone{}.handler()).resolver(resolve.Options{}) // knows no host
	for name, dial := range map[string]func(context.Context) error{
		"of package net": func(context.Context) error {
			return &net.DNSError{Err: "no such host", Name: "doh.test", IsNotFound: true}
		},
		"wrapped": func(context.Context) error {
			return &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "doh.test.", IsNotFound: true}}
		},
		"an address without a port": func(ctx context.Context) error {
			_, err := new(net.Dialer).DialContext(ctx, "tcp", "192.0.2.1")
			return err
		},
		"of another Cache": func(context.Context) error { return fmt.Errorf("doh: %w", hostcache.ErrStored) },
		"of another Cache, without a value": func(ctx context.Context) error {
			own := hostcache.New[string](hostcache.Options{})
			_, err := own.Load(ctx, "doh.test", func(context.Context, string) (string, time.Duration, error) {
				return "", time.Hour, hostcache.ErrNegative
			})
			return err
		},
		"by another Resolver": func(ctx context.Context) error {
			_, err := names.DialContext(ctx, "tcp", "doh.test:443")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			r := resolve.New(resolve.Options{Lookup: func(ctx context.Context, _ string) ([]netip.Addr, time.Duration, error) {
				calls++
				return nil, time.Hour, dial(ctx)
			}})
			for range 2 {
				_, err := r.Addr(t.Context(), "www.test")
				require.Error(t, err)
				require.False(t, isNotFound(err), "%v", err)
				require.NotErrorIs(t, err, hostcache.ErrNegative)
			}
			require.Equal(t, 2, calls, "nothing is kept")
			require.Error(t, r.Ping(t.Context()))
		})
	}
}

// TestFailuresEndWithTheProcess: an outage that is over has forgotten them, and the next process knows of none.
func TestFailuresEndWithTheProcess(t *testing.T) {
	file, broken := filepath.Join(t.TempDir(), "names"), true
	opts := resolve.Options{Lookup: func(context.Context, string) ([]netip.Addr, time.Duration, error) {
		if broken {
			return nil, 0, resolve.ErrServerFailure
		}
		return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, time.Hour, nil
	}}
	r, err := resolve.Open(file, opts)
	require.NoError(t, err)
	_, err = r.Addr(t.Context(), "a.test")
	require.ErrorIs(t, err, resolve.ErrServerFailure)
	require.Error(t, r.Ping(t.Context()))
	broken = false
	require.NoError(t, r.Ping(t.Context()))
	require.NoError(t, r.Save())

	r, err = resolve.Open(file, opts)
	require.NoError(t, err)
	_, err = r.Addr(t.Context(), "a.test")
	require.NoError(t, err)
}

func TestALookupThatFindsNoHost(t *testing.T) {
	for _, name := range []string{"", "www.test", "WWW.test."} {
		r := resolve.New(resolve.Options{Lookup: func(context.Context, string) ([]netip.Addr, time.Duration, error) {
			return nil, time.Hour, fmt.Errorf("doh: %w", &net.DNSError{Err: "NXDOMAIN", Name: name, IsNotFound: true})
		}})
		_, err := r.Addr(t.Context(), "www.test")
		require.True(t, isNotFound(err), "%v", err)
	}
}

// TestACacheAboveKeepsNoFailure: the Resolver's own record of a failure is none of the caches above it.
func TestACacheAboveKeepsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := newNetwork(t, zone{}.handler(func(m *message) {
			m.RCode = dnsmessage.RCodeServerFailure
		})).resolver(resolve.Options{})
		above := hostcache.New[[16]byte](hostcache.Options{})
		for range 3 {
			_, err := above.Load(t.Context(), "a.test", func(ctx context.Context, host string) ([16]byte, time.Duration, error) {
				addr, err := names.Addr(ctx, host)
				if err != nil {
					return [16]byte{}, time.Hour, err
				}
				return addr.As16(), time.Hour, nil
			})
			require.ErrorIs(t, err, resolve.ErrServerFailure)
			time.Sleep(time.Minute)
		}
		require.Zero(t, above.Len())
	})
}
