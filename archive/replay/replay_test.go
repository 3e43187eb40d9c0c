package replay

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/internal/weburl"
)

// A page is replayed as of any time, with its resources as of the same time.
func TestReplayAsOfAnyTime(t *testing.T) {
	v := siteHandler(t, Options{})
	for _, tt := range []struct {
		name  string
		at    time.Time
		code  int
		words string
	}{
		{"before the first version, the first one", days(-9), 200, "first page"},
		{"at the time of a version", days(0), 200, "first page"},
		{"an unchanged version has the content of the one before", days(1), 200, "first page"},
		{"just before the next version", days(2).Add(-time.Microsecond), 200, "first page"},
		{"the next version", days(2), 200, "second page"},
		{"an error", days(3).Add(time.Hour), 503, "Down for repair"},
		{"long after the last version", days(900), 200, "third page"},
		{"now", time.Time{}, 200, "third page"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := ask(t, v, v.replayOf(tt.at, millHome))
			require.Equal(t, tt.code, w.Code)
			require.Contains(t, w.Body.String(), tt.words)
			require.Equal(t, "text/html; charset=utf-8", w.Header().Get("Content-Type"))
			if tt.code == 200 {
				require.Contains(t, w.Body.String(), v.replayOf(tt.at, millHome+"logo.png"))
				require.Contains(t, w.Body.String(),
					at(viewPath, tt.at, millHome+"about/history?page=(2)"))
				require.NotContains(t, w.Body.String(), "A script ran")
			}
		})
	}
}

func TestReplayOfTypesAndEncodings(t *testing.T) {
	utf16 := "\xfe\xff\x00<\x00p\x00>\x00\xe9"
	v := New(archiveOf(t,
		typed(days(0), "http://a.example/x.css", "text/css",
			`@charset "iso-8859-1";a{b:url(`+"\xe9"+`)}`),
		typed(days(0), "http://a.example/latin", "text/html; charset=iso-8859-1", "<p>\xe9"),
		typed(days(0), "http://a.example/meta", "text/html", "<meta charset=koi8-r><p>\xc1"),
		typed(days(0), "http://a.example/utf16", "text/html", utf16),
		typed(days(0), "http://a.example/sjis", "text/html; charset=shift_jis", "<p>\x83\x5c<b>"),
		typed(days(0), "http://a.example/x.js", "text/javascript; charset=iso-8859-1", "'\xe9'"),
		typed(days(0), "http://a.example/x.json", "application/json", "{}"),
		typed(days(0), "http://a.example/x.svg", "image/svg+xml", "<svg/>"),
		typed(days(0), "http://a.example/x.xhtml", "application/xhtml+xml",
			`<p xmlns="x">y<br/></p>`),
		typed(days(0), "http://a.example/parts", "multipart/x-mixed-replace; boundary=x", "y"),
		typed(days(0), "http://a.example/bad", "no type", "<p>"),
		typed(days(0), "http://a.example/semi", "text/plain; charset", "y"),
		typed(days(0), "http://a.example/longer", "text/plain; x="+strings.Repeat("y", 999), "y"),
		typed(days(0), "http://a.example/longest", "text/"+strings.Repeat("y", 999), "y"),
		visit{"http://a.example/untyped", days(0), 200, "", "<html><p>y"},
		visit{"http://a.example/untyped3", days(0), 200, "", "<html><meta charset=koi8-r><p>\xc1"},
		visit{"http://a.example/untyped4", days(0), 200, "", "caf\xe9"},
		visit{"http://a.example/untyped2", days(0), 200, "", "\x89PNG\r\n\x1a\n"},
		visit{"http://a.example/zip", days(0), 200,
			"Content-Type: text/html\nContent-Encoding: gzip", gzipped("<p>packed")},
		visit{"http://a.example/nozip", days(0), 200,
			"Content-Type: text/html\nContent-Encoding: gzip", "<p>unpacked"},
		visit{"http://a.example/odd", days(0), 200,
			"Content-Type: text/html\nContent-Encoding: odd", "?"},
		visit{"http://a.example/deep", days(0), 200,
			"Content-Type: text/html\nContent-Encoding: gzip, gzip, gzip, gzip", "?"},
	), Options{})
	for _, tt := range []struct{ name, path, kind, body string }{
		{"a style sheet becomes UTF-8", "x.css", "text/css; charset=utf-8",
			`/**/a{b:url("` + v.replayOf(days(0), "http://a.example/") + `%C3%A9")}`},
		{"a page in Latin-1", "latin", "text/html; charset=utf-8", "<p>é"},
		{"a page that declares its encoding", "meta", "text/html; charset=utf-8", "<p>а"},
		{"a page with a mark of UTF-16", "utf16", "text/html; charset=utf-8", "<p>é"},
		{"a page with backslashes in letters", "sjis", "text/html; charset=utf-8", "<p>ソ<b>"},
		{"a script keeps its encoding", "x.js", "text/javascript; charset=iso-8859-1", "'\xe9'"},
		{"a type is kept", "x.json", "application/json", "{}"},
		{"an image that could have scripts", "x.svg", "image/svg+xml", "<svg/>"},
		{"XHTML becomes HTML", "x.xhtml", "text/html; charset=utf-8", `<p xmlns="x">y<br /></p>`},
		{"multipart/x-mixed-replace", "parts", "application/octet-stream", "y"},
		{"an invalid type", "bad", "text/html; charset=utf-8", "<p>"},
		{"a type with bad parameters", "semi", "text/plain", "y"},
		{"a type with very long parameters", "longer", "text/plain", "y"},
		{"a very long type", "longest", "text/plain; charset=utf-8", "y"},
		{"a page without a type", "untyped", "text/html; charset=utf-8", "<html><p>y"},
		{"a page without a type declares its encoding", "untyped3", "text/html; charset=utf-8", "<html><p>а"},
		{"a text without a type", "untyped4", "text/plain; charset=windows-1252", "caf\xe9"},
		{"an image without a type", "untyped2", "image/png", "\x89PNG\r\n\x1a\n"},
		{"a compressed page", "zip", "text/html; charset=utf-8", "<p>packed"},
		{"a page falsely declared as compressed", "nozip", "text/html; charset=utf-8",
			"<p>unpacked"},
		{"a page with an unknown coding", "odd", "text/html; charset=utf-8", "?"},
		{"a page with too many codings", "deep", "text/html; charset=utf-8", "?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := ask(t, v, v.replayOf(days(0), "http://a.example/"+tt.path))
			require.Equal(t, http.StatusOK, w.Code)
			require.Equal(t, tt.kind, w.Header().Get("Content-Type"))
			require.Equal(t, tt.body, w.Body.String())
			require.Contains(t, w.Header().Get("Content-Security-Policy"), "sandbox")
		})
	}
}

