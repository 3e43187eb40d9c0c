package archivehttp_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/archivehttp"
)

// call sends a request, and returns the response with its body.
func call(c *http.Client, method, url, body string, fields ...string) (*http.Response, string, error) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	if body == "" {
		req.Body, req.ContentLength = nil, 0
	}
	for i := 0; i < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, "", err
	}
	text, err := io.ReadAll(resp.Body)
	return resp, string(text), errors.Join(err, resp.Body.Close())
}

// The player answers all that was recorded as the server did, and nothing else.
func TestPlayerAnswersLikeTheServer(t *testing.T) {
	page := strings.Repeat("a page of some length, ", 200)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Kept", r.Method)
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/file", http.StatusFound)
		case "/broken":
			http.Error(w, "broken", http.StatusServiceUnavailable)
		case "/empty":
			w.WriteHeader(http.StatusNoContent)
		case "/chunked":
			_, _ = w.Write([]byte("one"))
			w.(http.Flusher).Flush()
			_, _ = w.Write([]byte("two"))
		case "/cut":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("only this"))
		case "/zipped":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(zipped(page))
		case "/file":
			http.ServeContent(w, r, "file.txt", time.Unix(1e9, 0), strings.NewReader(page))
		default:
			fmt.Fprintf(w, "%s %s", r.Method, sent)
		}
	}))
	t.Cleanup(server.Close)
	recording, tape := client(t, nil)
	playing := &http.Client{Transport: &archivehttp.Player{Archive: tape}}
	type request struct {
		method, path, body string
		fields             []string
	}
	requests := []request{
		{"GET", "/echo?q=a%20b", "", nil}, {"POST", "/echo?q=a%20b", "one", nil},
		{"POST", "/echo?q=a%20b", "two", nil}, {"PUT", "/echo?q=a%20b", "", nil},
		{"DELETE", "/echo", "", nil}, {"OPTIONS", "/echo", "", nil},
		{"GET", "/moved", "", nil}, {"GET", "/broken", "", nil}, {"GET", "/empty", "", nil},
		{"GET", "/chunked", "", nil}, {"HEAD", "/chunked", "", nil}, {"GET", "/cut", "", nil}, {"GET", "/zipped", "", nil},
		{"GET", "/zipped", "", []string{"Accept-Encoding", "gzip"}},
		{"HEAD", "/file", "", nil}, {"GET", "/file", "", []string{"Range", "bytes=2-5"}},
		{"GET", "/file", "", nil}, {"HEAD", "/zipped", "", nil},
		// A server may ignore the field, as this one does but for files.
		{"HEAD", "/ranges", "", []string{"Range", "bytes=2-5"}}, {"POST", "/ranges", "one", []string{"Range", "bytes=2-5"}},
		{"HEAD", "/file", "", []string{"Range", "bytes=2-5"}},
	}
	type answer struct {
		resp *http.Response
		text string
		err  error
	}
	var want []answer
	for _, r := range requests {
		resp, text, err := call(recording, r.method, server.URL+r.path, r.body, r.fields...)
		want = append(want, answer{resp, text, err})
	}
	chunks := func(text string) *http.Request {
		req, err := http.NewRequest("POST", server.URL+"/chunks", io.MultiReader(strings.NewReader(text)))
		require.NoError(t, err)
		return req
	}
	resp, err := recording.Do(chunks("one"))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	server.Close()
	resp, err = playing.Do(chunks("one"))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	_, err = playing.Do(chunks("two"))
	require.ErrorIs(t, err, archivehttp.ErrNotRecorded)
	for i, r := range requests {
		one := want[i]
		resp, text, err := call(playing, r.method, server.URL+r.path, r.body, r.fields...)
		if len(r.fields) > 0 && r.fields[0] == "Accept-Encoding" {
			one.text = page
			one.resp.Header.Del("Content-Encoding")
			one.resp.Header.Del("Content-Length")
			one.resp.ContentLength, one.resp.Uncompressed = -1, true
		}
		require.Equal(t, one.text, text, "%+v", r)
		if one.resp == nil {
			require.Error(t, err)
			continue
		}
		require.Equal(t, one.err != nil, err != nil, "%+v: %v", r, err)
		require.Equal(t, one.resp.StatusCode, resp.StatusCode, "%+v", r)
		one.resp.Header.Del("Date") // of two answers that are the same otherwise, the last one is played
		resp.Header.Del("Date")
		require.Equal(t, one.resp.Header, resp.Header, "%+v", r)
		require.Equal(t, one.resp.ContentLength, resp.ContentLength, "%+v", r)
		require.Equal(t, one.resp.Uncompressed, resp.Uncompressed, "%+v", r)
		require.Equal(t, one.resp.Request.URL.String(), resp.Request.URL.String())
	}
	for _, r := range []request{
		{"GET", "/other", "", nil}, {"POST", "/echo?q=a%20b", "three", nil},
		{"POST", "/echo?q=a%20b", "", nil}, {"POST", "/echo?q=a%20b", "onetwo", nil},
		{"HEAD", "/echo", "", nil}, {"PATCH", "/echo", "", nil},
	} {
		_, _, err := call(playing, r.method, server.URL+r.path, r.body)
		require.ErrorIs(t, err, archivehttp.ErrNotRecorded, "%+v", r)
		require.ErrorContains(t, err, r.method+" "+server.URL+r.path)
	}
}

