package fetch_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/internal/memnet"
	"github.com/stretchr/testify/require"
)

// inMemory2 returns a client whose https://example.com/ is served by handler over HTTP/2 in this
// process, over connections that wrap has wrapped. stop must be called before the bubble ends.
func inMemory2(
	t *testing.T, opts fetch.Options, cert tls.Certificate, handler http.HandlerFunc, wrap ...func(net.Conn) net.Conn,
) (c *fetch.Client, stop func()) {
	network := memnet.New()
	l, err := network.Listen("example.com")
	require.NoError(t, err)
	srv := &http.Server{
		Handler:   handler,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}},
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	go func() { _ = srv.ServeTLS(l, "", "") }()
	opts.Reach = fetch.Loopback
	opts.Resolve = resolveTo("127.0.0.1")
	opts.Dial = func(ctx context.Context, proto, _ string) (net.Conn, error) {
		conn, err := network.Dial(ctx, proto, "example.com")
		for _, w := range wrap {
			if err == nil {
				conn = w(conn)
			}
		}
		return conn, err
	}
	opts.TLSConfig = &tls.Config{RootCAs: x509.NewCertPool()}
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	require.NoError(t, err)
	opts.TLSConfig.RootCAs.AddCert(leaf)
	c, err = fetch.New(opts)
	require.NoError(t, err)
	return c, func() {
		c.CloseIdleConnections()
		srv.Close()
		time.Sleep(time.Minute) // of fake time, in which sleeping handlers wake up and return
	}
}

// The guards that measure time and bytes also apply to HTTP/2, where net/http makes its own
// connections.
func TestGuardsOverHTTP2(t *testing.T) {
	srv := httptest.NewTLSServer(nil)
	cert := srv.TLS.Certificates[0]
	srv.Close()
	flush := func(w http.ResponseWriter) { w.(http.Flusher).Flush() }
	tests := []struct {
		name    string
		opts    fetch.Options
		handler http.HandlerFunc
		after   time.Duration
		kind    fetch.Kind // of the error
		cut     fetch.Kind
		body    int // bytes kept
	}{
		{"no answer", fetch.Options{}, func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}, 20 * time.Second, fetch.HeadTimeout, 0, 0},
		{"a body that stops", fetch.Options{}, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("x", 2048))
			flush(w)
			<-r.Context().Done()
		}, 12 * time.Second, 0, fetch.CutSlow, 2048},
		{"a body byte by byte", fetch.Options{MinRate: -1, Timeout: 5500 * time.Millisecond},
			func(w http.ResponseWriter, r *http.Request) {
				for r.Context().Err() == nil {
					_, _ = io.WriteString(w, "x")
					flush(w)
					time.Sleep(time.Second)
				}
			}, 5500 * time.Millisecond, 0, fetch.CutTime, 6},
		{"an endless body", fetch.Options{MaxBody: 100_000},
			func(w http.ResponseWriter, r *http.Request) {
				for r.Context().Err() == nil {
					_, _ = io.WriteString(w, strings.Repeat("x", 1000))
				}
			}, 0, 0, fetch.CutLength, 100_000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leaf, err := x509.ParseCertificate(cert.Certificate[0])
				require.NoError(t, err)
				// Fake time begins in 2000, and the certificate may only be valid from later on.
				time.Sleep(time.Until(leaf.NotBefore.Add(time.Hour)))
				c, stop := inMemory2(t, tt.opts, cert, tt.handler)
				defer stop()
				start := time.Now()
				if tt.kind != 0 {
					require.Equal(t, tt.kind, fails(t, c, "https://example.com/").Kind)
					require.Equal(t, tt.after, time.Since(start))
					return
				}
				r := get(t, c, "https://example.com/")
				require.Equal(t, "HTTP/2.0", r.Proto)
				require.Equal(t, tt.cut, r.Truncated)
				require.Len(t, r.Body, tt.body)
				require.Equal(t, tt.after, time.Since(start))
			})
		})
	}
}

