package replay

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// coded returns text encoded by a compressor.
func coded(t testing.TB, text string, compressor func(io.Writer) io.WriteCloser) string {
	t.Helper()
	var out bytes.Buffer
	w := compressor(&out)
	_, err := io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.String()
}

func deflated(w io.Writer) io.WriteCloser {
	z, err := flate.NewWriter(w, 6)
	if err != nil {
		panic(err)
	}
	return z
}

func zstandard(w io.Writer) io.WriteCloser {
	z, err := zstd.NewWriter(w)
	if err != nil {
		panic(err)
	}
	return z
}

func TestContentCodings(t *testing.T) {
	page := "<p>" + strings.Repeat("what was archived ", 200)
	brotlied := func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) }
	zlibbed := func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }
	for _, tt := range []struct{ name, coding, body string }{
		{"none", "", page},
		{"identity", "identity", page},
		{"gzip", "gzip", gzipped(page)},
		{"gzip with its old name", "x-gzip", gzipped(page)},
		{"gzip in upper case", "GZip", gzipped(page)},
		{"gzip, already removed", "gzip", page},
		{"deflate in zlib format", "deflate", coded(t, page, zlibbed)},
		{"raw deflate", "deflate", coded(t, page, deflated)},
		{"brotli", "br", coded(t, page, brotlied)},
		{"zstd", "zstd", coded(t, page, zstandard)},
		{"zstd, already removed", "zstd", page},
		{"gzip twice", "gzip, gzip", gzipped(gzipped(page))},
		{"gzip and then brotli", "gzip,br", coded(t, gzipped(page), brotlied)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := New(archiveOf(t, visit{"http://a.example/", days(0), 200,
				"Content-Type: text/html\nContent-Encoding: " + tt.coding, tt.body}), Options{})
			w := ask(t, v, v.replayOf(days(0), "http://a.example/"))
			require.Equal(t, http.StatusOK, w.Code)
			require.Equal(t, page, w.Body.String())
			require.Empty(t, w.Header().Get("Content-Encoding"))
		})
	}
}

// A truncated compressed body is shown up to the truncation.
func TestTruncatedCodings(t *testing.T) {
	page := strings.Repeat("<p>words</p>", 20_000)
	packed := gzipped(page)
	v := New(archiveOf(t, visit{"http://a.example/", days(0), 200,
		"Content-Type: text/html\nContent-Encoding: gzip", packed[:len(packed)/2]}), Options{})
	w := ask(t, v, v.replayOf(days(0), "http://a.example/"))
	require.Equal(t, http.StatusOK, w.Code)
	require.True(t, strings.HasPrefix(w.Body.String(), "<p>words</p>"))
	require.Less(t, w.Body.Len(), len(page))
}

// Status codes that would make a browser ask for a password or retry are replaced.
func TestStatusCodes(t *testing.T) {
	for status, want := range map[int]int{200: 200, 203: 200, 300: 200, 304: 200,
		400: 404, 401: 404, 403: 403, 404: 404, 407: 404, 408: 404, 410: 410, 425: 404, 451: 451,
		500: 500, 501: 500, 503: 503, 599: 500} {
		v := New(archiveOf(t, visit{"http://a.example/", days(0), status,
			"Content-Type: text/html\nWWW-Authenticate: Basic\nRetry-After: 1", "<p>x"}), Options{})
		w := ask(t, v, v.replayOf(days(0), "http://a.example/"))
		if status == 304 {
			continue // there is no earlier content
		}
		require.Equal(t, want, w.Code, "status %d", status)
		require.Empty(t, w.Header().Get("WWW-Authenticate"))
		require.Empty(t, w.Header().Get("Retry-After"))
	}
}

// A 304 shows the content of the version before it.
func TestNotModified(t *testing.T) {
	const url = "http://a.example/"
	v := New(archiveOf(t, htmlAt(days(0), url, "<p>old"), visit{url, days(1), 304, "Etag: x", ""},
		visit{"http://a.example/lost", days(1), 304, "", ""}), Options{})
	w := ask(t, v, v.replayOf(days(1), url))
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "<p>old", w.Body.String())
	require.Equal(t, "Tue, 03 Nov 2026 09:00:00 GMT", w.Header().Get("Memento-Datetime"))
	_, words := tree(t, v, 200, at(viewPath, days(1), url))
	require.Contains(t, words, "unchanged")

	// A 304 without an earlier version has nothing to show.
	require.Equal(t, 404, ask(t, v, v.replayOf(days(1), "http://a.example/lost")).Code)
	require.Equal(t, 404, ask(t, v, at(viewPath, days(1), "http://a.example/lost")).Code)
	tree(t, v, 200, versionsAddress("http://a.example/lost"))
}

