package replay

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/internal/weburl"
)

// monday is the time of the first versions.
var monday = time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)

// days returns the time some days after monday.
func days(n int) time.Time { return monday.AddDate(0, 0, n) }

// visit is a short form of a capture. fields are the header fields.
type visit struct {
	url    string
	at     time.Time
	status int
	fields string
	body   string
}

// htmlAt returns a visit of a page.
func htmlAt(at time.Time, url, body string) visit {
	return visit{url, at, 200, "Content-Type: text/html; charset=utf-8", body}
}

// typed returns a visit of another type of content.
func typed(at time.Time, url, kind, body string) visit {
	return visit{url, at, 200, "Content-Type: " + kind, body}
}

// archiveOf returns an archive of visits.
func archiveOf(t testing.TB, visits ...visit) *archive.Archive {
	t.Helper()
	a, err := archive.Open(t.TempDir(), archive.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	for _, v := range visits {
		head := fmt.Sprintf("HTTP/1.1 %d %s\r\n", v.status, http.StatusText(v.status))
		if v.fields != "" {
			head += strings.ReplaceAll(v.fields, "\n", "\r\n") + "\r\n"
		}
		_, err := a.Append(archive.Capture{URL: v.url, Time: v.at, Head: []byte(head + "\r\n"),
			Body: []byte(v.body)})
		require.NoError(t, err, v.url)
	}
	return a
}

// ask sends a request like a browser on the same computer. Fields are pairs of names and values.
func ask(t testing.TB, v *Handler, address string, fields ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	u, err := r.URL.Parse(address)
	require.NoError(t, err)
	r.URL, r.RequestURI, r.Host = u, address, "127.0.0.1:8080"
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	w := httptest.NewRecorder()
	v.ServeHTTP(w, r)
	return w
}

// placeOf returns a page at a time.
func placeOf(t testing.TB, moment time.Time, url string) place {
	t.Helper()
	u, err := parseURL(url)
	require.NoError(t, err)
	return place{moment, u}
}

// replayOf returns the replay address of a page at a time.
func (v *Handler) replayOf(moment time.Time, url string) string {
	u, err := parseURL(url)
	if err != nil {
		panic(err)
	}
	return v.replayAddress(v.owner(u), place{moment, u})
}

// rawOf returns the address of the file of a page at a time.
func (v *Handler) rawOf(moment time.Time, url string) string {
	u, err := parseURL(url)
	if err != nil {
		panic(err)
	}
	return v.rawAddress(place{moment, u})
}

// ownerIn returns the owner of a replay address.
func ownerIn(address string) string { return strings.Split(address, "/")[2] }

// testLinker returns a linker for a page, with short addresses.
func testLinker(page string) *linker {
	base, err := weburl.Parse(page, nil)
	if err != nil {
		panic(err)
	}
	return &linker{base: base, page: page, left: 1 << 20,
		view: func(u weburl.URL) string { return inView + u.String() },
		load: func(u weburl.URL) string { return inReplay + u.String() }}
}

// rewrittenHTML returns what rewriteHTML writes.
func rewrittenHTML(page []byte, l *linker) []byte {
	var out bytes.Buffer
	rewriteHTML(&out, page, l)
	return out.Bytes()
}

// home is the page in the tests of rewriting.
const home = "https://a.example/dir/page"

// The prefixes of rewritten URLs.
const (
	inReplay = "/replay/K/S/T/"
	inView   = "/view/T/"
)

// contextWithServer returns the context of a request that a server has received.
func contextWithServer(r *http.Request, s *http.Server) context.Context {
	return context.WithValue(r.Context(), http.ServerContextKey, s)
}
