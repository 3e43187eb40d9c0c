package replay

import (
	"context"
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
)

// Chromium opens a signed exchange in a frame, and asks the live web for its certificate, whatever the
// policy. In Firefox, text/rdf is XML.
func TestFramesOpenOnlyWhatIsShown(t *testing.T) {
	const url = "http://a.example/"
	for kind, want := range map[string]string{
		"application/signed-exchange;v=b3": "application/octet-stream", "message/rfc822": "application/octet-stream",
		"text/rdf": "text/plain; charset=utf-8", "application/json": "application/json", "image/png": "image/png",
	} {
		v := New(archiveOf(t, typed(monday, url, kind, "x")), Options{})
		for _, dest := range []string{"iframe", "frame", "object", "embed"} {
			w := ask(t, v, v.replayOf(monday, url), "Sec-Fetch-Dest", dest)
			require.Equal(t, want, w.Header().Get("Content-Type"), dest)
		}
	}
}

// The query of a link is in the encoding of its page, as it was when the crawler followed the link.
func TestQueriesInTheEncodingOfThePage(t *testing.T) {
	const root = "http://a.example/"
	const page = `<meta http-equiv=refresh content="0;url=?q=кот"><style>b{c:url(?q=кот)}</style><a href="/кот?q=кот">`
	wide, err := binary.Append(nil, binary.LittleEndian, utf16.Encode([]rune(page)))
	require.NoError(t, err)
	for label, body := range map[string]string{"utf-8": page, "utf-16le": string(wide),
		"windows-1251": strings.ReplaceAll(page, "кот", "\xea\xee\xf2")} {
		want := "?q=%D0%BA%D0%BE%D1%82"
		if label == "windows-1251" {
			want = "?q=%EA%EE%F2"
		}
		v := New(archiveOf(t, typed(monday, root, "text/html; charset="+label, body)), Options{})
		got := ask(t, v, v.replayOf(monday, root)).Body.String()
		require.Contains(t, got, root+want+`")`, label)
		require.Contains(t, got, root+"%D0%BA%D0%BE%D1%82"+want+`"`, label)
		require.Contains(t, ask(t, v, at(viewPath, monday, root)).Body.String(),
			`redirect to <a href="`+at(viewPath, monday, root)+want+`">?q=кот`, label)
	}
}

// What follows an empty script or title is part of the page.
func TestEmptyElementsOfXHTML(t *testing.T) {
	const url = "http://a.example/"
	for _, before := range []string{`<script src="a"/>`, `<title/>`, `<iframe src="b"/><textarea rows="2"/>`, `<SCRIPT/>`, `<style/><br/>`} {
		page := func(word string) visit {
			return typed(monday, url+word, "application/xhtml+xml; charset=utf-8", `<?xml version="1.0"?><html>`+before+`<p id="p">`+word+`</p></html>`)
		}
		a := archiveOf(t, page("one"), page("two"))
		v := New(a, Options{})
		body := ask(t, v, v.replayOf(monday, url+"one"), "Sec-Fetch-Dest", "iframe").Body.String()
		require.Contains(t, body, `<p id="p">one</p></html>`, before)
		from, err := a.At(url+"one", monday)
		require.NoError(t, err)
		to, err := a.At(url+"two", monday)
		require.NoError(t, err)
		var kinds []Kind
		for piece, err := range Changes(a, from, to) {
			require.NoError(t, err)
			kinds = append(kinds, piece.Kind)
		}
		require.Equal(t, []Kind{Removed, Added}, kinds, before)
	}
}

// The start page counts what the listings have, which are pages.
func TestStartPageCountsPages(t *testing.T) {
	a := archiveOf(t, htmlAt(monday, "http://a.example/", "x"))
	for _, request := range []string{"POST /form HTTP/1.1\r\n\r\nq=1", "HEAD / HTTP/1.1\r\n\r\n"} {
		_, err := a.Append(archive.Capture{URL: "http://b.example/", Time: monday, Head: []byte(pageBlock), Request: []byte(request)})
		require.NoError(t, err)
	}
	require.Contains(t, ask(t, New(a, Options{}), "/").Body.String(), "<strong>1</strong> version of <strong>1</strong> address on <strong>1</strong> host,")
}

// An operator's deadline for requests is no page without content.
func TestARequestThatEndsWhileItWaits(t *testing.T) {
	const url = "http://a.example/"
	v := New(archiveOf(t, htmlAt(monday, url, "words")), Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, address := range []string{v.replayOf(monday, url), versionsAddress(url), diffAddress(url, monday, monday), browseAddress(url, monday)} {
		r := httptest.NewRequestWithContext(ctx, "GET", address, nil)
		r.Host = "localhost"
		w := httptest.NewRecorder()
		v.ServeHTTP(w, r)
		require.NotEqual(t, http.StatusOK, w.Code, address)
	}
}

// A script without a declared encoding is in that of its page, as archived.
func TestScriptsInTheEncodingOfThePage(t *testing.T) {
	const url = "http://a.example/"
	for label, want := range map[string]string{"windows-1251": `x" charset="windows-1251">`, "utf-8": `x">`} {
		v := New(archiveOf(t, typed(monday, url, "text/html; charset="+label, "<script src=x></script>")), Options{Scripts: true})
		body := ask(t, v, v.replayOf(monday, url), "Sec-Fetch-Dest", "iframe").Body.String()
		require.Contains(t, body, want, label)
	}
}

// The item after which a list goes on may be erased meanwhile: then the list begins again.
func TestListingAfterAnErasedItem(t *testing.T) {
	v := New(archiveOf(t, htmlAt(monday, "http://a.example/a", "x"), htmlAt(monday, "http://a.example/c", "x")), Options{})
	first := browseAddress("http://a.example/", monday)
	w := ask(t, v, first+"&after=http%3A%2F%2Fa.example%2Fb")
	require.Equal(t, http.StatusFound, w.Code)
	require.Equal(t, first, w.Header().Get("Location"))
	require.Contains(t, ask(t, v, first+"&after=http%3A%2F%2Fa.example%2Fa").Body.String(), "http://a.example/c")
}
