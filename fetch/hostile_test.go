package fetch_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/internal/memnet"
	"github.com/stretchr/testify/require"
)

// metered is a connection that counts the bytes read from it.
type metered struct {
	net.Conn
	read *atomic.Int64
}

func (c *metered) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.read.Add(int64(n))
	return n, err
}

// hostileWeb starts a web with all traps, and returns a client for it with the default limits, and
// the number of bytes that its connections have read.
func hostileWeb(t *testing.T) (web *webtest.Web, c *fetch.Client, read *atomic.Int64) {
	web, err := webtest.Start(webtest.Options{
		Hosts: 2, Pages: 3, Network: memnet.New(),
		Traits: func(host int) webtest.Traits {
			return webtest.Traits{Traps: webtest.TrapAll, Refuse: host == 1}
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, web.Close()) })
	read = new(atomic.Int64)
	c = newClient(t, fetch.Options{
		Resolve: web.Resolve,
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := web.Dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &metered{conn, read}, nil
		},
	})
	return web, c, read
}

// Each hostile path of the virtual web costs at most its limit, in bytes on the wire and in time,
// and only one request.
func TestHostileHostsCostWhatTheLimitsSay(t *testing.T) {
	const (
		page  = 2000                 // a small answer with its head
		whole = fetch.DefaultMaxBody // of a body
		head  = fetch.DefaultMaxHeader
		slack = 8 << 10 // the transport's buffer
	)
	tests := []struct {
		trap  string
		bytes int64
		after time.Duration // exactly
		kind  fetch.Kind    // of the error
		cut   fetch.Kind
		body  int // bytes; negative means any number
		check func(t *testing.T, r *fetch.Response)
	}{
		{trap: "huge", bytes: whole + slack, cut: fetch.CutLength, body: whole},
		{trap: "endless", bytes: whole + 6*whole/4096 + slack, cut: fetch.CutLength, body: whole},
		{trap: "bomb", bytes: 1100 << 10, cut: fetch.CutLength, body: whole},
		{trap: "drip", bytes: page, after: 10*time.Second + 101*time.Second/1024,
			cut: fetch.CutSlow, body: 101},
		{trap: "short", bytes: page, cut: fetch.CutDisconnect, body: 1000},
		{trap: "hang", bytes: 0, after: fetch.DefaultHeadTimeout, kind: fetch.HeadTimeout},
		{trap: "headers", bytes: head + slack, kind: fetch.HeaderTooLarge},
		{trap: "garbage", bytes: page, kind: fetch.Protocol},
		{trap: "loop/a", bytes: page, body: -1, check: leadsTo("/trap/loop/b")},
		{trap: "chain/20", bytes: page, body: -1, check: leadsTo("/trap/chain/19")},
		{trap: "noloc", bytes: page, body: -1, check: leadsTo("")},
		{trap: "429", bytes: page, body: -1, check: asksFor(time.Hour)},
		{trap: "503", bytes: page, body: -1, check: asksFor(time.Hour)},
	}
	for _, tt := range tests {
		t.Run(tt.trap, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web, c, read := hostileWeb(t)
				start := time.Now()
				r, err := c.Get(t.Context(), "http://h00000.vweb.test/trap/"+tt.trap)
				require.Equal(t, tt.after, time.Since(start))
				require.LessOrEqual(t, read.Load(), tt.bytes)
				require.Len(t, web.Log(), 1)
				if tt.kind != 0 {
					require.ErrorIs(t, err, tt.kind)
					return
				}
				require.NoError(t, err)
				require.Equal(t, tt.cut, r.Truncated)
				if tt.body >= 0 {
					require.Len(t, r.Body, tt.body)
				}
				if tt.check != nil {
					tt.check(t, r)
				}
			})
		})
	}
}

func leadsTo(path string) func(*testing.T, *fetch.Response) {
	return func(t *testing.T, r *fetch.Response) {
		require.Equal(t, 302, r.Status)
		require.Equal(t, path, strings.TrimPrefix(r.Location, "http://h00000.vweb.test"))
	}
}

func asksFor(wait time.Duration) func(*testing.T, *fetch.Response) {
	return func(t *testing.T, r *fetch.Response) { require.Equal(t, wait, r.RetryAfter) }
}

func TestHostThatRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c, read := hostileWeb(t)
		require.Equal(t, fetch.Connect, fails(t, c, "http://h00001.vweb.test/").Kind)
		require.Zero(t, read.Load())
	})
}
