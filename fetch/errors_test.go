package fetch_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/internal/neterr"
	"github.com/stretchr/testify/require"
)

func TestErrorReadsWell(t *testing.T) {
	addr := netip.MustParseAddrPort("192.0.2.1:80")
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	unknown := &net.DNSError{Err: "no such host", Name: "a.test", Server: "127.0.0.53:53",
		IsNotFound: true}
	tests := []struct {
		err       fetch.Error
		want      string
		temporary bool
	}{
		{fetch.Error{Kind: fetch.Resolve, Err: unknown}, "resolve: no such host", false},
		{fetch.Error{Kind: fetch.Resolve, Err: &net.DNSError{Err: "server misbehaving"}},
			"resolve: server misbehaving", true},
		{fetch.Error{Kind: fetch.ResolveTimeout, Err: context.DeadlineExceeded},
			"resolve timeout", true},
		{fetch.Error{Kind: fetch.Connect, Addr: addr, Err: refused},
			"connect 192.0.2.1:80: connection refused", true},
		{fetch.Error{Kind: fetch.ConnectTimeout, Addr: addr, Err: refused},
			"connect timeout 192.0.2.1:80", true},
		{fetch.Error{Kind: fetch.TLS, Addr: addr, Err: tls.AlertError(40)},
			"tls 192.0.2.1:80: tls: handshake failure", false},
		{fetch.Error{Kind: fetch.TLS, Addr: addr, Err: io.EOF}, "tls 192.0.2.1:80: EOF", true},
		{fetch.Error{Kind: fetch.Blocked}, "blocked", false},
		{fetch.Error{Kind: fetch.Canceled, Err: context.Canceled}, "canceled: context canceled", true},
		{fetch.Error{Kind: fetch.Protocol, Err: errors.New(`malformed HTTP response "a\tb"`)},
			`protocol: malformed HTTP response "a\tb"`, false},
		{fetch.Error{Kind: 99}, "kind 99", true},
	}
	for _, tt := range tests {
		tt.err.URL = "http://a.test/"
		require.EqualError(t, &tt.err, "fetch: http://a.test/: "+tt.want)
		require.Equal(t, tt.temporary, tt.err.Temporary(), "%v", &tt.err)
	}
	e := fetch.Error{Kind: fetch.BadURL, URL: "http://\n" + strings.Repeat("x", 10_000)}
	require.NotContains(t, e.Error(), "\n", "a URL must not forge a line of a log")
	require.Less(t, len(e.Error()), 300)
	e = fetch.Error{Kind: fetch.TLS, URL: "http://a.test/",
		Err: errors.New("certificate is valid for a\n\x1b[31m" + strings.Repeat("x", 10_000))}
	require.NotContains(t, e.Error(), "\n", "a certificate must not forge one either")
	require.NotContains(t, e.Error(), "\x1b")
	require.Less(t, len(e.Error()), 600)
	require.EqualError(t, fetch.Blocked, "fetch: blocked")
	require.NotErrorIs(t, &e, fetch.Blocked)
}

func TestGetFails(t *testing.T) {
	tests := []struct {
		name      string
		serve     server
		kind      fetch.Kind
		temporary bool
	}{
		{"closed without a response", func(s *session) { s.request() }, fetch.Disconnected, true},
		{"closed in the head", says(ok + "X: y\r\n"), fetch.Disconnected, true},
		{"closed in the status line", says("HTTP/1.1 20"), fetch.Disconnected, true},
		{"closed in a field", says(ok + "X: y\r\nX-"), fetch.Disconnected, true},
		{"closed at once, without HTTP", says("SSH"), fetch.Protocol, false},
		{"closed after an interim response", says("HTTP/1.1 100 Continue\r\n\r\n"),
			fetch.Disconnected, true},
		{"another protocol", says("SSH-2.0-OpenSSH_9.9\r\n"), fetch.Protocol, false},
		{"no status", says("HTTP/1.1 abc\r\n\r\n"), fetch.Protocol, false},
		{"a field without a colon", says(ok + "nonsense\r\n\r\n"), fetch.Protocol, false},
		{"a field without a colon that quotes net/http", says(ok + "server closed idle connection\r\n\r\n"),
			fetch.Protocol, false},
		{"a status line that quotes net/http", says("SSH http2: client connection lost\r\n\r\n"), fetch.Protocol, false},
		{"two lengths", says(ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx"),
			fetch.Protocol, false},
		{"a switch of protocols", says("HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"),
			fetch.Protocol, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			base := listen(t, tt.serve)
			e := fails(t, newClient(t, fetch.Options{}), base)
			require.Equal(t, tt.kind, e.Kind, "%v", e)
			require.Equal(t, tt.temporary, e.Temporary())
			require.False(t, e.Timeout())
			require.Equal(t, strings.TrimPrefix(base, "http://"), e.Addr.String())
		})
	}
}

