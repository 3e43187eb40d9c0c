package resolve_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/hostcache/resolve"
)

// A dialer connects after some time, or fails, as the table says for each address.
type dialer struct {
	after map[string]time.Duration // negative: fails after that
	begun time.Time

	mu     sync.Mutex
	dialed []string
	closed int
}

// errRefused is the error of a failing address.
var errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}

// A dialed connection says to what, and tells when it is closed.
type dialed struct {
	net.Conn
	d  *dialer
	to string
}

func (c *dialed) Close() error {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	c.d.closed++
	return nil
}

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d.mu.Lock()
	d.dialed = append(d.dialed, time.Since(d.begun).String()+" "+network+" "+address)
	d.mu.Unlock()
	after := d.after[address]
	select {
	case <-time.After(max(after, -after)):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if after < 0 {
		return nil, errRefused
	}
	return &dialed{d: d, to: address}, nil
}

// seen returns what was dialed, and how many connections were closed.
func (d *dialer) seen() (dialed []string, closed int) {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.dialed), d.closed
}

// hosts of a table, for DialContext.
var hosts = map[string][]netip.Addr{
	"one.test":  addrs("192.0.2.1"),
	"both.test": addrs("192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2"),
}

func TestDialContextRacesAddresses(t *testing.T) {
	const (
		v4, v4b = "192.0.2.1:80", "192.0.2.2:80"
		v6, v6b = "[2001:db8::1]:80", "[2001:db8::2]:80"
		ms      = time.Millisecond
	)
	for _, tt := range []struct {
		name          string
		network, host string
		after         map[string]time.Duration
		dialed        []string
		to            string // "" if it fails
		took          time.Duration
	}{
		{"the first is fast", "tcp", "both.test:80", map[string]time.Duration{v4: 100 * ms},
			[]string{"0s tcp " + v4}, v4, 100 * ms},
		{"the first is slow", "tcp", "both.test:http",
			map[string]time.Duration{v4: time.Minute, v6: 100 * ms},
			[]string{"0s tcp " + v4, "250ms tcp " + v6}, v6, 350 * ms},
		{"the first fails at once", "tcp", "both.test:80",
			map[string]time.Duration{v4: -1, v6: -1, v4b: 100 * ms},
			[]string{"0s tcp " + v4, "1ns tcp " + v6, "2ns tcp " + v4b}, v4b, 100*ms + 2},
		{"the slow one wins", "tcp", "both.test:80",
			map[string]time.Duration{v4: 600 * ms, v6: time.Minute, v4b: time.Minute},
			[]string{"0s tcp " + v4, "250ms tcp " + v6, "500ms tcp " + v4b}, v4, 600 * ms},
		{"all fail", "tcp", "both.test:80",
			map[string]time.Duration{v4: -300 * ms, v6: -1, v4b: -1, v6b: -1},
			[]string{"0s tcp " + v4, "250ms tcp " + v6, "250.000001ms tcp " + v4b,
				"250.000002ms tcp " + v6b}, "", 300 * ms},
		{"IPv4 only", "tcp4", "both.test:80", map[string]time.Duration{v4: -1},
			[]string{"0s tcp4 " + v4, "1ns tcp4 " + v4b}, v4b, 1},
		{"IPv6 only", "tcp6", "both.test:80", nil, []string{"0s tcp6 " + v6}, v6, 0},
		{"no such kind", "tcp6", "one.test:80", nil, nil, "", 0},
		{"an address", "tcp", "[2001:db8::1]:80", nil, []string{"0s tcp " + v6}, v6, 0},
		{"no host", "tcp", ":80", nil, []string{"0s tcp :80"}, ":80", 0},
		{"no port", "tcp", "one.test", nil, nil, "", 0},
		{"no such port", "tcp", "one.test:no-such-service", nil, nil, "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &dialer{after: tt.after, begun: time.Now()}
				r := resolve.New(resolve.Options{Hosts: hosts, Dial: d.dial})
				conn, err := r.DialContext(t.Context(), tt.network, tt.host)
				require.Equal(t, tt.took, time.Since(d.begun))
				to, _ := d.seen()
				require.Equal(t, tt.dialed, to)
				if tt.to == "" {
					require.ErrorAs(t, err, new(*net.OpError))
					require.Nil(t, conn)
					return
				}
				require.NoError(t, err)
				require.Equal(t, tt.to, conn.(*dialed).to)
				time.Sleep(time.Hour)
				_, closed := d.seen()
				require.Zero(t, closed)
			})
		})
	}
}

