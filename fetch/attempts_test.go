package fetch_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/internal/memnet"
	"github.com/stretchr/testify/require"
)

// The types of HTTP/2 frames (RFC 9113, 6) that a refusal needs.
const (
	frameHeaders   = 1
	frameRSTStream = 3
	frameSettings  = 4
	frameGoAway    = 7
)

func frame(kind, flags byte, stream uint32, payload ...uint32) []byte {
	b := []byte{0, 0, byte(4 * len(payload)), kind, flags}
	b = binary.BigEndian.AppendUint32(b, stream)
	for _, word := range payload {
		b = binary.BigEndian.AppendUint32(b, word)
	}
	return b
}

// refuse speaks HTTP/2 on conn and responds to each request with the frame that refusal returns for
// its stream, until it returns none. It calls asked for each request.
func refuse(conn net.Conn, asked func(), refusal func(stream uint32) []byte) {
	defer conn.Close()
	preface := make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	if _, err := io.ReadFull(conn, preface); err != nil {
		return
	}
	// A pipe has no buffer, and both sides must read while they write.
	answers := make(chan []byte, 16)
	defer close(answers)
	go func() {
		for answer := range answers {
			_, _ = conn.Write(answer)
		}
	}()
	answers <- frame(frameSettings, 0, 0)
	for {
		var head [9]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return
		}
		size := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
		if _, err := io.CopyN(io.Discard, conn, size); err != nil || head[3] != frameHeaders {
			continue
		}
		asked()
		answer := refusal(binary.BigEndian.Uint32(head[5:]))
		if answer == nil {
			return
		}
		answers <- answer
	}
}

// refusing2 returns a client whose https://example.com/ refuses each request, and counters of
// requests and connections.
func refusing2(
	t *testing.T, cert tls.Certificate, refusal func(stream uint32) []byte,
) (c *fetch.Client, asked, dialed *atomic.Int64, stop func()) {
	network := memnet.New()
	l, err := network.Listen("example.com")
	require.NoError(t, err)
	asked, dialed = new(atomic.Int64), new(atomic.Int64)
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			dialed.Add(1)
			conns.Go(func() {
				config := &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}}
				refuse(tls.Server(conn, config), func() { asked.Add(1) }, refusal)
			})
		}
	})
	roots := x509.NewCertPool()
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	require.NoError(t, err)
	time.Sleep(time.Until(leaf.NotBefore.Add(time.Hour)))
	roots.AddCert(leaf)
	c, err = fetch.New(fetch.Options{
		Reach: fetch.Loopback, Resolve: resolveTo("127.0.0.1"), TLSConfig: &tls.Config{RootCAs: roots},
		Dial: func(ctx context.Context, proto, _ string) (net.Conn, error) {
			return network.Dial(ctx, proto, "example.com")
		},
	})
	require.NoError(t, err)
	return c, asked, dialed, func() {
		c.CloseIdleConnections()
		l.Close()
		conns.Wait()
	}
}

// net/http retries a request that an HTTP/2 server refuses on new connections, endlessly and
// without a pause. One Get makes at most three requests.
func TestAttemptsAreBoundedOverHTTP2(t *testing.T) {
	srv := httptest.NewTLSServer(nil)
	cert := srv.TLS.Certificates[0]
	srv.Close()
	const noError, refusedStream, enhanceYourCalm = 0, 7, 11
	tests := []struct {
		name     string
		refusal  func(stream uint32) []byte
		attempts int // 0: any number up to the limit
		kind     fetch.Kind
	}{
		{"GOAWAY before any stream", func(uint32) []byte {
			return frame(frameGoAway, 0, 0, 0, noError)
		}, 0, fetch.TooManyAttempts},
		{"a refused stream", func(stream uint32) []byte {
			return frame(frameRSTStream, 0, stream, refusedStream)
		}, 0, fetch.TooManyAttempts},
		{"a refused stream and GOAWAY", func(stream uint32) []byte {
			return append(frame(frameRSTStream, 0, stream, refusedStream),
				frame(frameGoAway, 0, 0, stream, noError)...)
		}, 0, fetch.TooManyAttempts},
		{"GOAWAY with an error", func(uint32) []byte {
			return frame(frameGoAway, 0, 0, 0, enhanceYourCalm)
		}, 1, fetch.Disconnected},
		{"hanging up", func(uint32) []byte { return nil }, 1, fetch.Disconnected},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for range 20 { // where the transport chooses at random, it must choose both ways
				synctest.Test(t, func(t *testing.T) {
					c, asked, dialed, stop := refusing2(t, cert, tt.refusal)
					e := fails(t, c, "https://example.com/")
					require.Equal(t, tt.kind, e.Kind, "%v", e)
					require.True(t, e.Temporary())
					stop()
					if tt.attempts == 0 {
						require.Equal(t, 3, e.Attempts, "requests sent")
						require.LessOrEqual(t, asked.Load(), int64(3), "one may meet a server that has just said goodbye")
					} else {
						require.Equal(t, tt.attempts, e.Attempts)
						require.EqualValues(t, tt.attempts, asked.Load())
					}
					require.LessOrEqual(t, dialed.Load(), asked.Load()+1, "one dial may be late")
				})
			}
		})
	}
}

