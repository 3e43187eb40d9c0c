package httpwire_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/httpwire"
)

// script is a connection that reads pieces, and then ends.
type script struct {
	net.Conn
	pieces [][]byte
}

func (s *script) Read(p []byte) (int, error) {
	if len(s.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.pieces[0])
	if s.pieces[0] = s.pieces[0][n:]; len(s.pieces[0]) == 0 {
		s.pieces = s.pieces[1:]
	}
	return n, nil
}

func (s *script) Write(p []byte) (int, error) { return len(p), nil }

// record returns the heads of an exchange that was read in pieces.
func record(maxBytes, maxFields int, pieces ...[]byte) (*httpwire.Heads, error) {
	conn := httpwire.New(&script{pieces: pieces}, maxBytes, maxFields)
	heads := conn.Begin()
	_, err := io.Copy(io.Discard, struct{ io.Reader }{conn})
	return heads, err
}

// split cuts b into pieces of n bytes.
func split(b []byte, n int) (pieces [][]byte) {
	for len(b) > 0 {
		n = min(n, len(b))
		pieces, b = append(pieces, b[:n:n]), b[n:]
	}
	return pieces
}

// finalHead returns the part of b that net/http parses as the head of the final response, and its
// status.
func finalHead(b []byte) ([]byte, *http.Response) {
	src := bytes.NewReader(b)
	br := bufio.NewReaderSize(src, 16)
	for {
		start := len(b) - src.Len() - br.Buffered()
		resp, err := http.ReadResponse(br, &http.Request{Method: http.MethodGet})
		if err != nil {
			return nil, nil
		}
		end := len(b) - src.Len() - br.Buffered()
		if resp.StatusCode < 100 || resp.StatusCode > 199 || resp.StatusCode == 101 {
			return b[start:end], resp
		}
	}
}

// FuzzHeads checks that where net/http finds a response, the recorder finds the same head, however
// it is split into pieces.
func FuzzHeads(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody"), uint16(5))
	f.Add([]byte("HTTP/1.1 103 Hints\r\n\r\nHTTP/1.0 404\nA: b\n c\n\n\n"), uint16(40))
	f.Add([]byte("HTTP/1.1  100 \n\nHTTP/1.1 101 Go\r\n\r\n"), uint16(1))
	f.Fuzz(func(t *testing.T, in []byte, at uint16) {
		want, resp := finalHead(in)
		if want == nil {
			return
		}
		cut := min(int(at), len(in))
		for _, pieces := range [][][]byte{split(in, len(in)), append(split(in[:cut], cut+1), in[cut:]), split(in, 1)} {
			heads, err := record(math.MaxInt, math.MaxInt, pieces...)
			_, got, ok := heads.Take(resp)
			if err != nil || !ok || !bytes.Equal(got, want) {
				t.Errorf("%q: %q, %t, %v, want %q", in, got, ok, err, want)
			}
		}
	})
}

// A server that sends before it is asked can make the recorder and net/http see different heads. The
// recorded head must then not be used for the response.
func TestHeadsMustFitTheResponse(t *testing.T) {
	trusted := func(status int, text string) bool {
		heads, err := record(math.MaxInt, math.MaxInt, []byte(text))
		require.NoError(t, err)
		_, _, ok := heads.Take(&http.Response{
			StatusCode: status, Header: http.Header{"Etag": {"one"}, "X-Added": {"by a layer"}},
		})
		return ok
	}
	require.True(t, trusted(200, "HTTP/1.1 200 OK\r\n\r\nbody"))
	require.True(t, trusted(200, "HTTP/1.1 200 OK\r\nETAG:\tone \r\nContent-Length: 2\r\n\r\nbody"))
	require.False(t, trusted(200, "HTTP/1.1 200 OK\r\nETag: two\r\n\r\n"), "of another response")
	require.False(t, trusted(200, "HTTP/1.1 200 OK\r\nETag: one\r\nContent-Encoding: gzip\r\n\r\n"), "decoded")
	require.True(t, trusted(404, "HTTP/1.1 100 \r\n\r\nHTTP/1.1 404\n\n"))
	require.False(t, trusted(200, "HTTP/1.1 404 No\r\n\r\n"), "another status")
	require.False(t, trusted(200, "HTTP/1.1 200 OK\r\nX: y\r\n"), "incomplete")
	require.False(t, trusted(200, "the rest of a body\r\n\r\n"), "not a head")
	require.False(t, trusted(200, ""), "nothing")
}

func TestLimits(t *testing.T) {
	head := []byte("HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\n\r\n")
	body := bytes.Repeat([]byte("x"), 100)
	for _, piece := range []int{1, 10, 1000} {
		pieces := func() [][]byte { return split(append(bytes.Clone(head), body...), piece) }
		heads, err := record(math.MaxInt, 2, pieces()...)
		require.NoError(t, err)
		require.False(t, heads.TooLarge(1000))
		heads, err = record(math.MaxInt, 1, pieces()...)
		require.ErrorIs(t, err, httpwire.ErrFields)
		require.True(t, heads.TooLarge(1000))
	}
	heads, err := record(100, math.MaxInt, split([]byte("HTTP/1.1 200 OK\r\nA: "+strings.Repeat("x", 1000)), 10)...)
	require.NoError(t, err)
	require.True(t, heads.TooLarge(1000), "longer than the longest that is kept")
	_, _, ok := heads.Take(&http.Response{StatusCode: 200})
	require.False(t, ok)
	heads, err = record(math.MaxInt, math.MaxInt, []byte("HTTP/1.1 200 OK\r\nA"))
	require.NoError(t, err)
	require.True(t, heads.BrokeOff())
	require.True(t, heads.TooLarge(18))
	require.False(t, heads.TooLarge(19))
}

func TestRequests(t *testing.T) {
	const first, second = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", "GET /2 HTTP/1.1\r\nHost: a.test\r\n\r\n"
	for _, piece := range []int{1, 5, 1000} {
		conn := httpwire.New(&script{}, 100, 10)
		one := conn.Begin()
		require.Same(t, one, conn.Begin(), "another observer of the exchange")
		for _, p := range split([]byte(first+"body\r\n\r\nmore"), piece) {
			_, err := conn.Write(p)
			require.NoError(t, err)
		}
		two := conn.Begin()
		_, err := conn.Write([]byte(second))
		require.NoError(t, err)
		request, _, _ := one.Take(&http.Response{StatusCode: 200})
		require.Equal(t, first, string(request))
		request, _, _ = two.Take(&http.Response{StatusCode: 200})
		require.Equal(t, second, string(request))
		three := conn.Begin()
		for _, p := range split([]byte("GET /"+strings.Repeat("x", 200)+" HTTP/1.1\r\n\r\n"), piece) {
			_, err := conn.Write(p)
			require.NoError(t, err)
		}
		request, _, _ = three.Take(&http.Response{StatusCode: 200})
		require.Nil(t, request, "too long to be kept")
	}
}

// BenchmarkSlowHead measures a head that arrives byte by byte, which takes linear time.
func BenchmarkSlowHead(b *testing.B) {
	for _, fields := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("fields=%d", fields), func(b *testing.B) {
			head := []byte("HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", fields) + "\r\n")
			b.SetBytes(int64(len(head)))
			for b.Loop() {
				_, _ = record(math.MaxInt, math.MaxInt, split(head, 1)...)
			}
		})
	}
}
