package replay

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/spinneret-go/spinneret/internal/htmlattr"
)

// leaves reports whether a URL in a rewritten document would make a browser leave the viewer or run
// something.
func leaves(url string) bool {
	for _, prefix := range []string{inReplay, inView, "#", nowhere, "data:"} {
		if strings.HasPrefix(url, prefix) {
			return prefix == "data:" && !isPassive(url[len("data:"):])
		}
	}
	return url != ""
}

// escapesCSS returns a URL outside the archive in a rewritten sheet, or "". It is independent of
// the code under test: for the plain output, a search for url( is enough.
func escapesCSS(sheet string) string {
	lower := strings.ToLower(sheet)
	for _, start := range []string{"url(", "@import "} {
		for at := 0; ; {
			i := strings.Index(lower[at:], start)
			if i < 0 {
				break
			}
			at += i + len(start)
			// After a letter, a number or an open quote it is something else.
			if inString(sheet[:at-len(start)]) || isWordEnd(sheet[:at-len(start)]) {
				continue
			}
			rest, quoted := strings.CutPrefix(sheet[at:], `"`)
			url, _, _ := strings.Cut(rest, `"`)
			switch {
			case quoted && leaves(url) && !strings.Contains(sheet, "@namespace"):
				return url
			case !quoted && start == "url(":
				return sheet[at:]
			}
		}
	}
	return ""
}

func isWordEnd(s string) bool {
	if s == "" {
		return false
	}
	c := s[len(s)-1]
	return isNameByte(c) || c == '\\' || c == '@' ||
		strings.HasSuffix(s, " ") && strings.Contains(s, `\`)
}

// inString reports whether a quote is open at the end of a sheet.
func inString(sheet string) bool {
	open := false
	for i := 0; i < len(sheet); i++ {
		switch sheet[i] {
		case '\\':
			i++
		case '"':
			open = !open
		}
	}
	return open
}

// escapesTag returns the first violation in a tag of a rewritten document, or "".
func escapesTag(name string, attrs []html.Attribute) string {
	if slices.Contains([]string{"script", "base", "applet", "xmp", "plaintext"}, name) {
		return "there is a " + name
	}
	for _, a := range attrs {
		key := strings.ToLower(a.Key)
		if a.Namespace != "" {
			key = a.Namespace + ":" + key
		}
		switch {
		case strings.HasPrefix(key, "on"):
			return "there is a handler " + key
		case slices.Contains([]string{"action", "formaction", "ping", "manifest", "codebase"}, key):
			return "there is an attribute " + key
		case slices.Contains([]string{"href", "xlink:href", "src", "poster", "background", "icon",
			"dynsrc", "lowsrc"}, key) && leaves(a.Val):
			return key + " leads to " + a.Val
		case key == "data" && name == "object" && leaves(a.Val):
			return key + " leads to " + a.Val
		case key == "srcset" || key == "imagesrcset":
			for part := range strings.SplitSeq(a.Val, ", ") {
				if leaves(strings.Fields(part + " x")[0]) && !strings.HasPrefix(a.Val, "data:") {
					return key + " leads to " + part
				}
			}
		case key == "srcdoc":
			if found := escapes([]byte(a.Val)); found != "" {
				return "srcdoc: " + found
			}
		case key == "style" || key == "fill" || key == "mask" || key == "filter":
			if url := escapesCSS(a.Val); url != "" {
				return key + " leads to " + url
			}
		}
	}
	if name == "meta" {
		return escapesMeta(attrs)
	}
	return ""
}

func escapesMeta(attrs []html.Attribute) string {
	var content string
	refresh := false
	for _, a := range attrs {
		refresh = refresh || a.Key == "http-equiv" && strings.EqualFold(a.Val, "refresh")
		if a.Key == "content" {
			content = a.Val
		}
	}
	if _, url, found := strings.Cut(content, "url="); refresh && (!found || leaves(url)) {
		return "refresh to " + content
	}
	return ""
}

// escapes returns the first violation in a rewritten document, or "". It uses the tokenizer, and
// the parser, which nests elements by the same rules as browsers.
func escapes(page []byte) string {
	z := html.NewTokenizer(bytes.NewReader(page))
	last := ""
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		token := z.Token()
		switch kind {
		case html.StartTagToken, html.SelfClosingTagToken:
			last = token.Data
			if found := escapesTag(token.Data, token.Attr); found != "" {
				return "token: " + found
			}
		case html.EndTagToken:
			last = ""
		case html.TextToken:
			if url := escapesCSS(token.Data); last == "style" && url != "" {
				return "style leads to " + url
			}
		}
	}
	tree, err := html.ParseWithOptions(bytes.NewReader(page),
		html.ParseOptionEnableScripting(false))
	if err != nil {
		return "" // the document is nested too deeply for the parser
	}
	for n := range tree.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if found := escapesTag(n.Data, n.Attr); found != "" {
			return "tree: " + found
		}
	}
	return ""
}

// FuzzNoPageEscapes asserts that rewritten documents have no URL outside the archive.
func FuzzNoPageEscapes(f *testing.F) {
	for _, page := range []string{
		`<a href=http://b.example/><img src="//b" srcset="//b 1x, //c"><p style="a:url(//b)">`,
		`<base href=//b><style>@import "//b";a{b:url(//c)}</style><link rel=stylesheet href=//b>`,
		`<svg><style><img src=//b></style><p><style><a href="</style><img src=//b>">`,
		`<svg><title><img src=//b></title><desc><style><a href=//b></style>`,
		`<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=//b&gt;">`,
		`<noscript><p title="</noscript><img src=//b>"></noscript><xmp><img src=//b></xmp>`,
		`<textarea><a href=//b></textarea><title></title ><a href=//b>`,
		`<!--><img src=//b>--><!--!> <![CDATA[<img src=//b>]]><?x <img src=//b>?>`,
		`<iframe srcdoc="<a href=//b>"><img src=//b></iframe><script><a href=//b></script>`,
		`<svg><a xlink:href=//b><set attributeName=href to=//b /><script href=//b /></a>`,
		`<meta http-equiv=refresh content="0;url=//b"><form action=//b><button formaction=//b>`,
		`<select><style></select><img src=//b></style><frameset><frame src=//b>`,
		`<p style="a:u\72l(//b);b:image-set('//b' 1x)"><plaintext><img src=//b>`,
		"<img/src=//b><img\x00src=//b><a hREF\n=\n'java\nscript:x'><img src=x:y>",
		`<svg></p><style><a title="</style><img src=//b>">`,
		`<math><annotation-xml encoding=text/html><style><img src=//b></style>`,
	} {
		f.Add(page)
	}
	f.Fuzz(func(t *testing.T, page string) {
		once := rewrittenHTML([]byte(strings.ToValidUTF8(page, "?")), testLinker(home))
		if found := escapes(once); found != "" {
			t.Errorf("%s\nfrom %q\nto   %q", found, page, once)
		}
	})
}

