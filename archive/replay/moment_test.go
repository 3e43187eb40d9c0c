package replay

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
)

// Of two versions of the same time, an address shows the last one. The list says so of the first.
func TestVersionsOfTheSameTime(t *testing.T) {
	const url = "http://a.example/"
	v := New(archiveOf(t, htmlAt(days(0), url, "<p>oldest"), htmlAt(days(1), url, "<p>first"),
		visit{url, days(1), 404, "Content-Type: text/html", "<p>second"}), Options{})
	doc, words := tree(t, v, 200, versionsAddress(url))
	require.Contains(t, words, "3 versions")
	require.Equal(t, 1, strings.Count(words, "replaced at the same time"))
	require.NotContains(t, links(doc), diffAddress(url, days(1), days(1)))
	body := ask(t, v, versionsAddress(url)).Body.String()
	require.Equal(t, 4, strings.Count(body, `type="radio"`))
	require.Equal(t, 2, strings.Count(body, " checked"))
	_, words = tree(t, v, 200, diffAddress(url, days(0), days(1))+"&mode=text")
	require.Contains(t, words, "second")
}

// What is shown as of a time changes, too, so that a browser asks each time.
func TestNothingIsKeptByBrowsers(t *testing.T) {
	const url = "http://a.example/"
	a := archiveOf(t, htmlAt(days(0), url, "<p>old"))
	v := New(a, Options{})
	later := v.replayOf(days(9), url)
	w := ask(t, v, later)
	require.Contains(t, w.Body.String(), "old")
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	_, err := a.Append(archive.Capture{URL: url, Time: days(1), Body: []byte("<p>new"),
		Head: []byte("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")})
	require.NoError(t, err)
	require.Contains(t, ask(t, v, later).Body.String(), "new")
}

// Files are compared by their bytes, not by the digests that another program wrote.
func TestForgedDigests(t *testing.T) {
	const url = "http://a.example/i.png"
	var file strings.Builder
	for i, body := range []string{"AAAA", "BBBBBB"} {
		message := "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n" + body
		file.WriteString("WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: " + url +
			"\r\nWARC-Date: " + days(i).Format(time.RFC3339) + "\r\nWARC-Record-ID: <urn:uuid:" +
			"00000000-0000-4000-8000-00000000000" + body[:1] + ">\r\nWARC-Payload-Digest: " +
			"sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ\r\nContent-Type: application/http; " +
			"msgtype=response\r\nContent-Length: " + number(len(message)) + "\r\n\r\n" + message +
			"\r\n\r\n")
	}
	path := filepath.Join(t.TempDir(), "a.warc")
	require.NoError(t, os.WriteFile(path, []byte(file.String()), 0o600))
	a := archiveOf(t)
	_, err := a.Import(path)
	require.NoError(t, err)
	_, words := tree(t, New(a, Options{}), 200, diffAddress(url, days(0), days(1)))
	require.Contains(t, words, "different content")
}

// A comparison says what it has not compared.
func TestComparisonsOfDamage(t *testing.T) {
	const url = "http://a.example/"
	text := strings.Repeat("line\n", 5000)
	for _, kind := range []string{"text/plain", "image/png"} {
		v := New(archiveOf(t, typed(days(0), url, kind, text), typed(days(1), url,
			kind+"\nContent-Encoding: gzip", gzipped(text)[:30])), Options{})
		_, words := tree(t, v, 200, diffAddress(url, days(0), days(1)))
		require.Contains(t, words, "cannot be read to its end")
		require.NotContains(t, words, "the same content")
		require.NotContains(t, words, "different content")
	}
}
