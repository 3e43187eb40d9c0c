package stage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/fetch"
)

func TestClassifyResponses(t *testing.T) {
	for _, tt := range []struct {
		name string
		resp fetch.Response
		want Fate
		page bool
	}{
		{"a page", fetch.Response{Status: 200}, Fetched, true},
		{"a page over the limit", fetch.Response{Status: 200, Truncated: fetch.CutLength}, Cut, true},
		{"a broken connection", fetch.Response{Status: 200, RawCut: fetch.CutDisconnect}, Cut, true},
		{"a redirect", fetch.Response{Status: 301, Location: "http://a.example/"}, Redirected, false},
		{"a redirect without a target", fetch.Response{Status: 302}, OddStatus, false},
		{"no content", fetch.Response{Status: 204}, OddStatus, false},
		{"not found", fetch.Response{Status: 404}, ClientError, false},
		{"too many requests", fetch.Response{Status: 429}, SentAway, false},
		{"unavailable", fetch.Response{Status: 503}, SentAway, false},
		{"a server error", fetch.Response{Status: 500}, ServerError, false},
		{"an undefined status", fetch.Response{Status: 999}, OddStatus, false},
		{"unchanged", fetch.Response{Status: 304, RequestHead: []byte("GET / HTTP/1.1\r\nIf-None-Match: x\r\n\r\n")},
			Unchanged, false},
		{"unchanged, but the request was unconditional", fetch.Response{Status: 304, RequestHead: []byte("GET / HTTP/1.1\r\n\r\n")},
			OddStatus, false},
		{"an unknown coding", fetch.Response{Status: 200, Truncated: fetch.CutCoding}, Undecoded, true},
	} {
		got := Classify(&tt.resp, nil)
		require.Equal(t, tt.want, got, tt.name)
		require.Equal(t, tt.page, got.Page(), tt.name)
	}
}

func TestClassifyEveryKindOfError(t *testing.T) {
	for kind := fetch.BadURL; kind <= fetch.Canceled; kind++ {
		fate, ok := fates[kind]
		require.True(t, ok, "no fate for %q", kind)
		require.Equal(t, fate, Classify(nil, &fetch.Error{Kind: kind}), "%q", kind)
	}
	require.Equal(t, Interrupted, Classify(nil, context.Canceled))
	require.Equal(t, UnknownHost, Classify(nil, fmt.Errorf("resolve a.example: %w", &net.DNSError{IsNotFound: true})))
	require.Equal(t, UnknownHost, Classify(nil, &fetch.Error{Kind: fetch.Resolve, Err: &net.DNSError{IsNotFound: true}}))
	require.Equal(t, Unresolved, Classify(nil, errors.New("resolve a.example: server misbehaving")))
}

// extracted lists the links that Extract yields, refused ones with a leading minus.
func extracted(contentType, body string, resources bool) (urls []string) {
	resp := &fetch.Response{URL: "http://a.example/d/", Body: []byte(body), Header: http.Header{}}
	if contentType != "" {
		resp.Header.Set("Content-Type", contentType)
	}
	Extract(resp, "spider", resources, func(url string, why Reason) {
		if why == NoFollow {
			url = "-" + url
		}
		urls = append(urls, url)
	})
	return urls
}

func TestExtract(t *testing.T) {
	const body = `<!doctype html><link rel=stylesheet href=s.css><a href="x">x</a><img src=i.png>`
	const x = "http://a.example/d/x"
	for _, tt := range []struct {
		name, contentType, body string
		resources               bool
		want                    []string
	}{
		{"links of a page", "text/html; charset=utf-8", body, false, []string{x}},
		{"its resources", "text/html", body, true,
			[]string{"http://a.example/d/s.css", x, "http://a.example/d/i.png"}},
		{"other pages of a manual", "text/html", `<link rel="search help" href=x><link rel=icon href=y>`,
			false, []string{x}},
		{"XHTML", "application/xhtml+xml", body, false, []string{x}},
		{"no type, but HTML by its content", "", body, false, []string{x}},
		{"no type, and not HTML", "", "%PDF-1.4 <a href=x>", false, nil},
		{"a type that cannot be parsed", "text/html; =", body, false, []string{x}},
		{"plain text", "text/plain", body, false, nil},
		{"nofollow for all", "text/html", `<meta name=robots content="noindex, NoFollow">` + body, false,
			[]string{"-" + x}},
		{"none", "text/html", `<meta name=ROBOTS content=none>` + body, false, []string{"-" + x}},
		{"nofollow for this crawler", "text/html", `<meta name=Spider content=nofollow>` + body, false,
			[]string{"-" + x}},
		{"nofollow for another one", "text/html", `<meta name=googlebot content=nofollow>` + body, false,
			[]string{x}},
		{"a style sheet", "text/css", `@import "b.css"; a{background:url(i.png)}`, false, nil},
		{"the resources of a style sheet", "Text/CSS; charset=utf-8", `@import "b.css"; a{background:url(i.png)}`,
			true, []string{"http://a.example/d/b.css", "http://a.example/d/i.png"}},
		{"the resources of a style element", "text/html", `<style>a{background:url(i.png)}</style>`, true,
			[]string{"http://a.example/d/i.png"}},
		{"rel=nofollow is a hint to rankers", "text/html", `<a rel=nofollow href=x>`, false, []string{x}},
	} {
		require.Equal(t, tt.want, extracted(tt.contentType, tt.body, tt.resources), tt.name)
	}
}