// Most header fields of archived responses are not sent.
func TestHeadersAreNotPassedOn(t *testing.T) {
	v := New(archiveOf(t, visit{"http://a.example/", days(0), 200, "Content-Type: text/html\n" +
		"Set-Cookie: a=b\nAccess-Control-Allow-Origin: *\nRefresh: 0;url=http://b.example/\n" +
		"Content-Security-Policy: default-src *\nStrict-Transport-Security: max-age=9\n" +
		"Link: <http://b.example/>; rel=preload\nService-Worker-Allowed: /\n" +
		"Location: http://b.example/\nClear-Site-Data: \"*\"\nContent-Language: de\n" +
		"Content-Disposition: attachment\nReport-To: {}\nAlt-Svc: h3=\":443\"\nX-Other: y",
		"<p>"}), Options{})
	h := ask(t, v, v.replayOf(days(0), "http://a.example/")).Header()
	require.Equal(t, "de", h.Get("Content-Language"))
	require.Empty(t, h.Get("Access-Control-Allow-Origin"))
	require.Equal(t, "Mon, 02 Nov 2026 09:00:00 GMT", h.Get("Memento-Datetime"))
	for _, name := range []string{"Set-Cookie", "Refresh", "Strict-Transport-Security", "Link",
		"Service-Worker-Allowed", "Location", "Clear-Site-Data", "Content-Disposition", "Report-To",
		"Alt-Svc", "X-Other"} {
		require.Empty(t, h.Values(name), name)
	}
	require.NotContains(t, h.Get("Content-Security-Policy"), "*")
}