// zipped returns text in gzip.
func zipped(text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text)) // a buffer has no error
	_ = z.Close()
	return b.Bytes()
}

// The player answers as of its time. What is missing goes to the next RoundTripper, with its body.
func TestPlayerAsOfATime(t *testing.T) {
	tape := open(t)
	for day := range 3 {
		_, err := tape.Append(archive.Capture{URL: "http://a.test/", Time: time.Unix(int64(day)*86400, 0),
			Head: []byte("HTTP/1.1 200 OK\r\n\r\n"), Body: fmt.Appendf(nil, "day %d", day/2)})
		require.NoError(t, err)
	}
	for day, want := range map[int]string{0: "day 0", 1: "day 0", 2: "day 1", 9: "day 1"} {
		at := time.Unix(int64(day)*86400+1, 0)
		c := &http.Client{Transport: &archivehttp.Player{Archive: tape, Time: at}}
		_, text, err := call(c, "GET", "http://a.test/", "")
		require.NoError(t, err)
		require.Equal(t, want, text)
	}
	sent := ""
	next := roundTripper(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		sent = r.Method + " " + string(body)
		return nil, errors.Join(err, errors.New("sent"))
	})
	c := &http.Client{Transport: &archivehttp.Player{Archive: tape, Missing: next}}
	_, text, err := call(c, "GET", "http://a.test/", "")
	require.NoError(t, err)
	require.Equal(t, "day 1", text)
	_, _, err = call(c, "POST", "http://a.test/", "a form")
	require.ErrorContains(t, err, "sent")
	require.Equal(t, "POST a form", sent)
}

// A canceled request is not answered, and its body is closed.
func TestPlayerHeedsItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	body := &closes{Reader: strings.NewReader("x")}
	req, err := http.NewRequestWithContext(ctx, "POST", "http://a.test/", body)
	require.NoError(t, err)
	_, err = (&archivehttp.Player{Archive: open(t)}).RoundTrip(req)
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, body.closed)
}

type closes struct {
	io.Reader
	closed bool
}

func (c *closes) Close() error {
	c.closed = true
	return nil
}

