package page_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spinneret-go/spinneret/fetch/page"
	"github.com/spinneret-go/spinneret/internal/weburl"
	"github.com/stretchr/testify/require"
)

const pageURL = "http://a.test/dir/page.html"

const inUTF8 = "text/html; charset=utf-8"

// collect returns the links that Links yields, one string for each, and its error.
func collect(body, base string) (found []string, err error) {
	for l, e := range page.Links([]byte(body), base, inUTF8) {
		if e != nil {
			return found, e
		}
		found = append(found, show(l))
	}
	return found, nil
}

var kindNames = map[page.Kind]string{
	page.Anchor: "anchor", page.Frame: "frame", page.Resource: "resource",
	page.Redirect: "redirect", page.Canonical: "canonical", page.Alternate: "alternate",
	page.Next: "next", page.Prev: "prev", page.Related: "related",
	page.Directive: "directive",
}

func show(l page.Link) string {
	parts := []string{kindNames[l.Kind]}
	if l.URL != "" {
		parts = append(parts, l.URL)
	}
	if l.Rel != "" {
		parts = append(parts, "rel="+l.Rel)
	}
	if l.NoFollow {
		parts = append(parts, "nofollow")
	}
	if l.Name != "" {
		parts = append(parts, l.Name+"="+l.Text)
	}
	return strings.Join(parts, " ")
}

