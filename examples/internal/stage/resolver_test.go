package stage

import (
	"context"
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeDNS answers from a table and counts the questions.
type fakeDNS struct {
	table map[string][]netip.Addr
	asked int
}

func (d *fakeDNS) lookup(_ context.Context, host string) ([]netip.Addr, error) {
	d.asked++
	if addrs, ok := d.table[host]; ok {
		return addrs, nil
	}
	return nil, errors.New("no such host")
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
	} {
		dns := &fakeDNS{table: map[string][]netip.Addr{"a.example": tt.addrs}}
		r := NewResolver(dns.lookup)
		got, err := r.Resolve(t.Context(), "a.example")
		require.NoError(t, err, tt.name)
		require.Equal(t, addrs(tt.want), got, tt.name)
	}
}

func TestResolverTrustsAnAnswerForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dns := &fakeDNS{table: map[string][]netip.Addr{"a.example": addrs("192.0.2.1")}}
		r := NewResolver(dns.lookup)
		ask := func(host string) error {
			_, err := r.Addr(t.Context(), host)
			return err
		}
		_, known := r.Cached("a.example")
		require.False(t, known)
		require.NoError(t, ask("a.example"))
		_, known = r.Cached("a.example")
		require.True(t, known)
		time.Sleep(addrTTL - 1)
		require.NoError(t, ask("a.example"))
		require.Equal(t, 1, dns.asked)
		time.Sleep(time.Nanosecond)
		require.NoError(t, ask("a.example"))
		require.Equal(t, 2, dns.asked)

		require.ErrorContains(t, ask("b.example"), "resolve b.example: no such host")
		require.Error(t, ask("b.example"))
		require.Equal(t, 3, dns.asked, "failures are remembered too")
		_, known = r.Cached("b.example")
		require.False(t, known)
		time.Sleep(failureTTL)
		require.Error(t, ask("b.example"))
		require.Equal(t, 4, dns.asked)
	})
}

func TestResolverReadsLiterals(t *testing.T) {
	r := NewResolver(func(context.Context, string) ([]netip.Addr, error) {
		t.Error("asked for an address")
		return nil, nil
	})
	for host, want := range map[string]string{"192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::1"} {
		got, err := r.Addr(t.Context(), host)
		require.NoError(t, err)
		require.Equal(t, want, got.String())
	}
}

func TestResolverForgetsNoQuestionOfAnotherCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := NewResolver(func(ctx context.Context, _ string) ([]netip.Addr, error) {
		cancel()
		return nil, ctx.Err()
	})
	_, err := r.Addr(ctx, "a.example")
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, r.known, "a question that was called off says nothing about the host")
}

func TestMakeRoom(t *testing.T) {
	table := map[string]int{}
	for i := range 100 {
		makeRoom(table, 10, func(v int) bool { return v != 0 })
		table[strconv.Itoa(i)] = i
	}
	require.Len(t, table, 10)
	require.Contains(t, table, "0", "what must stay stays")
}

func TestReadHosts(t *testing.T) {
	table, err := ReadHosts(strings.NewReader("127.0.1.1 A.example b.example # both\n\n# none\n::1 c.example"), "hosts")
	require.NoError(t, err)
	require.Len(t, table, 3)
	for host, want := range map[string]string{
		"a.example": "127.0.1.1", "b.example": "127.0.1.1", "c.example": "::1",
	} {
		got, err := LookupIn(table)(t.Context(), host)
		require.NoError(t, err)
		require.Equal(t, addrs(want), got)
	}
	_, err = ReadHosts(strings.NewReader("\nlocalhost 127.0.0.1"), "hosts")
	require.ErrorContains(t, err, "hosts:2: ")
}