func TestRedirectsStayInTheArchive(t *testing.T) {
	v := siteHandler(t, Options{})
	w := ask(t, v, v.replayOf(days(1), millHome+"old"))
	require.Equal(t, http.StatusFound, w.Code)
	require.Equal(t, v.replayOf(days(1), millHome+"about/")+"#top", w.Header().Get("Location"))

	w = ask(t, v, at(viewPath, days(1), millHome+"old"))
	require.Equal(t, http.StatusFound, w.Code)
	require.Equal(t, at(viewPath, days(1), millHome+"about/")+"#top", w.Header().Get("Location"))

	w = ask(t, v, at(viewPath, days(1), millHome+"gone"))
	require.Equal(t, http.StatusNotFound, w.Code)
	require.Contains(t, w.Body.String(), "http://elsewhere.example/")
	require.Contains(t, w.Body.String(), "A redirect points to another page")

	w = ask(t, v, at(viewPath, days(1), millHome+"circle"))
	require.Equal(t, http.StatusNotFound, w.Code)
	require.Contains(t, w.Body.String(), "circle")
}

// If a site moved to https and only its redirects were archived, the browser is not sent back and
// forth.
func TestRedirectToTheOtherSchemeAlone(t *testing.T) {
	redirect := visit{"http://a.example/", days(0), 301, "Location: https://a.example/", ""}
	v := New(archiveOf(t, redirect), Options{})
	w := ask(t, v, v.replayOf(days(0), "http://a.example/"))
	w = ask(t, v, w.Header().Get("Location"))
	require.Equal(t, http.StatusNotFound, w.Code)
	w = ask(t, v, at(viewPath, days(0), "http://a.example/"))
	require.Equal(t, http.StatusNotFound, w.Code)
}

// The redirect to https was fetched before the page, and what it leads to after it.
func TestRedirectToTheOtherSchemeBeforeItWasFetched(t *testing.T) {
	const image = "://a.example/i.png"
	v := New(archiveOf(t, visit{"http" + image, days(0), 301, "Location: https" + image, ""},
		typed(days(2), "https"+image, "image/png", "PNG")), Options{})
	for day := range 4 {
		w := ask(t, v, v.replayOf(days(day), "http"+image))
		w = ask(t, v, w.Header().Get("Location"))
		require.Equal(t, "PNG", w.Body.String(), day)
		require.Equal(t, w.Body.String(), ask(t, v, v.replayOf(days(day), "https"+image)).Body.String(), day)
	}
	w := ask(t, v, at(viewPath, days(1), "http"+image))
	require.Contains(t, w.Body.String(), at(viewPath, days(2), "https"+image))
}

func TestOtherSchemeIsFound(t *testing.T) {
	v := siteHandler(t, Options{})
	w := ask(t, v, v.replayOf(days(0), "http://example.net/only-https"))
	require.Equal(t, http.StatusOK, w.Code)
	w = ask(t, v, at(viewPath, days(0), "http://example.net/only-https"))
	require.Equal(t, http.StatusFound, w.Code)
	require.Equal(t, at(viewPath, days(0), "https://example.net/only-https"),
		w.Header().Get("Location"))
}

// An archived page opened in a window redirects to its view, which also repairs addresses of an
// earlier run.
func TestReplayInAWindowBecomesAView(t *testing.T) {
	v := siteHandler(t, Options{})
	for _, address := range []string{v.replayOf(days(0), millHome),
		at(replayPath+"OLD/SEAL/", days(0), millHome)} {
		w := ask(t, v, address, "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document")
		require.Equal(t, http.StatusFound, w.Code)
		require.Equal(t, at(viewPath, days(0), millHome), w.Header().Get("Location"))
	}
}