func TestLinks(t *testing.T) {
	tests := []struct {
		name string
		body string
		want string // lines
	}{
		{"nothing", ``, ``},
		{"a relative link", `<a href="next.html">`, `anchor http://a.test/dir/next.html`},
		{"an absolute link", `<A HREF='https://B.test:443/x/../y'>`, `anchor https://b.test/y`},
		{"an unquoted link", `<a href=/x?q=1>`, `anchor http://a.test/x?q=1`},
		{"a link relative to the scheme", `<a href=//b.test>`, `anchor http://b.test/`},
		{"an area", `<map><area href=x></map>`, `anchor http://a.test/dir/x`},
		{"white space is removed", "<a href=' \n x\ny\t'>", `anchor http://a.test/dir/xy`},
		{"an empty link is this page", `<a href="">`, `anchor http://a.test/dir/page.html`},
		{"an anchor without href is not a link", `<a name=x><a>`, ``},
		{"a fragment of this page is not a link", `<a href="#top"><a href=" # ">`, ``},
		{"the fragment is dropped", `<a href="x#y">`, `anchor http://a.test/dir/x`},
		{"credentials are dropped", `<a href="http://u:p@b.test/">`, `anchor http://b.test/`},
		{"character references", `<a href="x?a=1&amp;b=2&copy=3&#38;d">`,
			`anchor http://a.test/dir/x?a=1&b=2&copy=3&d`},
		{"other schemes are omitted", `<a href="mailto:x@y"><a href=javascript:void(0)>
			<a href=data:,x><a href=ftp://a.test/><a href=file:///etc/passwd><a href=tel:1>`, ``},
		{"a bad link does not end it", `<a href="http://[/"><a href="http://a b/"><a href=x>`,
			`anchor http://a.test/dir/x`},
		{"the first of two equal attributes counts", `<a href=x href=y>`, `anchor http://a.test/dir/x`},
		{"rel", `<a rel=" NoFollow UGC " href=x><a rel=nofollow href=y><a rel=nofollowing href=z>`,
			"anchor http://a.test/dir/x rel=nofollow ugc nofollow\n" +
				"anchor http://a.test/dir/y rel=nofollow nofollow\n" +
				`anchor http://a.test/dir/z rel=nofollowing`},
		{"a form is not a link", `<form action=x><button formaction=y>`, ``},
		{"a truncated tag is not a link", `<a href="x`, ``},

		{"resources of a page", `<img src=i><script src=s></script><embed src=e><object data=o>
			<audio src=a></audio><video src=v poster=p><source src=r><track src=t></video>
			<input type=IMAGE src=b><input type=text src=no>`,
			"resource http://a.test/dir/i\nresource http://a.test/dir/s\n" +
				"resource http://a.test/dir/e\nresource http://a.test/dir/o\n" +
				"resource http://a.test/dir/a\nresource http://a.test/dir/v\n" +
				"resource http://a.test/dir/p\nresource http://a.test/dir/r\n" +
				"resource http://a.test/dir/t\nresource http://a.test/dir/b"},
		{"an empty resource is omitted", `<img src="" srcset=" , "><script src=" "></script>`, ``},
		{"frames", `<iframe src=i><a href=no></iframe>`, `frame http://a.test/dir/i`},
		{"a frameset", `<title>x</title><frameset><frame src=f><frameset><frame src=g></frameset>
			</frameset><noframes><a href=y></noframes>`,
			"frame http://a.test/dir/f\nframe http://a.test/dir/g\nanchor http://a.test/dir/y"},
		{"srcset", `<img src=a srcset="b 1x, c 2x"><source srcset="d,e 3w">`,
			"resource http://a.test/dir/a\nresource http://a.test/dir/b\n" +
				"resource http://a.test/dir/c\nresource http://a.test/dir/d,e"},
		{"SVG", `<svg><a xlink:href=x></a><a href=y xlink:href=no></a><image href=z /><use href=u#v />
			<script xlink:href=s /><a src=no></svg><a xlink:href=no>`,
			"anchor http://a.test/dir/x\nanchor http://a.test/dir/y\nresource http://a.test/dir/z\n" +
				"resource http://a.test/dir/u\nresource http://a.test/dir/s"},
		{"an SVG title has no text of its own", `<svg><title/></svg><a href=x>`, `anchor http://a.test/dir/x`},
		{"self-closing in SVG", `<svg><style/><script/></svg><a href=x>`, `anchor http://a.test/dir/x`},
		{"nothing is self-closing in HTML", `<script/><a href=no></script><a href=x>`,
			`anchor http://a.test/dir/x`},
		{"a style in SVG is markup", `<svg><style><a href=x></a></style></svg>`, `anchor http://a.test/dir/x`},
		{"HTML elements in SVG do not count", `<svg><link rel=next href=no><base href=/no/><iframe src=no>
			</svg><a href=x>`, `anchor http://a.test/dir/x`},
		{"HTML in SVG", `<svg><foreignObject><iframe src=x></iframe><div><title><a href=no></title></div>
			</foreignObject><iframe src=no></iframe></svg><img src=y>`,
			"frame http://a.test/dir/x\nresource http://a.test/dir/y"},
		{"an HTML element ends SVG", `<svg><p><image src=x>`, `resource http://a.test/dir/x`},
		{"SVG that is not closed", `<div><svg><path></div><title><a href=no></title><a href=x>`,
			`anchor http://a.test/dir/x`},
		{"CDATA", `<svg><![CDATA[<a href=no>]]></svg><![CDATA[<a href=no>]]><a href=x>`,
			`anchor http://a.test/dir/x`},
		{"MathML", `<math><mi><a href=x></a></mi><annotation-xml encoding=text/html>
			<style/><a href=no></style></annotation-xml></math><a href=y>`,
			"anchor http://a.test/dir/x\nanchor http://a.test/dir/y"},
		{"image is an alias of img", `<image src=x>`, `resource http://a.test/dir/x`},

		{"link elements", `<link rel=stylesheet href=s><link rel="shortcut icon" href=i>
			<link rel=canonical href=c><link rel="alternate stylesheet" href=t>
			<link rel=Alternate hreflang=de href=d><link rel=next href=n><link rel=prev href=p>
			<link rel=previous href=q><link rel=author href=a>`,
			"resource http://a.test/dir/s rel=stylesheet\n" +
				"resource http://a.test/dir/i rel=shortcut icon\n" +
				"canonical http://a.test/dir/c rel=canonical\n" +
				"resource http://a.test/dir/t rel=alternate stylesheet\n" +
				"alternate http://a.test/dir/d rel=alternate\n" +
				"next http://a.test/dir/n rel=next\nprev http://a.test/dir/p rel=prev\n" +
				"prev http://a.test/dir/q rel=previous\nrelated http://a.test/dir/a rel=author"},
		{"link elements that are not links", `<link href=x><link rel=preconnect href=//b.test>
			<link rel=dns-prefetch href=//b.test><link rel=canonical><link rel=next href=" ">`, ``},
		{"a preloaded image", `<link rel=preload as=image imagesrcset="a 1x,b 2x">`,
			"resource http://a.test/dir/a\nresource http://a.test/dir/b"},

		{"meta refresh", `<meta http-equiv=Refresh content="5; URL='x'">`,
			`redirect http://a.test/dir/x`},
		{"a reload is not a link", `<meta http-equiv=refresh content=5>`, ``},
		{"meta robots", `<meta name=" ROBOTS " content=" noindex, NoFollow ">`,
			`directive robots=noindex, NoFollow`},
		{"meta for one crawler", `<meta name=ExampleBot content="max-snippet:-1">`,
			`directive examplebot=max-snippet:-1`},
		{"other meta", `<meta name=viewport content="width=device-width">
			<meta content=noindex><meta charset=utf-8><meta name=author content="A. Nonymous">`, ``},

		{"base", `<a href=x><base href="/other/"><a href=x><base href=/third/><a href=x>`,
			"anchor http://a.test/dir/x\nanchor http://a.test/other/x\nanchor http://a.test/other/x"},
		{"base without href is ignored", `<base target=_top><base href=//b.test><a href=x>`,
			`anchor http://b.test/x`},
		{"an unusable base leaves the page's own", `<base href=javascript:0><base href=/n/><a href=x>`,
			`anchor http://a.test/dir/x`},
		{"a base in a template does not count",
			`<template><template></template><base href=/t/></template><base href=/b/><a href=x>`,
			`anchor http://a.test/b/x`},
		{"with a base, a fragment is another page", `<base href=/b><a href=#top>`,
			`anchor http://a.test/b`},

		{"noscript is searched", `<noscript><img src=x><a href=y></noscript>`,
			"resource http://a.test/dir/x\nanchor http://a.test/dir/y"},
		{"a nested form is ignored", `<form><input src=x type=image><form></form></form>`,
			`resource http://a.test/dir/x`},
		{"noframes is searched", `<noframes><body><a href=y></noframes>`,
			`anchor http://a.test/dir/y`},
		{"comments, scripts, texts are skipped", `<!-- <a href=1> --><script>"<a href=2>"</script>
			<style><a href=3></style><textarea><a href=4></textarea><title><a href=5></title>`, ``},

		{"UTF-8", "<a href=/é?ü>", `anchor http://a.test/%C3%A9?%C3%BC`},
		{"bytes that are not UTF-8", "<a href=/\xe9><a href=x>",
			"anchor http://a.test/%EF%BF%BD\nanchor http://a.test/dir/x"},
		{"a NUL", "<a\x00 href=no><a href=x\x00y>", `anchor http://a.test/dir/x%EF%BF%BDy`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := collect(tt.body, pageURL)
			require.NoError(t, err)
			require.Equal(t, tt.want, strings.Join(got, "\n"), "Links(%q)", tt.body)
		})
	}
}

