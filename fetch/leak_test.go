package fetch_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/internal/memnet"
	"github.com/stretchr/testify/require"
)

// counted is a connection that counts itself until it is closed.
type counted struct {
	net.Conn
	open *atomic.Int64
	once atomic.Bool
}

func (c *counted) Close() error {
	if !c.once.Swap(true) {
		c.open.Add(-1)
	}
	return c.Conn.Close()
}

// Whatever fails, no connection and no goroutine is left: a bubble does not end before all of its
// goroutines have exited.
func TestFailuresLeaveNothing(t *testing.T) {
	t.Parallel()
	rounds := 10_000
	if testing.Short() {
		rounds = 500
	}
	faults := []server{
		func(*session) {},
		func(s *session) { s.say("garbage\r\n\r\n") },
		says("HTTP/1.1 200"),
		says(ok + "X: " + strings.Repeat("x", 10_000)),
		says(ok + "Content-Length: 10\r\n\r\nshort"),
		says(ok + "Content-Length: 999999\r\n\r\n" + strings.Repeat("x", 10_000)),
		says("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
		says(ok + "Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\xff\xff"),
		silent,
		drip(ok + "X: "),
	}
	synctest.Test(t, func(t *testing.T) {
		var open, dials, round atomic.Int64
		network := memnet.New()
		l, err := network.Listen("a.test")
		require.NoError(t, err)
		wait := accept(l, func(s *session) { faults[int(round.Load())%len(faults)](s) })
		c, err := fetch.New(fetch.Options{
			Reach: fetch.Loopback, MaxHeader: 5000, MaxBody: 5000, Resolve: resolveTo("127.0.0.1"),
			Dial: func(ctx context.Context, proto, _ string) (net.Conn, error) {
				if dials.Add(1)%7 == 0 {
					return nil, errors.New("refused")
				}
				conn, err := network.Dial(ctx, proto, "a.test")
				if err != nil {
					return nil, err
				}
				open.Add(1)
				return &counted{Conn: conn, open: &open}, nil
			},
		})
		require.NoError(t, err)
		for n := range rounds {
			round.Store(int64(n))
			url := "http://a.test/"
			if n%11 == 0 {
				url = "https://a.test/"
			}
			r, err := c.Get(t.Context(), url)
			if err == nil {
				require.NotEqual(t, fetch.Whole, r.Truncated, "all of these bodies fail")
			}
		}
		c.CloseIdleConnections()
		l.Close()
		wait()
		synctest.Wait()
		require.Zero(t, open.Load(), "connections are left open")
	})
}

// The transport goes on connecting when a Get is over, for later ones. Timeout ends that if nothing
// else does.
func TestDialsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var held, begun atomic.Int64
		hold := func(ctx context.Context) error {
			held.Add(1)
			defer held.Add(-1)
			begun.Add(1)
			<-ctx.Done()
			return ctx.Err()
		}
		dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return nil, hold(ctx) }
		for _, opts := range []fetch.Options{
			{Dial: dial},
			{Dial: dial, Proxy: "http://192.0.2.1:8080"},
			{Dial: dial, Proxy: "socks5://192.0.2.1:1080"},
			{Resolve: func(ctx context.Context, _ string) ([]netip.Addr, error) { return nil, hold(ctx) }},
			{Dial: func(context.Context, string, string) (net.Conn, error) {
				near, far := net.Pipe()
				held.Add(1)
				begun.Add(1)
				go func() {
					_, _ = io.Copy(io.Discard, near) // of a handshake
					held.Add(-1)
				}()
				return far, nil
			}},
		} {
			opts.Timeout, opts.ConnectTimeout = time.Second, -1
			c, stop := inMemory(t, opts, silent)
			for range 3 {
				fails(t, c, "https://a.test/")
			}
			time.Sleep(3 * time.Second)
			require.Zero(t, held.Load(), "%+v", opts)
			stop()
		}
		require.EqualValues(t, 15, begun.Load())
	})
}