// TestLateConnectionsAreClosed has an address that ignores the context.
func TestLateConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialer{begun: time.Now()}
		r := resolve.New(resolve.Options{Hosts: hosts,
			Dial: func(_ context.Context, network, address string) (net.Conn, error) {
				if address == "192.0.2.1:80" {
					time.Sleep(time.Minute)
				}
				return d.dial(context.Background(), network, address)
			}})
		conn, err := r.DialContext(t.Context(), "tcp", "both.test:80")
		require.NoError(t, err)
		require.Equal(t, "[2001:db8::1]:80", conn.(*dialed).to)
		time.Sleep(time.Hour)
		_, closed := d.seen()
		require.Equal(t, 1, closed, "the late one, and not the one that is in use")

		ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("enough"))
		defer cancel()
		_, err = r.DialContext(ctx, "tcp", "one.test:80")
		require.ErrorContains(t, err, "enough")
		time.Sleep(time.Hour)
		_, closed = d.seen()
		require.Equal(t, 2, closed)
	})
}

// TestHTTPThroughDialContext gets a page by a name that a name server on the loopback device knows.
func TestHTTPThroughDialContext(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.WriteString(w, "hello from "+req.Host)
	}))
	defer web.Close()
	_, port, err := net.SplitHostPort(web.Listener.Addr().String())
	require.NoError(t, err)
	h := zone{"www.test.": {a("www.test.", "127.0.0.1", 300)}}.handler()
	server := listen(t, h, h)
	r := resolve.New(resolve.Options{Servers: []netip.AddrPort{server}})
	client := &http.Client{Transport: &http.Transport{DialContext: r.DialContext, DisableKeepAlives: true}}
	for range 3 {
		resp, err := client.Get("http://www.test:" + port)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, "hello from www.test:"+port, string(body))
	}
	require.EqualValues(t, 1, r.Stats().Loads)
	_, err = client.Get("http://none.test:" + port)
	require.True(t, isNotFound(errors.Unwrap(errors.Unwrap(err))), "%v", err)
}

// TestATraceOfARequest tells of the look-up and the connections of the request, and of nothing else.
func TestATraceOfARequest(t *testing.T) {
	server := listen(t, zone{"a.test.": {a("a.test.", "127.0.0.1", 300)}}.handler(), nil)
	web, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer web.Close()
	_, port, err := net.SplitHostPort(web.Addr().String())
	require.NoError(t, err)
	var told []string
	tell := func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		DNSStart:     func(i httptrace.DNSStartInfo) { tell("look up %s", i.Host) },
		DNSDone:      func(i httptrace.DNSDoneInfo) { tell("found %v %v", i.Addrs, i.Err) },
		ConnectStart: func(network, addr string) { tell("connect %s %s", network, addr) },
	})
	r := resolve.New(resolve.Options{Servers: []netip.AddrPort{server}})
	for range 2 { // the second time, the address is known
		conn, err := r.DialContext(ctx, "tcp", "a.test:"+port)
		require.NoError(t, err)
		conn.Close()
		require.Equal(t, []string{"look up a.test", "found [{127.0.0.1 }] <nil>", "connect tcp 127.0.0.1:" + port}, told)
		told = nil
	}
	conn, err := r.DialContext(ctx, "tcp", "127.0.0.1:"+port)
	require.NoError(t, err)
	conn.Close()
	require.Equal(t, []string{"connect tcp 127.0.0.1:" + port}, told)

	r = resolve.New(resolve.Options{Lookup: func(ctx context.Context, _ string) ([]netip.Addr, time.Duration, error) {
		assert.Nil(t, httptrace.ContextClientTrace(ctx), "its requests are its own")
		return nil, 0, resolve.ErrServerFailure
	}})
	_, err = r.DialContext(ctx, "tcp", "a.test:80")
	require.ErrorIs(t, err, resolve.ErrServerFailure)
}
