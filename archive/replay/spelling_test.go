package replay

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
)

// oddURLs are URLs as programs other than browsers send and store them.
var oddURLs = []string{"http://a.example/100%", "http://a.example/%u00e4", "http://a.example/%",
	"http://a.example/x?q='a'", `http://a.example/x?q="a"&r=%20`, "http://a.example/x?q=<a>",
	`http://a.example/a"b`, "http://a.example/{x}", "http://a.example/^x`", `http://a.example/a\b`,
	"http://a.example/{x}/y", "http://a.example/it's?q={\"a\"}"}

// A page is found by the links to it, whatever the spelling of its URL.
func TestSpellings(t *testing.T) {
	for _, url := range oddURLs {
		v := New(archiveOf(t, htmlAt(days(0), url, "<p>Here")), Options{})
		server := httptest.NewServer(v)
		defer server.Close()
		addresses := []string{versionsAddress(url), at(viewPath, days(0), url)}
		if !strings.Contains(url, `\`) { // which a browser takes for a slash
			addresses = append(addresses, v.replayOf(days(0), url), v.rawOf(days(0), url),
				diffAddress(url, days(0), days(0)))
		}
		for _, address := range addresses {
			answer, err := http.Get(server.URL + address)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			if !strings.Contains(url, `\`) || !strings.HasPrefix(address, "/versions") {
				require.Equal(t, http.StatusOK, answer.StatusCode, address)
			}
		}
		dir := url[:strings.LastIndex(url, "/")+1]
		doc, _ := tree(t, v, 200, browseAddress(dir, days(0)))
		require.Contains(t, links(doc), at(viewPath, days(0), url))
	}
}

// Two pages whose URLs differ only in an escape stay two.
func TestSpellingsStayApart(t *testing.T) {
	v := New(archiveOf(t, htmlAt(days(0), "http://a.example/%7Bx%7D", "escaped"),
		htmlAt(days(0), "http://a.example/{y}", "plain")), Options{})
	require.Contains(t, ask(t, v, v.replayOf(days(0), "http://a.example/{x}")).Body.String(),
		"escaped")
	require.Contains(t, ask(t, v, v.replayOf(days(0), "http://a.example/{y}")).Body.String(),
		"plain")
}

// An escaped percent sign before two digits is not that of an address, but of another page.
func TestEscapedEscapesStayApart(t *testing.T) {
	v := New(archiveOf(t, htmlAt(days(0), "http://a.example/a%41", "other"),
		htmlAt(days(0), "http://a.example/?q=%26", "other"), htmlAt(days(0), "http://a.example/100%/x%", "found")), Options{})
	for _, url := range []string{"http://a.example/a%2541", "http://a.example/?q=%2526"} {
		require.Equal(t, http.StatusNotFound, ask(t, v, v.replayOf(days(0), url)).Code)
		require.Equal(t, http.StatusNotFound, ask(t, v, at(viewPath, days(0), url)).Code)
	}
	require.Contains(t, ask(t, v, v.replayOf(days(0), "http://a.example/100%25/x%25")).Body.String(), "found")
}

// Directories of any length list what is in them.
func TestLongDirectories(t *testing.T) {
	for _, n := range []int{390, 410, 470, 900} {
		dir := "http://a.example/" + strings.Repeat("d", n) + "/"
		v := New(archiveOf(t, htmlAt(days(0), dir+"one", "1"), htmlAt(days(0), dir+"two", "2"),
			htmlAt(days(0), strings.TrimSuffix(dir, "/")+"x/three", "3")), Options{})
		_, words := tree(t, v, 200, browseAddress(dir, days(0)))
		require.Contains(t, words, "2 versions of 2 addresses", n)
	}
}

// A search in an archive that cannot be read does not say that the page is not there.
func TestSearchReportsErrors(t *testing.T) {
	a, err := archive.Open(t.TempDir(), archive.Options{})
	require.NoError(t, err)
	require.NoError(t, a.Close())
	require.Equal(t, http.StatusBadGateway, ask(t, New(a, Options{}), "/go?url=a.example").Code)
}
