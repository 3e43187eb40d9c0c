package fetch_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/internal/memnet"
	"github.com/stretchr/testify/require"
)

// server serves one connection. It is called for each, and the connection is closed afterwards.
type server func(s *session)

// session is the server's side of a connection.
type session struct {
	net.Conn
	br *bufio.Reader
}

// request reads the head of one request; "" means that the client has closed the connection.
func (s *session) request() string {
	var head strings.Builder
	for {
		line, err := s.br.ReadString('\n')
		if err != nil {
			return ""
		}
		head.WriteString(line)
		if line == "\r\n" {
			return head.String()
		}
	}
}

// say writes text and reports whether that succeeded.
func (s *session) say(text string) bool {
	_, err := io.WriteString(s, text)
	return err == nil
}

// says returns a server that answers one request with text and closes.
func says(text string) server {
	return func(s *session) {
		s.request()
		s.say(text)
	}
}

// repeats returns a server that answers with head and then repeats text forever. It reports the
// number of bytes that it has written.
func repeats(head, text string, sent *atomic.Int64) server {
	return func(s *session) {
		s.request()
		n := int64(len(head))
		for ok := s.say(head); ok; n += int64(len(text)) {
			ok = s.say(text)
		}
		sent.Store(n)
	}
}

// accept runs serve on each connection of l until l is closed. The returned function waits for
// that.
func accept(l net.Listener, serve server) (wait func()) {
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				serve(&session{Conn: conn, br: bufio.NewReader(conn)})
			})
		}
	})
	return wg.Wait
}

// listen runs serve on a loopback socket until the test ends, and returns its "http://host:port".
func listen(t *testing.T, serve server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	wait := accept(l, serve)
	t.Cleanup(wait)
	t.Cleanup(func() { l.Close() })
	return "http://" + l.Addr().String()
}

// newClient returns a client for loopback, unless opts sets another Reach. It is closed with the
// test, before the servers that were started earlier wait for their connections.
func newClient(t *testing.T, opts fetch.Options) *fetch.Client {
	t.Helper()
	if opts.UserAgent == "" {
		opts.Reach = fetch.Loopback
	}
	c, err := fetch.New(opts)
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// get is a Get that must return a response.
func get(t *testing.T, c *fetch.Client, url string) *fetch.Response {
	t.Helper()
	r, err := c.Get(t.Context(), url)
	require.NoError(t, err)
	return r
}

// fails is a Get that must fail.
func fails(t *testing.T, c *fetch.Client, url string) *fetch.Error {
	t.Helper()
	r, err := c.Get(t.Context(), url)
	require.Nil(t, r)
	var e *fetch.Error
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, e.Kind)
	require.Equal(t, url, e.URL)
	return e
}

// inMemory returns a client whose host a.test is served by serve in this process, for tests in a
// synctest bubble. stop must be called before the bubble ends.
func inMemory(t *testing.T, opts fetch.Options, serve server) (c *fetch.Client, stop func()) {
	t.Helper()
	network := memnet.New()
	l, err := network.Listen("a.test")
	require.NoError(t, err)
	wait := accept(l, serve)
	if opts.Dial == nil {
		opts.Dial = func(ctx context.Context, proto, _ string) (net.Conn, error) {
			return network.Dial(ctx, proto, "a.test")
		}
	}
	if opts.Resolve == nil {
		opts.Resolve = resolveTo("127.0.0.1")
	}
	opts.Reach = fetch.Loopback
	c, err = fetch.New(opts)
	require.NoError(t, err)
	return c, func() {
		c.CloseIdleConnections()
		l.Close()
		wait()
	}
}

func resolveTo(addrs ...string) func(context.Context, string) ([]netip.Addr, error) {
	return func(context.Context, string) (found []netip.Addr, err error) {
		for _, a := range addrs {
			found = append(found, netip.MustParseAddr(a))
		}
		return found, nil
	}
}
