package page_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/page"
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/internal/memnet"
	"github.com/stretchr/testify/require"
)

// trapClient returns a client of a virtual web with all traps.
func trapClient(t *testing.T) *fetch.Client {
	web, err := webtest.Start(webtest.Options{Hosts: 1, Network: memnet.New(), Traits: func(int) webtest.Traits {
		return webtest.Traits{Traps: webtest.TrapAll}
	}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, web.Close()) })
	client, err := fetch.New(fetch.Options{
		Reach: fetch.Loopback, Dial: web.Dial, Resolve: web.Resolve,
	})
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// The virtual web has pages whose declared encoding is wrong. Their text is decoded wherever a
// browser would show it, and the result is always UTF-8.
func TestWronglyDeclaredEncodings(t *testing.T) {
	lost := map[int]string{
		10: "declared to be UTF-8 and is not", 11: "declared to be Latin-1 and is UTF-8",
		17: "UTF-7, which no browser reads", 20: "an image",
	}
	client := trapClient(t)
	for n := 0; ; n++ {
		url := fmt.Sprintf("http://h00000.vweb.test/trap/charset/%d", n)
		r, err := client.Get(t.Context(), url)
		require.NoError(t, err)
		if r.Status == 404 {
			require.Greater(t, n, 20)
			break
		}
		body, name := page.ToUTF8(r.Body, r.Header.Get("Content-Type"))
		require.True(t, utf8.Valid(body), "%s: %q", url, body)
		shown := strings.Contains(string(body), "caf\u00e9") || strings.Contains(string(body), "\u6771\u4eac")
		require.Equal(t, lost[n] == "", shown, "%s as %s: %q", url, name, body)
	}
}

// In broken pages, browsers and the tokenizer find only the link to the home page, and so does
// Links.
func TestLinksOfBrokenPages(t *testing.T) {
	client := trapClient(t)
	pages, home := 0, 0
	for ; ; pages++ {
		url := fmt.Sprintf("http://h00000.vweb.test/trap/broken/%d", pages)
		r, err := client.Get(t.Context(), url)
		require.NoError(t, err)
		if r.Status == 404 {
			break
		}
		if bytes.HasPrefix(r.Body, []byte("\xff\xfe")) || bytes.HasPrefix(r.Body, []byte("\xfe\xff")) {
			continue // UTF-16, which the tokenizer does not read
		}
		same(t, r.Body, r.URL, r.URL)
		for l, err := range page.Links(r.Body, r.URL, inUTF8) {
			require.NoError(t, err)
			require.Equal(t, "http://h00000.vweb.test/", l.URL, r.URL)
			home++
		}
	}
	require.Greater(t, pages, 15)
	require.Greater(t, home, pages/2)
}

// Each line end of CSS ends a string that is not closed.
func TestLineEndsEndStrings(t *testing.T) {
	for _, end := range []string{"\n", "\r", "\f", "\r\n"} {
		var urls []string
		for link, err := range page.Styles([]byte("a{x:'"+end+"}b{background:url(real.png)}c{y:'z'}"), "http://a.test/", "") {
			require.NoError(t, err)
			urls = append(urls, link.URL)
		}
		require.Equal(t, []string{"http://a.test/real.png"}, urls, "%q", end)
	}
}

// An angle bracket that begins no tag is text.
func TestBracketsAreText(t *testing.T) {
	for in, want := range map[string]string{
		"1 < 2 and 3 <4 <b>a</b><": "1 < 2 and 3 <4 a<", "<<p>x": "<\nx", "<": "<", "a<\xff": "a<\uFFFD",
	} {
		var text strings.Builder
		opts := page.Options{Text: func(piece []byte) { text.Write(piece) }}
		for range page.Scan([]byte(in), "http://a.test/", "text/html; charset=utf-8", opts) {
		}
		require.Equal(t, want, text.String(), "%q", in)
	}
}