// An endless server can send at most MaxBody plus the unread part of a stream.
func TestEndlessBodyCostsBoundedBytesOverHTTP2(t *testing.T) {
	srv := httptest.NewTLSServer(nil)
	cert := srv.TLS.Certificates[0]
	srv.Close()
	synctest.Test(t, func(t *testing.T) {
		leaf, err := x509.ParseCertificate(cert.Certificate[0])
		require.NoError(t, err)
		time.Sleep(time.Until(leaf.NotBefore.Add(time.Hour)))
		var sent atomic.Int64
		c, stop := inMemory2(t, fetch.Options{MaxBody: 100_000}, cert,
			func(w http.ResponseWriter, r *http.Request) {
				for line := []byte(strings.Repeat("x", 1000)); r.Context().Err() == nil; {
					n, _ := w.Write(line)
					sent.Add(int64(n))
				}
			})
		r := get(t, c, "https://example.com/")
		stop()
		require.Equal(t, fetch.CutLength, r.RawCut)
		require.LessOrEqual(t, sent.Load(), int64(100_000+1<<20+64<<10))
	})
}

// A server cannot send frames without end that belong to no response, neither before a response nor
// during one. net/http drops them and logs each.
func TestFramesWithoutEnd(t *testing.T) {
	srv := httptest.NewTLSServer(nil)
	cert := srv.TLS.Certificates[0]
	srv.Close()
	settings := "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	headers := "\x00\x00\x01\x01\x04\x00\x00\x00\x01\x88" // :status 200 of stream 1, and no more
	ping := strings.Repeat("\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678", 1000)
	priority := strings.Repeat("\x00\x00\x05\x02\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00", 1000)
	for name, tt := range map[string]struct {
		begin, frames string
		most          int64
		want          error
	}{
		"before the response": {settings, priority, 1 << 20, fetch.HeaderTooLarge},
		"during the response": {settings + headers, priority, 4 << 20, nil},
		"pings":               {settings, ping, 1 << 20, fetch.HeaderTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			var logged, sent atomic.Int64
			log.SetOutput(writerFunc(func(p []byte) (int, error) {
				logged.Add(int64(len(p)))
				return len(p), nil
			}))
			defer log.SetOutput(os.Stderr)
			l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
				Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"},
			})
			require.NoError(t, err)
			defer l.Close()
			done := accept(l, func(s *session) {
				if !requested(s) {
					return
				}
				s.say(tt.begin)
				go func() { _, _ = io.Copy(io.Discard, s.br) }()
				for s.say(tt.frames) {
					sent.Add(int64(len(tt.frames)))
				}
			})
			// No limit on time may come first, however slowly megabytes of frames are read and logged here.
			c := newClient(t, fetch.Options{
				Timeout: -1, HeadTimeout: time.Hour, MinRate: -1, TLSConfig: &tls.Config{InsecureSkipVerify: true},
			})
			r, err := c.Get(t.Context(), "https://"+l.Addr().String()+"/")
			if tt.want != nil {
				require.ErrorIs(t, err, tt.want)
			} else {
				require.NoError(t, err)
				require.Equal(t, fetch.CutDisconnect, r.RawCut)
			}
			l.Close()
			done()
			const buffered = 8 << 20 // by the system, on both sides
			require.Less(t, sent.Load(), tt.most+buffered)
			require.Less(t, logged.Load(), 20*tt.most)
		})
	}
}

