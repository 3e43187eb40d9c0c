package fetch_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/stretchr/testify/require"
)

// However large MaxHeader is, connections of HTTP/2 are not taken for flooded.
func TestHugeMaxHeader(t *testing.T) {
	base, opts := tlsServer(t, true)
	opts.MaxHeader = math.MaxInt64
	c := newClient(t, opts)
	for range 10 {
		require.Equal(t, "HTTP/2.0", get(t, c, base).Proto)
	}
}

// A request body in small pieces makes a server send small updates of its windows.
func TestUploadInSmallPieces(t *testing.T) {
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	certificate := &tls.Config{Certificates: srv.TLS.Certificates, NextProtos: []string{"h2"}}
	base := listen(t, overTLS(certificate, func(s *session) {
		if !requested(s) {
			return
		}
		s.say(string(frame(frameSettings, 0, 0)))
		for head := make([]byte, 9); ; {
			if _, err := io.ReadFull(s.br, head); err != nil {
				return
			}
			n := uint32(head[0])<<16 | uint32(head[1])<<8 | uint32(head[2])
			if _, err := s.br.Discard(int(n)); err != nil {
				return
			}
			const frameData, frameWindowUpdate = 0, 8
			stream := binary.BigEndian.Uint32(head[5:])
			switch {
			case head[3] == frameData && head[4]&1 != 0: // the end of the stream
				s.say("\x00\x00\x01\x01\x05" + string(head[5:]) + "\x88")
			case head[3] == frameData:
				s.say(string(frame(frameWindowUpdate, 0, 0, n)))
				s.say(string(frame(frameWindowUpdate, 0, stream, n)))
			}
		}
	}))
	c := newClient(t, fetch.Options{TLSConfig: &tls.Config{InsecureSkipVerify: true}})
	body := iotest.OneByteReader(strings.NewReader(strings.Repeat("x", 20_000)))
	req, err := http.NewRequest(http.MethodPost, strings.Replace(base, "http:", "https:", 1), body)
	require.NoError(t, err)
	resp, err := c.Transport().RoundTrip(req)
	require.NoError(t, err)
	require.Equal(t, 2, resp.ProtoMajor)
	require.NoError(t, resp.Body.Close())
}

// An old server that sends each byte by itself, in a long record, is no flood.
func TestSmallChunksInLongRecords(t *testing.T) {
	srv := httptest.NewTLSServer(nil)
	config := &tls.Config{
		Certificates: srv.TLS.Certificates, MaxVersion: tls.VersionTLS12,
		CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256},
	}
	srv.Close()
	const size = 80_000
	base := listen(t, overTLS(config, func(s *session) {
		s.request()
		s.say(ok + "Transfer-Encoding: chunked\r\n\r\n")
		for range size {
			if !s.say("1\r\nx\r\n") {
				return
			}
		}
		s.say("0\r\n\r\n")
	}))
	c := newClient(t, fetch.Options{TLSConfig: &tls.Config{InsecureSkipVerify: true, CipherSuites: config.CipherSuites}})
	r := get(t, c, strings.Replace(base, "http:", "https:", 1))
	require.Equal(t, fetch.Whole, r.Truncated)
	require.Len(t, r.Body, size)
}

// A slowLine delivers nothing to the server while it is held.
type slowLine struct {
	net.Conn
	mu   sync.Mutex
	held bool
	kept []byte
}

func (l *slowLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held {
		l.kept = append(l.kept, p...)
		return len(p), nil
	}
	return l.Conn.Write(p)
}

func (l *slowLine) hold(held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held = held; !held {
		_, _ = l.Conn.Write(l.kept)
	}
}

// Bodies that nobody wanted may still come when their requests are over, whether their heads had come
// or not. The next request on the connection is innocent, and so is the server.
func TestUnwantedBodies(t *testing.T) {
	srv := httptest.NewTLSServer(nil)
	cert := srv.TLS.Certificates[0]
	srv.Close()
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	require.NoError(t, err)
	for _, n := range []int{1, 4, 16, -4, -16} { // negative: before the head
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Until(leaf.NotBefore.Add(time.Hour)))
			closed := make(chan struct{})
			early := n < 0
			n := max(n, -n)
			var line *slowLine
			c, stop := inMemory2(t, fetch.Options{}, cert, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/big" {
					return
				}
				if !early {
					_ = http.NewResponseController(w).Flush()
				}
				<-closed
				_, _ = w.Write(make([]byte, 1<<20))
			}, func(conn net.Conn) net.Conn {
				line = &slowLine{Conn: conn}
				return line
			})
			defer stop()
			get(t, c, "https://example.com/")
			ctx, cancel := context.WithCancel(t.Context())
			var over sync.WaitGroup
			leave := make(chan struct{})
			for range n {
				over.Go(func() {
					resp, err := c.Transport().RoundTrip(request(t, "https://example.com/big").WithContext(ctx))
					if early {
						require.ErrorIs(t, err, fetch.Canceled)
						return
					}
					require.NoError(t, err)
					<-leave
					require.NoError(t, resp.Body.Close())
				})
			}
			synctest.Wait()
			line.hold(true)
			if close(leave); early {
				cancel()
			}
			over.Wait()
			defer cancel()
			next := make(chan error)
			go func() {
				_, err := c.Get(t.Context(), "https://example.com/")
				next <- err
			}()
			synctest.Wait()
			close(closed)
			synctest.Wait()
			line.hold(false)
			require.NoError(t, <-next, "after %d bodies, early: %v", n, early)
		})
	}
}
