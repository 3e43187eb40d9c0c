package schedulerhttp_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/spinneret-go/spinneret/scheduler/schedulerhttp"
)

// shared is a connection of HTTP/2.
type shared struct{ closing }

func (*shared) ConnectionState() tls.ConnectionState {
	return tls.ConnectionState{NegotiatedProtocol: "h2"}
}

// TestARefusedStream is sent again on the same connection, with another lease (RFC 9113, 8.7). A layer that
// sends everything twice looks the same, but does so each time.
func TestARefusedStream(t *testing.T) {
	for refusals, wants := range map[int]string{0: "", 1: "", 2: "", 6: "was asked 6 times"} {
		synctest.Test(t, func(t *testing.T) {
			conn, left, start := &shared{}, refusals, time.Now()
			transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
				trace := httptrace.ContextClientTrace(r.Context())
				for range 2 {
					trace.GetConn("a.test:443")
					trace.GotConn(httptrace.GotConnInfo{Conn: conn, Reused: true})
					if r.Context().Err() != nil {
						return nil, r.Context().Err()
					}
					wroteHead(trace)
					text, err := io.ReadAll(r.Body)
					require.NoError(t, err)
					require.Equal(t, "text", string(text))
					if left--; left < 0 {
						break
					}
				}
				return &http.Response{StatusCode: http.StatusOK, ProtoMajor: 2, Body: http.NoBody, Request: r}, nil
			}), scheduler.Options{HostDelay: time.Minute})
			r, err := http.NewRequest(http.MethodPost, "https://a.test/", strings.NewReader("text"))
			require.NoError(t, err)
			_, err = transport.RoundTrip(r)
			if wants == "" {
				require.NoError(t, err)
				require.Equal(t, time.Duration(refusals)*time.Minute, time.Since(start))
				require.Zero(t, transport.Hosts().Explain("a.test").Failures)
			} else {
				require.ErrorContains(t, err, wants)
			}
			require.False(t, conn.closed.Load())
			require.Zero(t, transport.Hosts().Stats().Out)
		})
	}
}

// quic is the connection that HTTP/3 reports.
type quic struct{ net.Conn }

func (quic) RemoteAddr() net.Addr { return &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443} }

func (quic) Close() error { panic("the connection has requests of others") }

// TestTwoHostsOfOneAddressOverHTTP3: the second request is given up, and gets the next turn.
func TestTwoHostsOfOneAddressOverHTTP3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(r.Context())
			trace.GetConn(r.URL.Host + ":443")
			trace.GotConn(httptrace.GotConnInfo{Conn: &quic{}, Reused: true})
			if err := r.Context().Err(); err != nil {
				return nil, err
			}
			return &http.Response{StatusCode: http.StatusOK, ProtoMajor: 3, Body: http.NoBody, Request: r}, nil
		}), scheduler.Options{AddrDelay: time.Second})
		for _, host := range []string{"a.test", "b.test"} {
			_, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "https://"+host+"/", nil))
			require.NoError(t, err)
		}
		require.Equal(t, time.Second, time.Since(start))
	})
}