func TestLinksEndsWithOneError(t *testing.T) {
	many := strings.Repeat("<a href=x>", page.MaxLinks)
	tests := []struct {
		name  string
		body  string
		base  string
		links int
		want  error // nil: any
	}{
		{"no base", "<a href=x>", "", 0, weburl.ErrNoBase},
		{"a relative base", "<a href=x>", "/dir/", 0, weburl.ErrNoBase},
		{"a long base", "<a href=x>", "http://a.test/" + strings.Repeat("x", page.MaxURL), 0, nil},
		{"too many links", many + "<a href=x>", pageURL, page.MaxLinks, page.ErrTooManyLinks},
		{"too many useless links", strings.Repeat("<a href=tel:1>", page.MaxLinks+1), pageURL, 0,
			page.ErrTooManyLinks},
		{"too many in one srcset", "<img srcset='" + strings.Repeat("x 1x,", page.MaxLinks+1) + "'>",
			pageURL, page.MaxLinks, page.ErrTooManyLinks},
		{"few long links", "<base href=/" + strings.Repeat("x", 8000) + "/>" + many, pageURL,
			page.MaxLinkBytes / len("http://a.test/"+strings.Repeat("x", 8000)+"/x"),
			page.ErrTooManyLinks},
		{"links too long for their base", "<base href=/" + strings.Repeat("x", 8000) + "/>" + strings.Repeat("<a href="+strings.Repeat("y", 500)+">", 1100),
			pageURL, 0, page.ErrTooManyLinks},
		{"too many directives", strings.Repeat("<meta name=robots content=a>", page.MaxLinks+1), pageURL, page.MaxLinks, page.ErrTooManyLinks},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			links, errs := 0, 0
			for l, err := range page.Links([]byte(tt.body), tt.base, inUTF8) {
				require.Zero(t, errs, "nothing may follow the error")
				if err == nil {
					links++
					continue
				}
				errs++
				require.Equal(t, page.Link{}, l)
				if tt.want != nil {
					require.ErrorIs(t, err, tt.want)
				}
			}
			require.Equal(t, 1, errs)
			require.Equal(t, tt.links, links)
		})
	}
	got, err := collect(many, pageURL)
	require.NoError(t, err, "MaxLinks links are not too many")
	require.Len(t, got, page.MaxLinks)
}