func TestEncodings(t *testing.T) {
	for _, tt := range []struct{ name, page, kind, want string }{
		{"UTF-8 in Content-Type", "é", "text/html; charset=utf-8", "é"},
		{"undeclared UTF-8", "é", "text/html", "é"},
		{"undeclared UTF-8 after ASCII", strings.Repeat(" ", 2000) + "é", "text/html",
			strings.Repeat(" ", 2000) + "é"},
		{"a byte order mark", "\xef\xbb\xbfé", "text/html", "é"},
		{"a byte order mark precedes Content-Type", "\xef\xbb\xbfé", "text/html; charset=latin1",
			"é"},
		{"Content-Type precedes meta", "<meta charset=koi8-r>\xe9",
			"text/html; charset=iso-8859-1", "<meta charset=koi8-r>é"},
		{"undeclared, and not UTF-8", "\xe9\x80", "text/html", "é€"},
		{"undeclared UTF-8, cut", "Grüße\xc3", "text/html", "Grüße\uFFFD"},
		{"undeclared UTF-8 with a mistake", "Grüße" + strings.Repeat(" ", 2000) + "\x80ü", "text/html",
			"Grüße" + strings.Repeat(" ", 2000) + "\uFFFDü"},
		{"an unknown encoding", "\xe9", "text/html; charset=klingon", "é"},
		{"UTF-16 without a byte order mark", "a\x00b\x00", "text/html; charset=utf-16le", "ab"},
		{"Japanese in seven bits", "\x1b$B$\"\x1b(B<", "text/html; charset=iso-2022-jp", "あ<"},
		{"invalid UTF-8", "a\xffb", "text/html; charset=utf-8", "a\uFFFDb"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, inUTF8(toUTF8([]byte(tt.page), tt.kind, 1<<20)))
		})
	}
	for _, tt := range []struct{ name, sheet, kind, want string }{
		{"a sheet, in Content-Type", "\xe9", "text/css; charset=iso-8859-1", "é"},
		{"@charset", "@charset \"koi8-r\";\xc1", "text/css", "@charset \"koi8-r\";а"},
		{"a sheet in undeclared UTF-8", "é", "text/css", "é"},
		{"a sheet, undeclared, and not UTF-8", "\xe9", "text/css", "é"},
		{"@charset after a space", " @charset \"koi8-r\";\xc1", "text/css",
			" @charset \"koi8-r\";Á"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, inUTF8(sheetUTF8([]byte(tt.sheet), tt.kind, 1<<20)))
		})
	}
}

// inUTF8 returns a converted text that is whole.
func inUTF8(converted []byte, whole bool) string {
	if !whole {
		return "not whole"
	}
	return string(converted)
}

// A page that is too long in UTF-8 is not converted as a whole.
func TestConversionIsBounded(t *testing.T) {
	page := bytes.Repeat([]byte("\x80"), 1000) // each becomes three bytes
	converted, whole := toUTF8(page, "text/html; charset=windows-1252", 2999)
	require.False(t, whole)
	require.Len(t, converted, 3000)
	_, whole = toUTF8(page, "text/html; charset=windows-1252", 3000)
	require.True(t, whole)
}