// What made the client fail, or looked odd to it, comes again, such as a body that is too short.
func TestPlayerFailsLikeTheServer(t *testing.T) {
	for name, answer := range map[string]string{
		"no x-gzip":    "HTTP/1.1 200 OK\r\nContent-Encoding: x-gzip\r\nContent-Length: 2\r\n\r\nhi",
		"two spaces":   "HTTP/1.1  200 OK\r\nContent-Length: 2\r\n\r\nhi",
		"a low status": "HTTP/1.1 000 x\r\nContent-Length: 2\r\n\r\nhi",
		"a short body": "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi",
		"no coding":    "HTTP/1.1 200 OK\r\nContent-Encoding: utf-8\r\nContent-Length: 2\r\n\r\nhi",
		"a whole page": "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
	} {
		t.Run(name, func(t *testing.T) {
			url := raw(t, answer)
			recording, tape := client(t, nil)
			want, text, failure := call(recording, "GET", url, "")
			require.NotNil(t, want, "%v", failure)
			playing := &http.Client{Transport: &archivehttp.Player{Archive: tape}}
			resp, again, err := call(playing, "GET", url, "")
			require.Equal(t, failure != nil, err != nil, "%v, then %v", failure, err)
			require.Equal(t, text, again)
			require.Equal(t, want.StatusCode, resp.StatusCode)
			require.Equal(t, want.Status, resp.Status)
			if name == "no x-gzip" {
				return // a body comes without its coding, also where net/http does not decode it
			}
			require.Equal(t, want.Header, resp.Header)
			require.Equal(t, want.ContentLength, resp.ContentLength)
			require.Equal(t, want.Uncompressed, resp.Uncompressed)
		})
	}
}

// A client with a cache gets the 304 that its server sent, and another one the page.
func TestPlayerConfirmsWhatAClientHas(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") == `"1"` {
			w.Header().Set("X-Confirmed", "yes")
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = io.WriteString(w, "the body")
	}))
	defer server.Close()
	recording, tape := client(t, nil)
	playing := &http.Client{Transport: &archivehttp.Player{Archive: tape}}
	for _, fields := range [][]string{nil, {"If-None-Match", `"1"`}} {
		_, _, err := call(recording, "GET", server.URL, "", fields...)
		require.NoError(t, err)
	}
	_, _, err := call(recording, "GET", server.URL+"/other", "", "If-None-Match", `"1"`)
	require.NoError(t, err)
	_, _, err = call(playing, "GET", server.URL+"/other", "")
	require.ErrorIs(t, err, archivehttp.ErrNotRecorded, "only that it has not changed")
	resp, body, err := call(playing, "GET", server.URL, "", "If-None-Match", `"1"`)
	require.NoError(t, err)
	require.Equal(t, []any{304, "", "yes"}, []any{resp.StatusCode, body, resp.Header.Get("X-Confirmed")})
	resp, body, err = call(playing, "GET", server.URL, "")
	require.NoError(t, err)
	require.Equal(t, []any{200, "the body"}, []any{resp.StatusCode, body})
}

// The archive does not tell the answers to GETs with bodies from each other, so none is played.
func TestPlayerDoesNotAnswerAGETWithABody(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	defer server.Close()
	recording, tape := client(t, nil)
	playing := &http.Client{Transport: &archivehttp.Player{Archive: tape}}
	for _, query := range []string{"cats", "dogs"} {
		_, _, err := call(recording, "GET", server.URL, query)
		require.NoError(t, err)
	}
	_, _, err := call(playing, "GET", server.URL, "cats")
	require.ErrorIs(t, err, archivehttp.ErrNotRecorded)
	player := playing.Transport.(*archivehttp.Player)
	playing.Transport = &archivehttp.Player{Archive: player.Archive, Missing: http.DefaultTransport}
	_, body, err := call(playing, "GET", server.URL, "cats")
	require.NoError(t, err)
	require.Equal(t, "cats", body)
}

// An API may have one address for all its questions. The player finds each answer.
func TestPlayerKnowsManyQuestions(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "answer to ")
		_, _ = io.Copy(w, r.Body)
	}))
	defer server.Close()
	recording, tape := client(t, nil)
	playing := &http.Client{Transport: &archivehttp.Player{Archive: tape}}
	for range 2 {
		for i := range 20 {
			for _, c := range []*http.Client{recording, playing} {
				_, body, err := call(c, "POST", server.URL, fmt.Sprint("question ", i))
				require.NoError(t, err)
				require.Equal(t, fmt.Sprint("answer to question ", i), body)
			}
		}
	}
	_, _, err := call(playing, "POST", server.URL, "question")
	require.ErrorIs(t, err, archivehttp.ErrNotRecorded)
}