func TestReplayOfNothing(t *testing.T) {
	v := siteHandler(t, Options{})
	w := ask(t, v, v.replayOf(days(0), millHome+"none.png"))
	require.Equal(t, http.StatusNotFound, w.Code)
	require.True(t, strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain"))

	w = ask(t, v, v.replayOf(days(0), millHome+"none<b>"), "Sec-Fetch-Dest", "iframe")
	require.Equal(t, http.StatusNotFound, w.Code)
	require.True(t, strings.HasPrefix(w.Header().Get("Content-Type"), "text/html"))
	require.Contains(t, w.Body.String(), "none%3Cb%3E")
	require.Contains(t, w.Header().Get("Content-Security-Policy"), "sandbox")
}

// A page that is too long is served unchanged, and its links may not replace the window.
func TestLongPagesAreNotRewritten(t *testing.T) {
	page := `<a href="http://b.example/" target=_top>x</a>` + strings.Repeat("y", 5000)
	v := New(archiveOf(t, htmlAt(days(0), "http://a.example/", page)), Options{})
	v.maxRewrite = 1000
	w := ask(t, v, v.replayOf(days(0), "http://a.example/"))
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, page, w.Body.String())
	require.Empty(t, policyOf(w.Header().Get("Content-Security-Policy"))["sandbox"])

	for _, limit := range []int64{int64(len(page)), maxRewrite} {
		v.maxRewrite = limit
		w = ask(t, v, v.replayOf(days(0), "http://a.example/"))
		require.Contains(t, w.Body.String(), `href="/view/`)
		require.Contains(t, w.Header().Get("Content-Security-Policy"), linkFlags)
	}
}

// The response with a compressed body breaks off at the limit. An uncompressed one is served whole.
func TestBodiesAreBounded(t *testing.T) {
	v := New(archiveOf(t, visit{"http://a.example/", days(0), 200,
		"Content-Type: text/plain\nContent-Encoding: gzip", gzipped(strings.Repeat("0", 10<<20))},
		typed(days(0), "http://a.example/plain", "text/plain", strings.Repeat("0", 3<<20))),
		Options{})
	v.maxBody = 1 << 20
	require.Equal(t, 3<<20, ask(t, v, v.replayOf(days(0), "http://a.example/plain")).Body.Len())
	// A browser must not take the beginning for the whole.
	require.PanicsWithValue(t, http.ErrAbortHandler, func() {
		ask(t, v, v.replayOf(days(0), "http://a.example/"))
	})
}

func TestDownloads(t *testing.T) {
	v := siteHandler(t, Options{})
	w := ask(t, v, v.rawOf(days(1), millHome+"report.pdf"))
	require.Equal(t, "%PDF-1.4 and so on", w.Body.String())
	require.Equal(t, "application/octet-stream", w.Header().Get("Content-Type"))
	require.Equal(t, `attachment; filename="report.pdf"`, w.Header().Get("Content-Disposition"))
	require.Equal(t, http.StatusNotFound, ask(t, v, v.rawOf(days(1), millHome+"none")).Code)
	require.Equal(t, http.StatusBadRequest, ask(t, v, "/raw/seal/latest/x").Code)
}

func TestFileNames(t *testing.T) {
	for path, want := range map[string]string{
		"/": "index.html", "/a/b.txt": "b.txt", "/a/b/": "index.html",
		"/a%22%0d.txt": "a_22_0d.txt", "/..": "index.html", "/.hidden": "hidden",
		"/" + strings.Repeat("a", 100):      strings.Repeat("a", 80),
		"/long.." + strings.Repeat("a", 78): strings.Repeat("a", 78),
	} {
		require.Equal(t, want, fileName(weburl.URL{Path: path}), path)
	}
}

// Damage is reported, and does not affect other pages.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	a, err := archive.Open(dir, archive.Options{})
	require.NoError(t, err)
	for i, text := range []string{"whole", "broken"} {
		_, err := a.Append(archive.Capture{URL: "http://a.example/" + text, Time: days(i),
			Head: []byte("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"), Body: []byte(text)})
		require.NoError(t, err)
	}
	found, err := a.At("http://a.example/broken", days(1))
	require.NoError(t, err)
	require.NoError(t, a.Close())
	path := filepath.Join(dir, found.Location.File)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	for i := range 40 {
		data[found.Location.Offset+int64(i)] = 'x'
	}
	require.NoError(t, os.WriteFile(path, data, 0o600))
	a, err = archive.Open(dir, archive.Options{})
	require.NoError(t, err)
	defer a.Close()
	v := New(a, Options{})
	require.Equal(t, http.StatusOK, ask(t, v, v.replayOf(days(2), "http://a.example/whole")).Code)
	require.Equal(t, http.StatusBadGateway, ask(t, v,
		v.replayOf(days(2), "http://a.example/broken")).Code)
	require.Equal(t, http.StatusBadGateway, ask(t, v,
		at(viewPath, days(2), "http://a.example/broken")).Code)
}
