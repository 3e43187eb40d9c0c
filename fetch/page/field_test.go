package page_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/spinneret-go/spinneret/fetch/page"
	"github.com/stretchr/testify/require"
)

func TestHeaderLinks(t *testing.T) {
	tests := []struct {
		name   string
		header http.Header
		want   string // lines
	}{
		{"none", http.Header{}, ""},
		{"the example of RFC 8288, 3.5", http.Header{"Link": {
			`<http://example.com/TheBook/chapter2>; rel="previous"; title="previous chapter"`,
			`</>; rel="http://example.net/foo"`,
			`</TheBook/chapter2>; rel="previous"; title*=UTF-8'de'letztes%20Kapitel, ` +
				`</TheBook/chapter4>; rel="next"; title*=UTF-8'de'n%c3%a4chstes%20Kapitel`}},
			"prev http://example.com/TheBook/chapter2 rel=previous\n" +
				"related http://a.test/ rel=http://example.net/foo\n" +
				"prev http://a.test/TheBook/chapter2 rel=previous\n" +
				"next http://a.test/TheBook/chapter4 rel=next"},
		{"canonical", http.Header{"Link": {`<https://a.test/x>; rel=Canonical`}},
			"canonical https://a.test/x rel=canonical"},
		{"alternate", http.Header{"Link": {
			`<de>; rel="alternate nofollow"; hreflang=DE; type="text/html"`}},
			"alternate http://a.test/dir/de rel=alternate nofollow nofollow de text/html"},
		{"commas and semicolons in quotes", http.Header{"Link": {
			`<x>; title="a,b;c\"d"; rel=next,<y>;rel=prev`}},
			"next http://a.test/dir/x rel=next\nprev http://a.test/dir/y rel=prev"},
		{"commas and spaces in the URL", http.Header{"Link": {`<x,y> ; rel=next`}},
			"next http://a.test/dir/x,y rel=next"},
		{"the first of two equal parameters", http.Header{"Link": {`<x>; rel=next; rel=prev`}},
			"next http://a.test/dir/x rel=next"},
		{"spaces and empty parameters", http.Header{"Link": {
			` , < x > ;; rel = "next" ; ; x , , <y>; rel=prev;`}},
			"next http://a.test/dir/x rel=next\nprev http://a.test/dir/y rel=prev"},
		{"no rel, another anchor, no URL", http.Header{"Link": {
			`<x>`, `<x>; rel=next; anchor="/y"`, `<mailto:x>; rel=next`, `rel=next, <z>; rel=next`}},
			"next http://a.test/dir/z rel=next"},
		{"broken", http.Header{"Link": {`<x; rel=next`, `<`, `<x>; rel="next`, `x`, ``}},
			"next http://a.test/dir/x rel=next"},
		{"refresh", http.Header{"Refresh": {"0; url=/x"}}, "redirect http://a.test/x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for l, err := range page.HeaderLinks(tt.header, pageURL) {
				require.NoError(t, err)
				got = append(got, strings.TrimSpace(show(l)+" "+l.Lang+" "+l.Type))
			}
			require.Equal(t, tt.want, strings.ReplaceAll(strings.Join(got, "\n"), "  ", " "))
		})
	}
}

func TestHeaderLinksEndsWithOneError(t *testing.T) {
	header := http.Header{"Link": {strings.Repeat("<x>;rel=next,", page.MaxLinks+1)}}
	links := 0
	for _, err := range page.HeaderLinks(header, pageURL) {
		if links++; links > page.MaxLinks {
			require.ErrorIs(t, err, page.ErrTooManyLinks)
		}
	}
	require.Equal(t, page.MaxLinks+1, links)
	for _, err := range page.HeaderLinks(nil, "no base") {
		require.Error(t, err)
	}
}