func TestGetFailsToConnect(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	e := fails(t, newClient(t, fetch.Options{}), "http://"+l.Addr().String())
	require.Equal(t, fetch.Connect, e.Kind)
	require.ErrorIs(t, e, syscall.ECONNREFUSED)
	require.True(t, e.Temporary())

	e = fails(t, newClient(t, fetch.Options{Resolve: resolveTo()}), "http://a.test/")
	require.Equal(t, fetch.Resolve, e.Kind)
	require.EqualError(t, e, "fetch: http://a.test/: resolve: no address")
}

// A lack of this machine says nothing about the server, and is not more telling than what another of
// its addresses says.
func TestLocalFailuresToConnect(t *testing.T) {
	opts := fetch.Options{UserAgent: "testbot (bot@a.test)", Reach: fetch.Anywhere}
	for _, lack := range []syscall.Errno{
		syscall.EMFILE, syscall.ENOBUFS, syscall.ENETUNREACH, syscall.EADDRNOTAVAIL,
	} {
		opts.Dial = func(_ context.Context, network, addr string) (net.Conn, error) {
			err := &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
			if strings.HasPrefix(addr, "[") {
				err.Err = os.NewSyscallError("socket", lack)
			}
			return nil, err
		}
		opts.Resolve = resolveTo("2606:2800:21f::1", "2606:2800:21f::2")
		e := fails(t, newClient(t, opts), "http://a.test/")
		require.Equal(t, fetch.Connect, e.Kind)
		require.Equal(t, "[2606:2800:21f::1]:80", e.Addr.String())
		requireBlame(t, e, true, false)
		opts.Resolve = resolveTo("2606:2800:21f::1", "192.0.2.1")
		e = fails(t, newClient(t, opts), "http://a.test/")
		require.ErrorIs(t, e, syscall.ECONNREFUSED)
		require.Equal(t, "192.0.2.1:80", e.Addr.String())
		require.False(t, e.Local())
		require.False(t, neterr.Local(e))
	}
}

// Nor does it when the look-up fails for it, as it does first when a crawler runs out of descriptors.
func TestLocalFailuresToResolve(t *testing.T) {
	resolver := net.Resolver{PreferGo: true, Dial: func(_ context.Context, network, _ string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("socket", syscall.EMFILE)}
	}}
	e := fails(t, newClient(t, fetch.Options{Resolve: func(ctx context.Context, host string) ([]netip.Addr, error) {
		return resolver.LookupNetIP(ctx, "ip", host)
	}}), "http://a.test/")
	require.Equal(t, fetch.Resolve, e.Kind)
	require.True(t, e.Temporary())
	requireBlame(t, e, true, false)
}

// broken is a connection over which nothing comes any more.
type broken struct {
	net.Conn
	err error
}

func (c broken) Read([]byte) (int, error) { return 0, c.err }

// A network that fails within an exchange has brought no answer, whatever the system calls its failure.
func TestNetworkFailsWithinAnExchange(t *testing.T) {
	base := listen(t, silent)
	for errno, local := range map[syscall.Errno]bool{syscall.EHOSTUNREACH: false, syscall.ENETDOWN: true, syscall.ENOBUFS: true} {
		e := fails(t, newClient(t, fetch.Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return broken{conn, &net.OpError{Op: "read", Net: network, Err: os.NewSyscallError("read", errno)}}, err
		}}), base)
		require.Equal(t, fetch.Disconnected, e.Kind, "%v", e)
		require.True(t, e.Temporary())
		requireBlame(t, e, local, true)
	}
}

// A layer above knows by net.DNSError that no server was asked, whatever Options.Resolve returns.
func TestResolversFailWithDNSErrors(t *testing.T) {
	never := func(ctx context.Context, _ string) ([]netip.Addr, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	broken := errors.New("the resolver is broken")
	for name, tt := range map[string]struct {
		opts               fetch.Options
		kind               fetch.Kind
		notFound, timedOut bool
	}{
		"no address": {fetch.Options{Resolve: resolveTo()}, fetch.Resolve, true, false},
		"of its own": {fetch.Options{Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return nil, broken
		}}, fetch.Resolve, false, false},
		"no server to ask": {fetch.Options{Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return nil, fmt.Errorf("ask: %w", &net.DNSError{Err: "no such host", Name: "dns.test", IsNotFound: true})
		}}, fetch.Resolve, false, false},
		"no such host": {fetch.Options{Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return nil, &net.DNSError{Err: "no such host", Name: "A.test.", IsNotFound: true}
		}}, fetch.Resolve, true, false},
		"ConnectTimeout": {fetch.Options{Resolve: never, ConnectTimeout: time.Millisecond},
			fetch.ResolveTimeout, false, true},
		"Timeout": {fetch.Options{Resolve: never, Timeout: time.Millisecond},
			fetch.ResolveTimeout, false, true},
	} {
		synctest.Test(t, func(t *testing.T) { // in fake time, no step is skipped on a busy machine
			var dns *net.DNSError
			e := fails(t, newClient(t, tt.opts), "http://a.test/")
			require.Equal(t, tt.kind, e.Kind, name)
			require.ErrorAs(t, e, &dns)
			require.Equal(t, tt.notFound, dns.IsNotFound)
			require.Equal(t, tt.timedOut, dns.IsTimeout)
			require.Equal(t, !tt.notFound, e.Temporary())
			require.Equal(t, name == "of its own", errors.Is(e, broken))
			require.Equal(t, tt.timedOut, errors.Is(e, context.DeadlineExceeded))
		})
	}
}

