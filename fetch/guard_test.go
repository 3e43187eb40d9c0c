package fetch_test

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/stretchr/testify/require"
)

const ok = "HTTP/1.1 200 OK\r\n"

// These guards count bytes. A server can send at most the limit plus the buffers on the way: two of
// bufio's in memory.
func TestEndlessServersCostBoundedBytes(t *testing.T) {
	limits := fetch.Options{MaxBody: 100_000, MaxHeader: 20_000, Timeout: time.Hour}
	const slack = 2 * 4096
	tests := []struct {
		name, head, text string
		kind             fetch.Kind // of the error
		cut              fetch.Kind
		cost             int64
	}{
		{"endless body", ok + "\r\n", strings.Repeat("x", 1000), 0, fetch.CutLength, 100_000},
		{"endless chunks", ok + "Transfer-Encoding: chunked\r\n\r\n",
			"3e8\r\n" + strings.Repeat("x", 1000) + "\r\n", 0, fetch.CutLength, 101_000},
		{"endless body with a Content-Length", ok + "Content-Length: 999999999999\r\n\r\n",
			strings.Repeat("x", 1000), 0, fetch.CutLength, 100_000},
		{"endless fields", ok, "X: yyyyyyyyyyyyyyyyyyyyyyyyy\r\n", fetch.HeaderTooLarge, 0, 20_000},
		{"endless short fields", ok, "X:\n", fetch.HeaderTooLarge, 0, 1000 * 3},
		{"endless field", ok + "X: ", "yyyyyyyyyy", fetch.HeaderTooLarge, 0, 20_000},
		{"endless status line", "HTTP/1.1 200 ", "OK", fetch.HeaderTooLarge, 0, 20_000},
		{"endless interim responses", "", "HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n",
			fetch.HeaderTooLarge, 0, 20_000},
		{"endless garbage", "", "garbage instead of HTTP\r\n", fetch.Protocol, 0, 4096},
		{"endless garbage without a line", "", "garbage", fetch.HeaderTooLarge, 0, 20_000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sent atomic.Int64
				c, stop := inMemory(t, limits, repeats(tt.head, tt.text, &sent))
				if tt.kind != 0 {
					e := fails(t, c, "http://a.test/")
					require.Equal(t, tt.kind, e.Kind, "%v", e)
					require.False(t, e.Temporary())
					require.Equal(t, "127.0.0.1:80", e.Addr.String())
				} else {
					r := get(t, c, "http://a.test/")
					require.Equal(t, tt.cut, r.Truncated)
					require.Equal(t, tt.cut, r.RawCut)
					require.Len(t, r.Body, int(limits.MaxBody))
				}
				stop()
				require.LessOrEqual(t, sent.Load(), tt.cost+slack)
			})
		})
	}
}

// drip answers with start and then one byte a second, forever.
func drip(start string) server {
	return func(s *session) {
		s.request()
		for ok := s.say(start); ok; ok = s.say("x") {
			time.Sleep(time.Second)
		}
	}
}

func silent(s *session) {
	s.request()
	_, _ = s.br.ReadByte() // until the client closes
}

