package replay

import (
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

// monday is when the first versions were found.
var monday = time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)

// days returns the time some days after monday.
func days(n int) time.Time { return monday.AddDate(0, 0, n) }

// visit is a capture in short: the fields of its head follow the status line.
type visit struct {
	url    string
	at     time.Time
	status int
	fields string
	body   string
}

// htmlAt returns a visit that found a page.
func htmlAt(at time.Time, url, body string) visit {
	return visit{url, at, 200, "Content-Type: text/html; charset=utf-8", body}
}

// typed returns a visit that found something else.
func typed(at time.Time, url, kind, body string) visit {
	return visit{url, at, 200, "Content-Type: " + kind, body}
}

// archiveOf makes an archive that has some visits.
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

// ask sends a request as a browser on the same computer would. Fields are in pairs.
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

// replayOf returns the replay address of a page at a time.
func (v *Handler) replayOf(moment time.Time, url string) string {
	return at(replayPath+v.token+"/", moment, url)
}

// testLinker rewrites for a page of a website, at a time and with a token that are short.
func testLinker(page string) *linker {
	base, err := weburl.Parse(page, nil)
	if err != nil {
		panic(err)
	}
	return &linker{base: base, page: page, moment: "T", token: "K"}
}

// home is the page that the tables of rewriting are about.
const home = "https://a.example/dir/page"

// The prefixes that rewritten URLs get.
const (
	inReplay = "/replay/K/T/"
	inView   = "/view/T/"
)