// FuzzNoSheetEscapes asserts that rewritten sheets have no URL outside the archive and no tags, and
// that, except for addresses, rewriting is idempotent.
func FuzzNoSheetEscapes(f *testing.F) {
	for _, sheet := range []string{
		`a{b:url(//c)}@import"//c";`, `@import url( '//c' ) x;`, `a{b:\55\52\4c (//c)}`,
		"a{b:url(//c\\)d)}\"e\nf:url(//g)", `image-set("//c")src('//d')/*"*/url(//e)`,
		`@charset "x";@namespace "y";@\69mport '//c'`, `1url(//c) -url(//c) url (//c) u\rl(//c)`,
		"<!--a{}--></style><img src=//b>", "url(x\"y)url(//c)", "\\\nurl(//c)", "a\\",
		`}url(//b)`, `image-set(}"//b"`, `@import /**/ "//b"`, "url(", "@import '", "-\\-url(//b)",
		"1a\\\x00", "\\", "\x00", "a{b:\"\x00\"}", "\\1\x000\\030X", "a<b<url(x)<\\<=1<!--c",
	} {
		f.Add(sheet)
	}
	f.Fuzz(func(t *testing.T, sheet string) {
		sheet = strings.ToValidUTF8(sheet, "?")
		once := rewrittenCSS(sheet, testLinker(home))
		if url := escapesCSS(once); url != "" {
			t.Errorf("%q leads to %q:\n%q", sheet, url, once)
		}
		for i := range len(once) - 1 {
			if c := once[i+1] | 0x20; once[i] == '<' && ('a' <= c && c <= 'z' || strings.IndexByte("/!?", once[i+1]) >= 0) {
				t.Errorf("%q has a tag: %q", sheet, once)
			}
		}
		marker := func(s string) string { return strings.ReplaceAll(s, inReplay, "") }
		twice := rewrittenCSS(marker(once), testLinker(home))
		if got, want := marker(twice), marker(once); got != want && !strings.Contains(sheet, "/") {
			t.Errorf("%q becomes %q, then %q", sheet, want, got)
		}
	})
}

// FuzzSrcset asserts that a rewritten list has all images that can be rewritten, and that none is
// outside the archive.
func FuzzSrcset(f *testing.F) {
	for _, list := range []string{"a 1x, b 2x", "a,b", ",a,,b , c", "a (,) 1x,b", "//b,//c 1x"} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		list = strings.ToValidUTF8(list, "?")
		got, want := 0, 0
		for ref, _, rest := htmlattr.CutImage(list); ref != ""; ref, _, rest = htmlattr.CutImage(rest) {
			if _, ok := testLinker(home).rewrite(ref, asImage); ok {
				want++
			}
		}
		out := testLinker(home).srcset(list)
		for ref, _, rest := htmlattr.CutImage(out); ref != ""; ref, _, rest = htmlattr.CutImage(rest) {
			got++
			if leaves(ref) {
				t.Errorf("%q became %q, which leads to %q", list, out, ref)
			}
		}
		if got != want {
			t.Errorf("%q became %q: %d images, want %d", list, out, got, want)
		}
	})
}
