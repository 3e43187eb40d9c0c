package fetch_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/stretchr/testify/require"
)

// A server of HTTP/2 that answers early still gets the whole body of the request, as from net/http.
func TestAnAnswerBeforeTheBodyIsSent(t *testing.T) {
	srv := httptest.NewTLSServer(nil)
	certificate := &tls.Config{Certificates: srv.TLS.Certificates, NextProtos: []string{"h2"}}
	srv.Close()
	const pieces = 100
	for name, end := range map[string]string{"no body": "", "a body": "\x00\x00\x04\x00\x01\x00\x00\x00\x01done"} {
		got := make(chan int, 1)
		base := listen(t, overTLS(certificate, func(s *session) {
			if !requested(s) {
				return
			}
			s.say(string(frame(frameSettings, 0, 0)))
			flags := "\x05" // END_HEADERS and END_STREAM
			if end != "" {
				flags = "\x04"
			}
			s.say("\x00\x00\x01\x01" + flags + "\x00\x00\x00\x01\x88" + end)
			sum := 0
			for head := make([]byte, 9); ; {
				_, err := io.ReadFull(s.br, head)
				n := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
				const frameData, frameReset = 0, 3
				if head[3] == frameData {
					sum += n
				}
				if err != nil || head[3] == frameReset || head[3] == frameData && head[4]&1 != 0 {
					got <- sum
					return
				}
				if _, err := s.br.Discard(n); err != nil {
					return
				}
			}
		}))
		c := newClient(t, fetch.Options{TLSConfig: &tls.Config{InsecureSkipVerify: true}})
		body, sent := io.Pipe()
		req, err := http.NewRequest(http.MethodPost, strings.Replace(base, "http:", "https:", 1), body)
		require.NoError(t, err)
		resp, err := c.Transport().RoundTrip(req)
		require.NoError(t, err)
		_, err = io.ReadAll(resp.Body)
		require.NoError(t, err)
		if end == "" {
			require.NoError(t, resp.Body.Close()) // of a body, net/http takes that for the end of the exchange
		}
		for range pieces {
			_, err = sent.Write([]byte("x"))
			require.NoError(t, err, name)
		}
		require.NoError(t, sent.Close())
		require.Equal(t, pieces, <-got, name)
		require.NoError(t, resp.Body.Close())
	}
}