// net/http cannot repeat a request whose body is gone. That the server asks for it is still HTTP.
func TestGoAwayAfterABody(t *testing.T) {
	srv := httptest.NewTLSServer(nil)
	cert := srv.TLS.Certificates[0]
	srv.Close()
	synctest.Test(t, func(t *testing.T) {
		c, _, _, stop := refusing2(t, cert, func(uint32) []byte { return frame(frameGoAway, 0, 0, 0, 0) })
		defer stop()
		req := request(t, "https://example.com/")
		req.Method, req.Body, req.ContentLength = http.MethodPost, io.NopCloser(strings.NewReader("once")), 4
		_, err := c.Transport().RoundTrip(req)
		require.ErrorIs(t, err, fetch.Disconnected)
	})
}

// If a server drains and then answers, the response reports the number of attempts.
func TestAttemptsCountRefusedRequests(t *testing.T) {
	var n atomic.Int64
	base := listen(t, func(s *session) {
		for s.request() != "" && n.Add(1) != 2 {
			s.say(ok + "Content-Length: 2\r\n\r\nok")
		}
	})
	c := newClient(t, fetch.Options{})
	require.Equal(t, 1, get(t, c, base).Attempts)
	require.Equal(t, 2, get(t, c, base).Attempts, "the first attempt used a dead connection")
	require.EqualValues(t, 3, n.Load())
}

// However many idle connections turn out to be dead when reused, they cost at most two requests:
// the third and last goes to a new connection.
func TestTheLastAttemptHasANewConnection(t *testing.T) {
	for _, through := range []string{"", "http", "https"} {
		for _, answers := range []bool{true, false} {
			base, c := deadConnections(t, 10, answers, through)
			r, err := c.Get(t.Context(), base)
			if answers {
				require.NoError(t, err, through)
				require.Equal(t, 3, r.Attempts)
				continue
			}
			var e *fetch.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, fetch.Disconnected, e.Kind, "%s: %v", through, e)
			require.Equal(t, 3, e.Attempts)
		}
	}
}

// deadConnections returns a client with idle connections that break at the next request. New
// connections either answer or break. The server gets at most three more requests. It is also the
// proxy for requests of the scheme through; "" means none.
func deadConnections(t *testing.T, conns int, answers bool, through string) (base string, c *fetch.Client) {
	_, certificate, opts := proxies(t)
	var together sync.WaitGroup
	together.Add(conns)
	var late, asked atomic.Int64
	t.Cleanup(func() { require.LessOrEqual(t, asked.Load(), int64(3)) })
	serve := func(s *session) {
		s.request()
		if late.Load() == 0 {
			together.Done()
			together.Wait() // so that each has a separate connection
			s.say(ok + "Content-Length: 2\r\n\r\nok")
			if s.request() != "" {
				asked.Add(1)
			}
			return
		}
		asked.Add(1)
		if answers {
			s.say(ok + "Content-Length: 2\r\n\r\nok")
		}
	}
	base = listen(t, func(s *session) {
		if through == "https" {
			s.request() // CONNECT
			s.say("HTTP/1.1 200 OK\r\n\r\n")
			overTLS(certificate, serve)(s)
			return
		}
		serve(s)
	})
	if opts.MaxIdlePerHost = conns; through != "" {
		opts.Proxy = base
		base = strings.Replace(base, "http:", through+":", 1)
	}
	c = newClient(t, opts)
	var all sync.WaitGroup
	for range conns {
		all.Go(func() { _, err := c.Get(t.Context(), base); require.NoError(t, err) })
	}
	all.Wait()
	late.Store(1)
	return base, c
}

func TestErrorsCountAttempts(t *testing.T) {
	c := newClient(t, fetch.Options{})
	require.Equal(t, 1, fails(t, c, listen(t, func(s *session) { s.request() })).Attempts)
	require.Zero(t, fails(t, c, "http://127.0.0.1:1/").Attempts, "nothing was sent")
	require.Zero(t, fails(t, c, "http://[/").Attempts)
}

// The head of a request is recognized however it is split into writes, and a body is not part of
// it.
func TestDoSendsTheGivenRequest(t *testing.T) {
	var heads []string
	base := listen(t, func(s *session) {
		for head := s.request(); head != ""; head = s.request() {
			heads = append(heads, head)
			s.say(ok + "Content-Length: 5\r\n\r\n")
			if !strings.HasPrefix(head, "HEAD") {
				s.say("hello")
			}
		}
	})
	c := newClient(t, fetch.Options{})
	r, err := c.Do(t.Context(), fetch.Request{URL: base, Method: "HEAD",
		Header: http.Header{"Accept": {"image/*"}, "X-One": {"1"}}})
	require.NoError(t, err)
	require.Equal(t, fetch.Whole, r.Truncated)
	require.Empty(t, r.Body)
	require.Contains(t, heads[0], "\r\nAccept: image/*\r\n")
	require.Contains(t, heads[0], "\r\nX-One: 1\r\n")

	r, err = c.Do(t.Context(), fetch.Request{URL: base, MaxBody: 2})
	require.NoError(t, err)
	require.Equal(t, "he", string(r.Body))
	require.Equal(t, fetch.CutLength, r.Truncated)
	require.NotContains(t, heads[1], "X-One", "fields of one request must not reach the next")

	for _, bad := range []fetch.Request{
		{URL: base, Method: "POST"},
		{URL: base, Header: http.Header{"X y": {"1"}}},
		{URL: base, Header: http.Header{"X": {"1\r\nY: 2"}}},
	} {
		_, err := c.Do(t.Context(), bad)
		require.ErrorIs(t, err, fetch.BadURL, "%+v", bad)
	}
	require.Len(t, heads, 2)
}