// FuzzHeaderLinks checks that each link is lawful, and that a link in the simplest form is found
// whatever precedes it in another field.
func FuzzHeaderLinks(f *testing.F) {
	f.Add(`<x>; rel="next"; hreflang=de, <y>`, "0;url=x")
	f.Add(`<;,="\`, "")
	f.Fuzz(func(t *testing.T, value, refresh string) {
		header := http.Header{"Link": {value, "</last>; rel=next"}, "Refresh": {refresh}}
		last := 0
		for l, err := range page.HeaderLinks(header, pageURL) {
			if errors.Is(err, page.ErrTooManyLinks) {
				return
			}
			if err := lawful(l.URL); err != nil {
				t.Errorf("%q yields %q: %v", header, l.URL, err)
			}
			if l.URL == "http://a.test/last" {
				last++
			}
		}
		if last == 0 {
			t.Errorf("%q swallows the next field", value)
		}
	})
}

func TestStyles(t *testing.T) {
	tests := []struct{ name, css, want string }{
		{"nothing", "", ""},
		{"without quotes", "a { b: url(x.png) }", "x.png"},
		{"with quotes", `a { b: url("x.png"), URL( 'y.png' ) }`, "x.png y.png"},
		{"imports", `@import "a.css"; @IMPORT 'b.css' screen; @import url(c.css); @import url("d.css");`,
			"a.css b.css c.css d.css"},
		{"an import without a space", `@import"a.css"`, "a.css"},
		{"a comment between", `@import/**/"a.css"`, "a.css"},
		{"comments", `/* url(no) */ url(x) /* "*/ url(y) /* open url(no)`, "x y"},
		{"strings", `a { content: "url(no) \" url(no)" } url(x)`, "x"},
		{"an unclosed string ends with its line", "a { b: \"x\nc: url(y) }", "y"},
		{"an escaped line break of two bytes", "@import \"a\\\r\nb.css\"; @import 'c.css';",
			"ab.css c.css"},
		{"another function", `a { b: my-url(no); c: image(x) }`, ""},
		{"escapes", `url(a\)b) url("a\22 b") url(\41\42 C) url(a\` + "\n" + `b) url(\110000x)`,
			"a)b a%22b ABC ab %EF%BF%BDx"},
		{"an escaped quote", `\" url(x)`, "x"},
		{"empty", `url() url("") @import "";`, ""},
		{"white space", "url(\n x \t)", "x"},
		{"open", `url(x`, "x"},
		{"unclosed at once", `url(`, ""},
		{"a namespace is not an import", `@namespace "http://b.test/"; @import x "no"`, ""},
		{"data", `url(data:image/png;base64,xyz)`, ""},
		{"names of namespaces", `@namespace url(no); @NAMESPACE s "no"; a { b: url(x) }`, "x"},
		{"what browsers drop", `url(a b) url(a"b) url(a'b) url(a(b) url(#c) url("#d") url(x)`, "x"},
		{"what browsers drop although something is escaped", `url(\66"a) url(\)'a) url(\\(a) url(\"x\()`, `%22x(`},
		{"an escaped form feed", "@import \"a\\\fb.css\"", "ab.css"},
		{"escaped blanks", `url( a\ b )`, "a%20b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for l, err := range page.Styles([]byte(tt.css), "http://a.test/", "") {
				require.NoError(t, err)
				require.Equal(t, page.Resource, l.Kind)
				got = append(got, strings.TrimPrefix(l.URL, "http://a.test/"))
			}
			require.Equal(t, tt.want, strings.Join(got, " "), "Styles(%q)", tt.css)
		})
	}
}

// FuzzStyles checks that each URL is lawful, and that a URL is found after everything has been
// closed.
func FuzzStyles(f *testing.F) {
	f.Add(`@import "x"; a { b: url(y\29) /* url(no) */ }`)
	f.Add("url('\\\n')\"")
	f.Fuzz(func(t *testing.T, css string) {
		last := false
		// Close anything that may be open: a comment, a string in parentheses, the parentheses.
		css = " " + css + " */ \n\n ) \n url(/last)" // and at the beginning no byte order mark
		for l, err := range page.Styles([]byte(css), pageURL, "") {
			if err != nil {
				return
			}
			if err := lawful(l.URL); err != nil {
				t.Errorf("Styles(%q) yields %q: %v", css, l.URL, err)
			}
			last = l.URL == "http://a.test/last"
		}
		if !last {
			t.Errorf("Styles(%q) misses the last URL", css)
		}
	})
}

func TestScanFindsWhatOptionsRequest(t *testing.T) {
	const body = `<title> One &amp;
		two </title><style>a { b: url(s.png) }</style><p>some<b> </b>text &lt; more</p>
		<form action="/send"><input type=submit formaction=/other><button formaction=third></form>
		<svg><title>no</title></svg><script>no text</script><!-- no text --> end
		<meta name=Description content=" About &amp;"><meta property="og:image" content=i.png><meta charset=x>`
	const places = `<p id=x><g id=""><b id="an y"></b><svg><g id=é /></svg><a name=old><a name=x id=x>` +
		`<a href="#x%20y"><a href="#"><a href="#b/%C3%A9:~:text=c"><a href="#%ff%zz%C"><area href="#top">`
	tests := []struct {
		name string
		opts page.Options
		want string // lines
	}{
		{"nothing", page.Options{}, ""},
		{"styles", page.Options{Styles: true}, "resource http://a.test/dir/s.png"},
		{"the title and other data", page.Options{Meta: true},
			"Title  One & two\nMeta description About &\nMeta og:image i.png"},
		{"places", page.Options{IDs: true},
			"ID  x\nID  an y\nID  é\nID  old\nID  x\n#x y\n#\n#b/é\n#\ufffd%zz%C\n#top"},
		{"no places", page.Options{}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			text := body
			if strings.HasSuffix(tt.name, "places") {
				text = places
			}
			for l, err := range page.Scan([]byte(text), pageURL, inUTF8, tt.opts) {
				require.NoError(t, err)
				names := map[page.Kind]string{page.Title: "Title", page.Meta: "Meta", page.ID: "ID"}
				switch {
				case names[l.Kind] != "":
					got = append(got, names[l.Kind]+" "+l.Name+" "+l.Text)
				case tt.opts.IDs:
					require.Equal(t, pageURL, l.URL)
					got = append(got, "#"+l.Fragment)
				default:
					got = append(got, show(l))
				}
			}
			require.Equal(t, tt.want, strings.Join(got, "\n"))
		})
	}
}

// The text is what a browser shows: parts of words are not separated, and blocks are.
func TestTextHasTheBoundariesOfBlocks(t *testing.T) {
	for body, want := range map[string]string{
		"":                                  "",
		" <p> </p> ":                        "",
		"<p>one</p><p>two</p>":              "one\ntwo",
		"<b>o</b>ne <i>two</i>":             "one two",
		"<b>one</b> <i>two</i>":             "one two",
		"<b>one</b>\n<p> <i>two</i>":        "one\n\ntwo",
		"one<br>two<hr/>three":              "one\ntwo\nthree",
		"<td>1<td>2<tr><td>3":               "1\n2\n3",
		"<UL><LI>one<LI>two</UL> three":     "one\ntwo\n three",
		"o<!-- x -->ne<?php x ?> two":       "one two",
		"don<x-a>'</x-a>t sto<wbr>p":        "don't stop",
		"un<label>lik</label>e<output>ly":   "unlikely",
		"a<img src=x>b<input>c":             "a\nb\nc",
		"caf&eacute; &lt;b&gt;R&amp;D&amp;": "café <b>R&D&",
		"a<script>no</script>b":             "a\nb",
		"<title>no</title>a":                "a",
		"a<noframes>b<p>c</noframes>d":      "a\nb\nc\nd",
		"<noframes>b</noframes>d":           "b\nd",
		"<svg><text>a</text><text>b":        "a\nb",
		"<svg><text><![CDATA[&lt;]]>":       "&lt;",
		"<svg><style>no<b/></style><text>a": "a",
		"<textarea>a&lt;</textarea>b":       "a<\nb",
		"<XMP><b>a&lt;</b></XMP>b":          "<b>a&lt;</b>\nb",
		"a<plaintext>b</plaintext>":         "a\nb</plaintext>",
		"a<template><p>{{no}}<template>no</template>no<textarea>no</textarea></template>b</template>c":   "a\nb\nc",
		"<svg><STYLE><![CDATA[no]]></STYLE><script>no</script><text>a<script/></svg>b<svg><style>no<p>c": "a\nb\nc",
	} {
		var text []byte
		opts := page.Options{Text: func(piece []byte) { text = append(text, piece...) }}
		for _, err := range page.Scan([]byte(body), pageURL, inUTF8, opts) {
			require.NoError(t, err)
		}
		require.Equal(t, want, string(text), body)
	}
}

// A long title is cut at a character boundary.
func TestTextsAreUTF8(t *testing.T) {
	long := "<title>" + strings.Repeat("\u00e9", 1000) + "</title>" +
		"<meta name=robots content='none,\xff'>"
	for body, want := range map[string]string{
		long:                       strings.Repeat("\u00e9", 512) + "none,\uFFFD",
		"<title>x" + long[7:]:      "x" + strings.Repeat("\u00e9", 511) + "none,\uFFFD",
		"<title>caf\xe9 x</title>": "caf\uFFFD x",
	} {
		got := ""
		for l, err := range page.Scan([]byte(body), pageURL, inUTF8, page.Options{Meta: true}) {
			require.NoError(t, err)
			got += l.Text
		}
		require.Equal(t, want, got)
	}
}