// What Scan yields besides links is bounded with them.
func TestScanBoundsEverything(t *testing.T) {
	for _, one := range []string{"<p id=x>", "<a name=x>", "<a id=x name=y>", "<meta name=x content=y>"} {
		found := 0
		for _, err := range page.Scan([]byte(strings.Repeat(one, page.MaxLinks+1)), pageURL, inUTF8, page.Options{IDs: true, Meta: true}) {
			if err != nil {
				require.ErrorIs(t, err, page.ErrTooManyLinks)
				break
			}
			found++
		}
		require.Equal(t, page.MaxLinks, found, one)
	}
}

func TestLinksOmitsLongURLs(t *testing.T) {
	fits := strings.Repeat("x", page.MaxURL-len("http://a.test/"))
	got, err := collect("<a href=/"+fits+"><a href=/"+fits+"y><a href=z>", pageURL)
	require.NoError(t, err)
	require.Equal(t, []string{"anchor http://a.test/" + fits, "anchor http://a.test/dir/z"}, got)

	// A base just within the limit must not make many short links long.
	body := "<base href=/" + strings.Repeat("x", page.MaxURL) + "/><a href=y>"
	got, err = collect(body, pageURL)
	require.NoError(t, err)
	require.Equal(t, []string{"anchor http://a.test/dir/y"}, got)
}

func TestLinksCanStopAndRestart(t *testing.T) {
	body := []byte("<a href=1><img srcset='2,x 1x, 3 2x'><meta name=robots content=none><a href=4>")
	links := page.Links(body, pageURL, inUTF8)
	for stop := 1; stop <= 5; stop++ {
		n := 0
		for _, err := range links {
			require.NoError(t, err)
			if n++; n == stop {
				break
			}
		}
		require.Equal(t, stop, n)
	}
	require.Equal(t, "<a href=1>", string(body[:10]), "the page is unchanged")
}

// A string that shared memory with the page would keep all of it alive.
func TestLinksDoesNotKeepThePage(t *testing.T) {
	body := []byte("<a href=http://a.test/one rel=me><meta name=robots content=noindex>")
	var got []page.Link
	for l, err := range page.Links(body, pageURL, inUTF8) {
		require.NoError(t, err)
		got = append(got, l)
	}
	clear(body)
	require.Equal(t, []page.Link{
		{URL: "http://a.test/one", Kind: page.Anchor, Rel: "me"},
		{Kind: page.Directive, Name: "robots", Text: "noindex"},
	}, got)
}

func FuzzLinks(f *testing.F) {
	f.Add([]byte(`<base href="//b.test/x/"><a href="y#z" rel=nofollow><img srcset="a 1x,b">`), pageURL)
	f.Add([]byte(`<meta http-equiv=refresh content="0;url='/x'"><a href=?>`), "http://[::1]/")
	f.Add([]byte("<a href=\xff\x00&amp;><svg><a xlink:href=//u:p@\xc3\xa9/>"), "http://a.test/?a#b")
	f.Fuzz(func(t *testing.T, body []byte, base string) {
		errs := 0
		for l, err := range page.Links(body, base, inUTF8) {
			if errs > 0 {
				t.Fatalf("Links(%q, %q) continues after its error", body, base)
			}
			if err != nil {
				errs++
				continue
			}
			if l.Kind == page.Directive {
				if l.URL != "" || l.Name == "" {
					t.Errorf("Links(%q, %q) yields the directive %+v", body, base, l)
				}
				continue
			}
			if err := lawful(l.URL); err != nil {
				t.Errorf("Links(%q, %q) yields %q: %v", body, base, l.URL, err)
			}
		}
	})
}

// lawful returns an error if Links must not yield the URL.
func lawful(url string) error {
	u, err := weburl.Parse(url, nil)
	switch {
	case err != nil:
		return err
	case u.String() != url:
		return fmt.Errorf("parses to %q", u.String())
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("scheme %q", u.Scheme)
	case u.HasFragment || u.Username != "" || u.Password != "":
		return fmt.Errorf("fragment or credentials")
	case len(url) > page.MaxURL:
		return fmt.Errorf("%d bytes", len(url))
	}
	return nil
}
