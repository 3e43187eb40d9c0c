package clients

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/fetch/webtest"
)

// TestCompression checks that the response depends on whether the client requested a coding, as
// with an http.Transport, and that the archive has the body in each case.
func TestCompression(t *testing.T) {
	const page = "http://shop.test/page"
	text := strings.Repeat("all work and no play ", 100)
	server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			http.Error(w, "want gzip", http.StatusNotAcceptable)
			return
		}
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = io.WriteString(z, text)
		_ = z.Close()
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	})
	get := func(asked string) func(t *testing.T, web http.RoundTripper) string {
		return func(t *testing.T, web http.RoundTripper) string {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page, nil)
			require.NoError(t, err)
			if asked != "" {
				r.Header.Set("Accept-Encoding", asked)
			}
			resp, err := web.RoundTrip(r)
			require.NoError(t, err)
			var body io.Reader = resp.Body
			require.Equal(t, asked, resp.Header.Get("Content-Encoding"))
			if asked != "" {
				body, err = gzip.NewReader(body)
				require.NoError(t, err)
			}
			got, err := io.ReadAll(body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			return string(got)
		}
	}
	for name, fetch := range map[string]func(t *testing.T, web http.RoundTripper) string{
		"not requested":           get(""),
		"requested by the client": get("gzip"),
		"colly": func(t *testing.T, web http.RoundTripper) (got string) {
			c := colly.NewCollector()
			c.WithTransport(web)
			c.OnResponse(func(r *colly.Response) { got = string(r.Body) })
			require.NoError(t, c.Visit(page))
			return got
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			web := startWeb(t, webtest.Options{Handlers: map[string]http.Handler{"shop.test": server}})
			kept, err := archive.Open(t.TempDir(), archive.Options{})
			require.NoError(t, err)
			require.Equal(t, text, fetch(t, politeInto(t, web, kept)), name)
			version, err := kept.At(page, time.Time{})
			require.NoError(t, err, name)
			body, err := kept.Body(version)
			require.NoError(t, err, name)
			require.Equal(t, text, string(body), name)
			require.NoError(t, kept.Close())
		})
	}
}
