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
// process. stop must be called before the bubble ends.
func inMemory2(
	t *testing.T, opts fetch.Options, cert tls.Certificate, handler http.HandlerFunc,
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
		return network.Dial(ctx, proto, "example.com")
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
				require.Equal(t, tt.after, r.Done.Sub(start))
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