func TestExtractObeysTheHeader(t *testing.T) {
	resp := &fetch.Response{URL: "http://a.example/", Body: []byte("<a href=x>"), Header: http.Header{}}
	resp.Header.Set("Content-Type", "text/html")
	for field, want := range map[string]Reason{
		"nofollow": NoFollow, "spider: none": NoFollow, "otherbot: nofollow": "", "noindex": "",
	} {
		resp.Header.Set("X-Robots-Tag", field)
		Extract(resp, "spider", false, func(_ string, why Reason) { require.Equal(t, want, why, field) })
	}
}

// Links in a header may be in any document, and obey the same directives.
func TestExtractReadsTheLinkField(t *testing.T) {
	const links = `<x>; rel=canonical, <y>; rel="alternate next", <s.css>; rel=stylesheet,` +
		` <z>; rel=pingback, <t>; rel=license`
	for _, tt := range []struct {
		contentType, tag string
		resources        bool
		want             []string
	}{
		{"text/html", "", false, []string{"x", "y", "t", "a"}},
		{"text/html", "", true, []string{"x", "y", "s.css", "t", "a"}},
		{"application/pdf", "", false, []string{"x", "y", "t"}},
		{"text/html", "nofollow", false, []string{"-x", "-y", "-t", "-a"}},
	} {
		resp := &fetch.Response{URL: "http://a.example/", Body: []byte("<a href=a>"), Header: http.Header{
			"Content-Type": {tt.contentType}, "Link": {links}, "X-Robots-Tag": {tt.tag},
		}}
		var got []string
		Extract(resp, "spider", tt.resources, func(url string, why Reason) {
			name := strings.TrimPrefix(url, "http://a.example/")
			if why == NoFollow {
				name = "-" + name
			}
			got = append(got, name)
		})
		require.Equal(t, tt.want, got, "%+v", tt)
	}
}

func TestCapture(t *testing.T) {
	resp := &fetch.Response{
		URL: "http://a.example/", RequestHead: []byte("GET"), Head: []byte("HTTP/1.1 200"),
		Raw: []byte("raw"), Body: []byte("body"),
	}
	c := Capture(resp)
	require.Equal(t, "http://a.example/", c.URL)
	require.Equal(t, "raw", string(c.Body), "the archive stores the bytes as sent")
	require.Empty(t, c.Truncated)

	resp.Truncated = fetch.CutRatio
	require.Empty(t, Capture(resp).Truncated, "it has everything that was sent")
	resp.RawCut = fetch.CutDisconnect
	require.Equal(t, "disconnect", Capture(resp).Truncated)
}

func TestEveryTruncationCanBeArchived(t *testing.T) {
	store, err := archive.Open(t.TempDir(), archive.Options{})
	require.NoError(t, err)
	for _, cut := range []fetch.Kind{fetch.Whole, fetch.CutLength, fetch.CutTime, fetch.CutSlow,
		fetch.CutRatio, fetch.CutDisconnect, fetch.CutCoding, 99} {
		resp := &fetch.Response{
			URL: "http://a.example/", Head: []byte("HTTP/1.1 200 OK\r\n\r\n"), RawCut: cut,
			Start: time.Now(),
		}
		_, err := store.Append(Capture(resp))
		require.NoError(t, err, "%v", cut)
	}
	require.NoError(t, store.Close())
}