// A page is read in the encoding in which a browser reads it.
func TestDeclaredEncodings(t *testing.T) {
	const greeting = "\xcf\xf0\xe8\xe2\xe5\xf2" // in windows-1251
	for _, tt := range []struct{ name, kind, body, want string }{
		{"all bytes are ASCII", "text/html", "<meta charset=iso-2022-jp><p>\x1b$BF|K\\8l\x1b(B", "日本語"},
		{"the bytes happen to be UTF-8", "text/html", "<meta charset=windows-1251><p>\xd0\x90", "Рђ"},
		{"after a kilobyte", "text/html", strings.Repeat(" ", 1100) + `<meta http-equiv=Content-Type ` +
			`content="text/html; Charset='windows-1251'">` + greeting, "Привет"},
		{"with a word behind it", "text/html", "<meta http-equiv=Content-Type content='text/html; charset=windows-1251 x'>" +
			greeting, "Привет"},
		{"with a quote that is not closed", "text/html; charset=no", "<meta http-equiv=Content-Type " +
			"content='charset=\"utf-16'><meta charset=windows-1251>" + greeting, "Привет"},
		{"with spaces", "text/html", "<meta http-equiv=Content-Type content='text/html; charset = \"windows-1251\"'>" +
			greeting, "Привет"},
		{"beside http-equiv", "text/html", "<meta http-equiv=Content-Type content=text/html charset=windows-1251>" +
			greeting, "Привет"},
		{"after a longer word", "text/html",
			"<meta http-equiv=Content-Type content='text/html; charsets; charset=windows-1251'>" + greeting, "Привет"},
		{"for scripts only", "text/html", "<meta charset=x-user-defined><p>\xe4", "ä"},
		{"read as ASCII, so not UTF-16", "text/html", "<meta charset=utf-16><p>ä", "ä"},
		{"in the field", "text/html; charset=windows-1251", "<meta charset=utf-8><p>" +
			greeting, "Привет"},
		{"a mark", "text/html; charset=windows-1251", "\xef\xbb\xbf<p>Привет", "Привет"},
		{"in no page", "text/plain", "<meta charset=windows-1251>Привет", "Привет"},
		{"of XML", "text/xml", `<?xml version="1.0" encoding="windows-1251"?>` +
			greeting, "Привет"},
	} {
		converted, whole := toUTF8([]byte(tt.body), tt.kind, 1<<20)
		require.True(t, whole)
		require.True(t, strings.HasSuffix(string(converted), tt.want), "%s: %s", tt.name, converted)
	}
	// What is shown as its source says so to the browser.
	const url = "http://a.example/feed"
	v := New(archiveOf(t, typed(days(0), url, "text/xml",
		`<?xml version="1.0" encoding="windows-1251"?>`)), Options{})
	require.Equal(t, "text/plain; charset=windows-1251",
		ask(t, v, v.replayOf(days(0), url), "Sec-Fetch-Dest", "iframe").Header().Get("Content-Type"))
}

// Browsers show all of these as a page in UTF-8, or guess that it is one.
func TestSloppyTypes(t *testing.T) {
	const url = "http://a.example/"
	page := "<!DOCTYPE html><meta charset=utf-8><title>x</title><p>café"
	for _, kind := range []string{"text/html; charset=utf-8; charset=iso-8859-1", "text/html, text/html",
		"text/html, text/html; charset=utf-8", "text/html; charset=utf-8, text/html", "text/html charset=utf-8",
		"text/html (comment)", "text/html; charset=utf-8; filename*=UTF-8''a; filename*=b", "text", "*/*",
		";charset=utf-8", "text/html\nContent-Type: text/html", "text/plain\nContent-Type: text/html",
		"TEXT/HTML;CHARSET='UTF8'", "text/html;; charset=utf-8", "text/plain, text/html, x"} {
		v := New(archiveOf(t, typed(days(0), url, kind, page)), Options{})
		w := ask(t, v, v.replayOf(days(0), url), "Sec-Fetch-Dest", "iframe")
		require.Equal(t, "text/html; charset=utf-8", w.Header().Get("Content-Type"), kind)
		require.Contains(t, w.Body.String(), "<p>café", kind)
		require.Contains(t, ask(t, v, at(viewPath, days(0), url)).Body.String(), "<iframe", kind)
	}
	for kind, want := range map[string][2]string{"text/html;charset=a, text/html;charset=b": {"text/html", "b"},
		"text/html;charset=a, text/plain": {"text/plain", ""}, "a b/c": {"", ""}, "a/b/c": {"", ""},
		`text/html; x="; charset=c"; charset="d"`: {"text/html", "c"}, "text/html;charset=a\x00": {"text/html", ""},
		"text/html;charset=" + strings.Repeat("x", 50): {"text/html", strings.Repeat("x", maxLabel)}} {
		media, label := contentType([]string{kind})
		require.Equal(t, want, [2]string{media, label}, kind)
	}
}

// Several fields are one list.
func TestTwoContentEncodings(t *testing.T) {
	const url = "http://a.example/"
	twice := gzipped(gzipped("<p>café"))
	v := New(archiveOf(t, typed(days(0), url, "text/html; charset=utf-8\nContent-Encoding: gzip\nContent-Encoding: gzip", twice),
		typed(days(1), url, "text/html; charset=utf-8\nContent-Encoding: identity\nContent-Encoding: gzip", gzipped("<p>café"))), Options{})
	for day := range 2 {
		require.Equal(t, "<p>café", ask(t, v, v.replayOf(days(day), url)).Body.String())
	}
}
