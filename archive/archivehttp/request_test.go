package archivehttp_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
)

// A layer may take a spare body in advance, for an attempt that is not needed.
func TestASpareBody(t *testing.T) {
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		spare, err := r.GetBody()
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, r.Body)
		require.NoError(t, err)
		require.NoError(t, spare.Close())
		return &http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody, Request: r}, nil
	})
	c, a := client(t, base)
	resp, err := c.Post("http://a.test/", "text/plain", strings.NewReader("text"))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	request, _ := only(t, a, "http://a.test/")
	require.True(t, strings.HasSuffix(request.block, "\r\n\r\ntext"), request.block)
	require.Empty(t, request.fields.Get("WARC-Truncated"))
}

// The recorded body is that of the last attempt, also if an earlier one is still being sent, as by a
// layer that repeats a request after an early response.
func TestBodyOfARepeatedRequest(t *testing.T) {
	const text = "0123456789abcdef"
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		first, head := r.Body, make([]byte, 4)
		_, err := io.ReadFull(first, head)
		require.NoError(t, err)
		second, err := r.GetBody()
		require.NoError(t, err)
		_, err = io.ReadFull(second, head)
		require.NoError(t, err)
		_, err = io.ReadAll(first)
		require.NoError(t, err)
		rest, err := io.ReadAll(second)
		require.NoError(t, err)
		require.Equal(t, text, string(head)+string(rest))
		return &http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody, Request: r}, nil
	})
	c, a := client(t, base)
	resp, err := c.Post("http://a.test/", "text/plain", strings.NewReader(text))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	request, _ := only(t, a, "http://a.test/")
	_, body, _ := strings.Cut(request.block, "\r\n\r\n")
	require.Equal(t, text, body)
	require.Empty(t, request.fields.Get("WARC-Truncated"))
}

// A request whose head no record can hold costs its own capture, and not the requests after it.
func TestALongRequest(t *testing.T) {
	s := serve(t, (*httptest.Server).Start)
	c, a := client(t, nil)
	for _, fields := range []int{1100, 0} {
		req, err := http.NewRequest("GET", s.URL+"/204", nil)
		require.NoError(t, err)
		for i := range fields {
			req.Header.Set(fmt.Sprintf("X-%d", i), "x")
		}
		resp, err := c.Do(req)
		require.NoError(t, err)
		if err = resp.Body.Close(); fields > 0 {
			require.ErrorIs(t, err, archive.ErrInvalid)
			continue
		}
		require.NoError(t, err)
	}
	versions, err := a.Versions(s.URL + "/204")
	require.NoError(t, err)
	require.Len(t, versions, 1)
}
