package robots

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

func zipped(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.String()
}

// 2.3.1: what the response to the request for the file means.
func TestFileOfAResponse(t *testing.T) {
	const body = "user-agent: *\ndisallow: /a\n"
	for _, tt := range []struct {
		clause   string
		statuses []int
		a, b     bool // whether /a and /b are allowed
	}{
		{"2.3.1.1-successful", []int{200, 203, 206, 299}, false, true},
		{"2.3.1.2-redirects-left-over", []int{300, 301, 302, 303, 307, 308, 399}, true, true},
		{"2.3.1.3-unavailable", []int{400, 401, 403, 404, 410, 428, 430, 451, 499}, true, true},
		{"2.3.1.4-unreachable", []int{500, 502, 503, 504, 599}, false, false},
		{"2.3.1.4-too-many-requests", []int{429}, false, false},
		{"2.3.1.4-the-answer-of-a-proxy", []int{407}, false, false},
		{"2.3.1.4-unexpected", []int{0, -1, 100, 101, 199, 600, 999}, false, false},
	} {
		t.Run(tt.clause, func(t *testing.T) {
			for _, status := range tt.statuses {
				rules := whole(status, nil, body).File().Rules("foo")
				require.Equal(t, tt.a, rules.Allowed("/a"), status)
				require.Equal(t, tt.b, rules.Allowed("/b"), status)
				require.True(t, rules.Allowed("/robots.txt"), status)
				_, delayed := rules.Delay()
				require.False(t, delayed)
			}
		})
	}
	require.Nil(t, Response{Status: 200, Body: []byte(body)}.File(), "half of it may be missing")
}

// TestReadResponse uses a real server. Anything but a complete file must forbid everything.
func TestReadResponse(t *testing.T) {
	const file = "user-agent: *\ndisallow: /a\n"
	long := file + strings.Repeat("#\n", robotstxt.MaxSize)
	z := zipped(t, file)
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		known  bool // whether /a is known to be forbidden, and /b to be allowed
	}{
		"a file":     {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, file) }, true},
		"a long one": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, long) }, true},
		"in chunks": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, file[:20])
			w.(http.Flusher).Flush()
			fmt.Fprint(w, file[20:])
		}, true},
		"zipped": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			fmt.Fprint(w, z)
		}, true},
		"zipped once, in many words": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Encoding"] = []string{"identity, GZIP ", ""}
			fmt.Fprint(w, z)
		}, true},
		"not coded, in many words": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "Identity,")
			fmt.Fprint(w, file)
		}, true},
		"a bomb": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			fmt.Fprint(w, zipped(t, file+strings.Repeat("\n", 50<<20)))
		}, true},
		"cut by the connection": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, file)
		}, false},
		"cut in a chunk": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, file)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, false},
		"cut in gzip": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			fmt.Fprint(w, z[:len(z)-9])
		}, false},
		"a wrong checksum": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			fmt.Fprint(w, z[:len(z)-8]+"\x00\x00\x00\x00"+z[len(z)-4:])
		}, false},
		"no gzip at all": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			fmt.Fprint(w, file)
		}, false},
		"gzip twice": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Encoding"] = []string{"gzip, gzip"}
			fmt.Fprint(w, zipped(t, z))
		}, false},
		"an unknown coding": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "compress")
			fmt.Fprint(w, file)
		}, false},
		"a coding by a long field": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", strings.Repeat("identity,", maxField)) // net/http accepts 10 MiB
			fmt.Fprint(w, file)
		}, false},
		"a part": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusPartialContent)
			fmt.Fprint(w, file)
		}, false},
	} {
		for _, automatic := range []bool{true, false} {
			server := httptest.NewServer(tt.answer)
			transport := &http.Transport{DisableCompression: !automatic}
			r := ReadResponse((&http.Client{Transport: transport}).Get(server.URL))
			rules := r.File().Rules("foo")
			require.False(t, rules.Allowed("/a"), name)
			require.Equal(t, tt.known, rules.Allowed("/b"), name)
			require.LessOrEqual(t, len(r.Body), robotstxt.MaxSize+1, name)
			transport.CloseIdleConnections()
			server.Close()
		}
	}
}

// TestAnEmptyFileInGzip is a file: nothing needs no coding. net/http decodes no body of length 0.
func TestAnEmptyFileInGzip(t *testing.T) {
	answer := func(length string) Response {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Length", length)
		}))
		defer server.Close()
		return ReadResponse(server.Client().Get(server.URL))
	}
	require.True(t, answer("0").File().Rules("foo").Allowed("/a"))
	require.Nil(t, answer("10").File(), "it is cut")
}

// A body notes that it was closed, and fails after its text.
type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error {
	b.closed = true
	return nil
}

func TestReadResponseClosesTheBody(t *testing.T) {
	for status, known := range map[int]bool{200: false, 404: true, 301: true, 503: false} {
		b := &body{Reader: io.MultiReader(strings.NewReader("x"), errReader{})}
		r := ReadResponse(&http.Response{StatusCode: status, Header: http.Header{}, Body: b}, nil)
		require.True(t, b.closed)
		require.Equal(t, status, r.Status)
		require.Equal(t, known, r.File() != nil, "%d needs no body", status)
	}
	b := &body{} // which panics if it is read: after a switch of protocols, the end of a context ends no Read
	require.Nil(t, ReadResponse(&http.Response{StatusCode: http.StatusSwitchingProtocols, Body: b}, nil).File())
	require.True(t, b.closed)
	require.Equal(t, Response{Reason: "refused"}, ReadResponse(nil, errors.New("refused")))
	require.Equal(t, Response{}, ReadResponse(nil, nil))
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestDisallowedError(t *testing.T) {
	rules := robotstxt.Parse([]byte("user-agent: *\ndisallow: /private/")).Rules("foo")
	var err error = &DisallowedError{URL: page, Verdict: rules.Match("/private/x")}
	require.ErrorIs(t, err, ErrDisallowed)
	require.EqualError(t, err, "robots: https://h.test/a is disallowed by line 2 of robots.txt: /private/")
	var denied *DisallowedError
	require.ErrorAs(t, fmt.Errorf("wrapped: %w", err), &denied)
	require.Equal(t, 2, denied.Line)
}

func TestUnreachableError(t *testing.T) {
	var err error = &UnreachableError{URL: page}
	require.ErrorIs(t, err, ErrUnreachable)
	require.EqualError(t, err, "robots: https://h.test/a may not be fetched until its robots.txt can be")
	err = &UnreachableError{page, "timeout", time.Unix(0, 0), context.DeadlineExceeded}
	require.ErrorIs(t, err, ErrUnreachable)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.EqualError(t, err, "robots: https://h.test/a may not be fetched until its robots.txt can be: timeout; "+
		"next attempt at 1970-01-01T00:00:00Z")
	require.True(t, os.IsTimeout(&url.Error{Err: err}))
}
