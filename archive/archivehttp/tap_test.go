package archivehttp_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/archivehttp"
)

// A layer in between asks twice, gives the client the faster answer, and reads the other one once the
// client has its own. That one is not recorded.
func TestALateTapIsNotRecorded(t *testing.T) {
	for _, recorders := range []int{1, 2} {
		long := decoding{body: strings.Repeat("HELLO", 1<<19)}
		var late func()
		hedge := roundTripper(func(r *http.Request) (*http.Response, error) {
			late = func() {
				resp, err := long.RoundTrip(r)
				require.NoError(t, err)
				_, err = io.Copy(io.Discard, resp.Body)
				require.NoError(t, err)
			}
			return long.RoundTrip(r)
		})
		dir := t.TempDir()
		t.Setenv("TMPDIR", dir)
		var base http.RoundTripper = hedge
		for range recorders {
			recorder := archivehttp.NewTransport(base, open(t))
			base = recorder
		}
		resp, err := (&http.Client{Transport: base}).Get("http://tapped.test/")
		require.NoError(t, err)
		late()
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		late()
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// A layer in between may end a body early. The record says that it is not whole.
func TestShortBodies(t *testing.T) {
	plain := roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, ContentLength: 5,
			Body: io.NopCloser(strings.NewReader("HELLO")), Request: r}, nil
	})
	known := roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := plain(r)
		resp.ContentLength = -1
		return resp, err
	})
	for name, base := range map[string]http.RoundTripper{
		"of known length": plain, "of unknown length": known,
		"decoded": decoding{}, "decoded, of known length": decoding{length: 5},
	} {
		for _, most := range []int64{3, 5, 9} {
			t.Run(fmt.Sprintf("%s, limited to %d bytes", name, most), func(t *testing.T) {
				c, a := client(t, roundTripper(func(r *http.Request) (*http.Response, error) {
					resp, err := base.RoundTrip(r)
					resp.Body = struct {
						io.Reader
						io.Closer
					}{io.LimitReader(resp.Body, most), resp.Body}
					return resp, err
				}))
				get(t, c, "http://tapped.test/")
				_, response := only(t, a, "http://tapped.test/")
				want := ""
				// Without a length, nothing tells a limit from the end, but a tap that sees none.
				if most == 3 && name != "of unknown length" || most == 5 && name == "decoded" {
					want = "unspecified"
				}
				require.Equal(t, want, response.fields.Get("WARC-Truncated"))
			})
		}
	}
}

// A layer in between answers with another response than that of the server.
func TestAnAnswerOfALayer(t *testing.T) {
	c, a := client(t, roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := decoding{}.RoundTrip(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return &http.Response{StatusCode: 200, Header: http.Header{}, Uncompressed: true, ContentLength: -1,
			Body: io.NopCloser(strings.NewReader("an old copy")), Request: r}, nil
	}))
	require.Equal(t, "an old copy", get(t, c, "http://tapped.test/"))
	_, response := only(t, a, "http://tapped.test/")
	require.Equal(t, "unspecified", response.fields.Get("WARC-Truncated"))
}

// The response to HEAD has the length of what GET would get.
func TestTheLengthOfHEAD(t *testing.T) {
	c, a := client(t, roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, ContentLength: 5,
			Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
	}))
	resp, err := c.Head("http://head.test/")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	_, response := only(t, a, "http://head.test/")
	require.Empty(t, response.fields.Get("WARC-Truncated"))
}
