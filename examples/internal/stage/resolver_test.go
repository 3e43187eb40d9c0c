package stage

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeDNS answers from a table.
type fakeDNS struct {
	table map[string][]netip.Addr
	ttl   time.Duration
	down  bool
}

func (d *fakeDNS) lookup(_ context.Context, host string) ([]netip.Addr, time.Duration, error) {
	if d.down {
		return nil, 0, errors.New("server failure")
	}
	if addrs, ok := d.table[host]; ok {
		return addrs, d.ttl, nil
	}
	return nil, d.ttl, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

func newResolver(t *testing.T, lookup Lookup) *Resolver {
	t.Helper()
	r, err := NewResolver(lookup, filepath.Join(t.TempDir(), "hosts"))
	require.NoError(t, err)
	return r
}

func addrs(texts ...string) (all []netip.Addr) {
	for _, text := range texts {
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}

func TestResolverTakesOneAddress(t *testing.T) {
	for _, tt := range []struct {
		name  string
		addrs []netip.Addr
		want  string
	}{
		{"the first of several", addrs("192.0.2.1", "192.0.2.2"), "192.0.2.1"},
		{"version 4 before version 6", addrs("2001:db8::1", "192.0.2.2"), "192.0.2.2"},
		{"version 6 where there is no other", addrs("2001:db8::1"), "2001:db8::1"},
		{"a mapped one as what it stands for", addrs("::ffff:192.0.2.3"), "192.0.2.3"},
		{"more than are kept", addrs("2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8::4",
			"2001:db8::5", "192.0.2.4"), "192.0.2.4"},
	} {
		dns := &fakeDNS{table: map[string][]netip.Addr{"a.example": tt.addrs}}
		got, err := newResolver(t, dns.lookup).Resolve(t.Context(), "a.example")
		require.NoError(t, err, tt.name)
		require.Equal(t, addrs(tt.want), got, tt.name)
	}
}

func TestResolverTrustsAnAnswerAsLongAsItHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dns := &fakeDNS{
			table: map[string][]netip.Addr{"a.example": addrs("192.0.2.1")}, ttl: 10 * time.Minute,
		}
		r := newResolver(t, dns.lookup)
		ask := func(host string) error {
			_, err := r.Addr(t.Context(), host)
			return err
		}
		_, known := r.Cached("a.example")
		require.False(t, known)
		require.NoError(t, ask("a.example"))
		_, known = r.Cached("a.example")
		require.True(t, known)
		time.Sleep(dns.ttl - time.Millisecond)
		require.NoError(t, ask("a.example"))
		require.EqualValues(t, 1, r.Asked())
		time.Sleep(2 * time.Millisecond)
		require.NoError(t, ask("a.example"))
		require.EqualValues(t, 2, r.Asked())

		require.ErrorContains(t, ask("b.example"), "resolve b.example: no such host")
		require.Error(t, ask("b.example"))
		require.EqualValues(t, 3, r.Asked(), "that a name does not exist is remembered too")
		_, known = r.Cached("b.example")
		require.False(t, known)
		time.Sleep(dns.ttl + time.Millisecond)
		require.Error(t, ask("b.example"))
		require.EqualValues(t, 4, r.Asked())

		dns.down = true
		require.ErrorContains(t, ask("c.example"), "server failure")
		require.Error(t, ask("c.example"))
		require.EqualValues(t, 6, r.Asked(), "that nobody answered is not")
	})
}

func TestResolverAsksOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		r := newResolver(t, func(context.Context, string) ([]netip.Addr, time.Duration, error) {
			<-release
			return addrs("192.0.2.1"), 0, nil
		})
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { _, _ = r.Addr(t.Context(), "a.example") })
		}
		synctest.Wait() // all have asked, and none has an answer
		require.EqualValues(t, 1, r.Asked())
		close(release)
		all.Wait()
		require.EqualValues(t, 1, r.Asked())
	})
}

func TestResolverRemembersAcrossRuns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	dns := &fakeDNS{table: map[string][]netip.Addr{"a.example": addrs("192.0.2.1")}}
	first, err := NewResolver(dns.lookup, file)
	require.NoError(t, err)
	_, err = first.Addr(t.Context(), "a.example")
	require.NoError(t, err)
	_, err = first.Addr(t.Context(), "b.example")
	require.Error(t, err)
	require.NoError(t, first.Save(file))

	second, err := NewResolver(dns.lookup, file)
	require.NoError(t, err)
	got, err := second.Addr(t.Context(), "a.example")
	require.NoError(t, err)
	require.Equal(t, addrs("192.0.2.1")[0], got)
	_, err = second.Addr(t.Context(), "b.example")
	require.Error(t, err)
	require.Zero(t, second.Asked())

	require.NoError(t, os.WriteFile(file, []byte("torn"), 0o600))
	_, err = NewResolver(dns.lookup, file)
	require.ErrorContains(t, err, file)
}

func TestResolverReadsLiterals(t *testing.T) {
	r := newResolver(t, (&fakeDNS{down: true}).lookup)
	for host, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::1", "[2001:db8::1]": "2001:db8::1",
	} {
		got, err := r.Addr(t.Context(), host)
		require.NoError(t, err)
		require.Equal(t, want, got.String())
		got, known := r.Cached(host)
		require.True(t, known)
		require.Equal(t, want, got.String())
	}
}

func TestReadHosts(t *testing.T) {
	table, err := ReadHosts(strings.NewReader("127.0.1.1 A.example b.example # both\n\n# none\n::1 c.example\n::1 A.example"), "hosts")
	require.NoError(t, err)
	require.Len(t, table, 3)
	for host, want := range map[string]string{
		"a.example": "127.0.1.1", "b.example": "127.0.1.1", "c.example": "::1",
	} {
		got, _, err := LookupIn(table, DNS{}.Lookup)(t.Context(), host)
		require.NoError(t, err)
		require.Equal(t, addrs(want), got)
	}
	_, err = ReadHosts(strings.NewReader("\nlocalhost 127.0.0.1"), "hosts")
	require.ErrorContains(t, err, "hosts:2: ")
}
