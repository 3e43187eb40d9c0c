package schedulerhttp_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/spinneret-go/spinneret/scheduler/schedulerhttp"
)

// A server of HTTP/2 that answers early still gets the whole body of the request, as from net/http.
func TestAnAnswerBeforeTheBodyIsSent(t *testing.T) {
	srv := httptest.NewTLSServer(nil)
	config := &tls.Config{Certificates: srv.TLS.Certificates, NextProtos: []string{"h2"}}
	srv.Close()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	require.NoError(t, err)
	defer listener.Close()
	got := make(chan int, 1)
	go func() {
		conn, err := listener.Accept()
		if assert.NoError(t, err) {
			got <- answerEarly(conn)
			conn.Close()
		}
	}()
	base := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	defer base.CloseIdleConnections()
	body, sent := io.Pipe()
	req, err := http.NewRequest(http.MethodPost, "https://"+listener.Addr().String(), body)
	require.NoError(t, err)
	resp, err := schedulerhttp.NewTransport(base, scheduler.Options{}).RoundTrip(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	for range 100 {
		_, err = sent.Write([]byte("x"))
		require.NoError(t, err)
	}
	require.NoError(t, sent.Close())
	require.Equal(t, 100, <-got)
}

// answerEarly answers the head of a request over HTTP/2, and returns how many bytes of the body follow.
func answerEarly(conn net.Conn) (body int) {
	if _, err := io.CopyN(io.Discard, conn, 24); err != nil { // the preface
		return -1
	}
	const data, headers, reset, settings = 0, 1, 3, 4
	for head := make([]byte, 9); ; {
		if _, err := io.ReadFull(conn, head); err != nil {
			return body
		}
		n := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
		if _, err := io.CopyN(io.Discard, conn, n); err != nil {
			return body
		}
		switch head[3] {
		case headers: // ":status: 200" with the flags END_HEADERS and END_STREAM
			_, _ = conn.Write(append([]byte{0, 0, 0, settings, 0, 0, 0, 0, 0, 0, 0, 1, headers, 5}, append(head[5:9:9], 0x88)...))
		case data:
			if body += int(n); head[4]&1 != 0 {
				return body
			}
		case reset:
			return body
		}
	}
}