// The end of the caller's context ends a Get at once, at any point, and discards what has arrived:
// the caller no longer needs it.
func TestCallersContext(t *testing.T) {
	why := errors.New("shutting down")
	tests := []struct {
		name  string
		serve server
	}{
		{"before the head", silent},
		{"in the head", drip(ok + "X: ")},
		{"in the body", drip(ok + "\r\nx")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, stop := inMemory(t, fetch.Options{}, tt.serve)
				defer stop()
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(3500*time.Millisecond, func() { cancel(why) })
				start := time.Now()
				r, err := c.Get(ctx, "http://a.test/")
				require.Nil(t, r)
				require.ErrorIs(t, err, fetch.Canceled)
				require.ErrorIs(t, err, why)
				require.Equal(t, 3500*time.Millisecond, time.Since(start))
				requireBlame(t, err, true, true)

				for _, cause := range []error{nil, why} {
					ctx, late := context.WithTimeoutCause(t.Context(), 3500*time.Millisecond, cause)
					defer late()
					_, err = c.Get(ctx, "http://a.test/")
					require.ErrorIs(t, err, fetch.Canceled, "a deadline of the caller cancels as well")
					require.ErrorIs(t, err, context.Cause(ctx))
					requireBlame(t, err, tt.name == "in the body", true)
				}
			})
		})
	}
}

// requireBlame checks whether an error says nothing about the server, and whether that may have noticed
// the request.
func requireBlame(t *testing.T, err error, local, sent bool) {
	t.Helper()
	var e *fetch.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, local, e.Local(), "%v", err)
	require.Equal(t, sent, e.Sent(), "%v", err)
	require.Equal(t, sent, neterr.Sent(fmt.Errorf("wrapped: %w", err)))
}

// A caller who leaves before the server is dialed has not disturbed it. One who waits in vain for the
// connection, until a deadline, has.
func TestCallersWhoLeaveEarly(t *testing.T) {
	never := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, tt := range map[string]struct {
		opts fetch.Options
		sent bool
	}{
		"while it is resolved": {fetch.Options{Resolve: func(ctx context.Context, _ string) ([]netip.Addr, error) {
			return nil, never(ctx)
		}}, false},
		"while it is dialed": {fetch.Options{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return nil, never(ctx)
		}}, true},
		"while a layer below Get holds it back": {fetch.Options{Wrap: func(http.RoundTripper) http.RoundTripper {
			return tripper(func(r *http.Request) (*http.Response, error) { return nil, never(r.Context()) })
		}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, stop := inMemory(t, tt.opts, silent)
				defer stop()
				ctx, late := context.WithTimeout(t.Context(), time.Second)
				defer late()
				_, err := c.Get(ctx, "http://a.test/")
				requireBlame(t, err, !tt.sent, tt.sent)
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				_, err = c.Get(ctx, "http://a.test/")
				requireBlame(t, err, true, tt.sent)
			})
		})
	}
}

// In a synctest bubble, every goroutine must have exited when the test ends, so this fails if
// CloseIdleConnections leaves one.
func TestCloseIdleLeavesNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keep := func(s *session) {
			for s.request() != "" {
				s.say(ok + "Content-Length: 2\r\n\r\nok")
			}
		}
		c, stop := inMemory(t, fetch.Options{}, keep)
		require.False(t, get(t, c, "http://a.test/").Reused)
		time.Sleep(fetch.IdleTimeout - time.Second)
		require.True(t, get(t, c, "http://a.test/").Reused)
		c.CloseIdleConnections()
		require.False(t, get(t, c, "http://a.test/").Reused)
		stop()

		// IdleTimeout has the same effect as CloseIdleConnections.
		c, stop = inMemory(t, fetch.Options{}, keep)
		get(t, c, "http://a.test/")
		time.Sleep(fetch.IdleTimeout + time.Second)
		require.False(t, get(t, c, "http://a.test/").Reused)
		stop()
	})
}