// These guards measure time, exact to the nanosecond. At the end of its bubble, synctest fails if a
// goroutine is left.
func TestSlowServersCostBoundedTime(t *testing.T) {
	never := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	neverDial := func(ctx context.Context, _, _ string) (net.Conn, error) { return nil, never(ctx) }
	neverResolve := func(ctx context.Context, _ string) ([]netip.Addr, error) {
		return nil, never(ctx)
	}
	tests := []struct {
		name  string
		opts  fetch.Options
		serve server
		url   string
		after time.Duration
		kind  fetch.Kind // of the error
		cut   fetch.Kind
		body  int // bytes kept
	}{
		{"no answer", fetch.Options{}, silent, "http://a.test/", 20 * time.Second,
			fetch.HeadTimeout, 0, 0},
		{"no answer within Timeout", fetch.Options{HeadTimeout: -1}, silent,
			"http://a.test/", 30 * time.Second, fetch.HeadTimeout, 0, 0},
		{"a head byte by byte", fetch.Options{}, drip(ok + "X: "), "http://a.test/",
			20 * time.Second, fetch.HeadTimeout, 0, 0},
		{"an endless series of interim responses", fetch.Options{}, func(s *session) {
			s.request()
			for s.say("HTTP/1.1 103 Early Hints\r\n\r\n") {
				time.Sleep(time.Second)
			}
		}, "http://a.test/", 20 * time.Second, fetch.HeadTimeout, 0, 0},
		{"a request that is not read", fetch.Options{}, func(*session) { time.Sleep(time.Hour) },
			"http://a.test/", 20 * time.Second, fetch.HeadTimeout, 0, 0},
		{"no handshake", fetch.Options{}, func(s *session) { _, _ = s.br.WriteTo(discard{}) },
			"https://a.test/", 10 * time.Second, fetch.TLSTimeout, 0, 0},
		{"no connection", fetch.Options{Dial: neverDial}, silent, "http://a.test/",
			10 * time.Second, fetch.ConnectTimeout, 0, 0},
		{"no connection to any of many addresses", fetch.Options{Dial: neverDial,
			Resolve: resolveTo("127.0.0.1", "127.0.0.2", "127.0.0.3")}, silent, "http://a.test/",
			10 * time.Second, fetch.ConnectTimeout, 0, 0},
		{"no answer from the resolver", fetch.Options{Resolve: neverResolve}, silent,
			"http://a.test/", 10 * time.Second, fetch.ResolveTimeout, 0, 0},
		{"Timeout while resolving", fetch.Options{Resolve: neverResolve,
			Timeout: 3 * time.Second}, silent, "http://a.test/", 3 * time.Second,
			fetch.ResolveTimeout, 0, 0},
		{"Timeout while dialing", fetch.Options{Dial: neverDial,
			Timeout: 3 * time.Second}, silent, "http://a.test/", 3 * time.Second,
			fetch.ConnectTimeout, 0, 0},
		{"Timeout in the handshake", fetch.Options{Timeout: 3 * time.Second},
			func(s *session) { _, _ = s.br.WriteTo(discard{}) }, "https://a.test/",
			3 * time.Second, fetch.TLSTimeout, 0, 0},

		// The first byte arrives at once, the eleventh after 10 s. The 11 bytes may take 10 s and
		// the time of 11 bytes at the minimum rate.
		{"a body byte by byte", fetch.Options{}, drip(ok + "\r\nx"), "http://a.test/",
			10*time.Second + 11*time.Second/1024, 0, fetch.CutSlow, 11},
		{"a body at exactly MinRate", fetch.Options{MinRate: 1, Timeout: 30500 * time.Millisecond},
			drip(ok + "\r\nx"), "http://a.test/", 30500 * time.Millisecond, 0, fetch.CutTime, 31},
		{"a body that stops", fetch.Options{}, func(s *session) {
			s.request()
			s.say(ok + "\r\n" + strings.Repeat("x", 2048))
			silent(s)
		}, "http://a.test/", 12 * time.Second, 0, fetch.CutSlow, 2048},
		{"slow body without MinRate", fetch.Options{MinRate: -1, Timeout: 30500 * time.Millisecond},
			drip(ok + "\r\nx"), "http://a.test/", 30500 * time.Millisecond, 0, fetch.CutTime, 31},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, stop := inMemory(t, tt.opts, tt.serve)
				defer stop()
				start := time.Now()
				if tt.kind != 0 {
					e := fails(t, c, tt.url)
					require.Equal(t, tt.after, time.Since(start))
					require.Equal(t, tt.kind, e.Kind, "%v", e)
					require.True(t, e.Timeout() && e.Temporary())
					return
				}
				r := get(t, c, tt.url)
				require.Equal(t, tt.after, time.Since(start))
				require.Equal(t, tt.cut, r.Truncated)
				require.Equal(t, tt.cut, r.RawCut)
				require.Len(t, r.Body, tt.body)
			})
		})
	}
}

func TestWatchEndsWithItsExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fetch.LateCheck(func(error) { t.Error("the timer was set once more") })
		time.Sleep(time.Hour)
	})
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