// requested reads up to the end of a request over HTTP/2 without a body.
func requested(s *session) bool {
	frame := make([]byte, 9)
	if _, err := s.br.Discard(24); err != nil { // the preface
		return false
	}
	for frame[3] != 1 { // HEADERS
		if _, err := io.ReadFull(s.br, frame); err != nil {
			return false
		}
		if _, err := s.br.Discard(int(frame[0])<<16 | int(frame[1])<<8 | int(frame[2])); err != nil {
			return false
		}
	}
	return true
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// Many small frames of a body, with long pauses and pings in between, are no flood.
func TestSmallFrames(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range 20_000 {
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
		}
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	c := newClient(t, fetch.Options{Timeout: -1, MinRate: -1, TLSConfig: &tls.Config{InsecureSkipVerify: true}})
	for range 2 {
		r, err := c.Get(t.Context(), s.URL)
		require.NoError(t, err)
		require.Equal(t, "HTTP/2.0", r.Proto)
		require.Equal(t, fetch.Whole, r.Truncated)
		require.Len(t, r.Body, 20_000)
	}
}

// A stream or a connection of HTTP/2 that ends before the answer is no more lasting a fault than a
// connection of HTTP/1 that does.
func TestStreamsThatEndEarly(t *testing.T) {
	srv := httptest.NewTLSServer(nil)
	config := &tls.Config{Certificates: srv.TLS.Certificates, NextProtos: []string{"h2"}}
	srv.Close()
	const preface, settings, headers = 24, "\x00\x00\x00\x04\x00\x00\x00\x00\x00", 1
	const reset, goAway = "\x00\x00\x04\x03\x00\x00\x00\x00\x01", "\x00\x00\x08\x07\x00\x00\x00\x00\x00\x00\x00\x00\x01"
	for name, frame := range map[string]string{
		"NO_ERROR": reset + "\x00\x00\x00\x00", "INTERNAL_ERROR": reset + "\x00\x00\x00\x02", "CANCEL": reset + "\x00\x00\x00\x08",
		"ENHANCE_YOUR_CALM": reset + "\x00\x00\x00\x0b", "HTTP_1_1_REQUIRED": reset + "\x00\x00\x00\x0d",
		"GOAWAY": goAway + "\x00\x00\x00\x00", "GOAWAY with INTERNAL_ERROR": goAway + "\x00\x00\x00\x02",
		"GOAWAY that quotes net/http": "\x00\x00\x21" + goAway[3:] + "\x00\x00\x00\x02header list larger than x",
	} {
		l, err := tls.Listen("tcp", "127.0.0.1:0", config)
		require.NoError(t, err)
		done := accept(l, func(s *session) {
			_, _ = s.br.Discard(preface)
			s.say(settings)
			for head := make([]byte, 9); ; {
				if _, err := io.ReadFull(s.br, head); err != nil {
					return
				}
				_, _ = s.br.Discard(int(head[1])<<8 | int(head[2]))
				if head[3] == headers {
					if s.say(frame); strings.HasPrefix(frame, goAway) {
						return
					}
				}
			}
		})
		c := newClient(t, fetch.Options{TLSConfig: &tls.Config{InsecureSkipVerify: true}})
		failure := fails(t, c, "https://"+l.Addr().String()+"/")
		require.Equal(t, fetch.Disconnected, failure.Kind, "%s: %v", name, failure)
		require.True(t, failure.Temporary())
		c.CloseIdleConnections()
		l.Close()
		done()
	}
}

// That the server wants a certificate is known after the handshake of TLS 1.3, and is not an answer.
func TestCertificateRequired(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, http2 := range []bool{false, true} {
			srv := httptest.NewUnstartedServer(nil)
			srv.Config.ErrorLog = log.New(io.Discard, "", 0)
			srv.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: version, MaxVersion: version}
			srv.EnableHTTP2 = http2
			srv.StartTLS()
			c := newClient(t, fetch.Options{TLSConfig: &tls.Config{InsecureSkipVerify: true}})
			failure := fails(t, c, srv.URL)
			srv.Close()
			if http2 && version == tls.VersionTLS13 && failure.Kind == fetch.Disconnected {
				continue // net/http keeps the alert to itself if it comes before the request is sent
			}
			require.Equal(t, fetch.TLS, failure.Kind, "%x: %v", version, failure)
			require.False(t, failure.Temporary())
		}
	}
}
