package replay

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReferencesStayInTheArchive(t *testing.T) {
	for _, tt := range []struct {
		name, ref string
		use       usage
		want      string // "" if the reference is dropped
	}{
		{"a relative reference is below the page's directory", "x.png", asImage,
			inReplay + "https://a.example/dir/x.png"},
		{"dots are resolved", "../x.png", asImage, inReplay + "https://a.example/x.png"},
		{"a path is on the host of the page", "/x.png", asImage,
			inReplay + "https://a.example/x.png"},
		{"a reference without scheme has the page's scheme", "//b.example/x", asImage,
			inReplay + "https://b.example/x"},
		{"three slashes are two", "///b.example/x", asImage, inReplay + "https://b.example/x"},
		{"backslashes are slashes", `\\b.example\x`, asImage, inReplay + "https://b.example/x"},
		{"a scheme in upper case is the same scheme", "HTTP://B.Example/X", asImage,
			inReplay + "http://b.example/X"},
		{"line breaks and surrounding spaces are removed", " \n//b.exa\nmple/x\t", asImage,
			inReplay + "https://b.example/x"},
		{"credentials are dropped", "https://me:secret@b.example/", asLink,
			inView + "https://b.example/"},
		{"a query is kept", "?q=a%20b&c=(d)", asLink, inView + home + "?q=a%20b&c=(d)"},
		{"a fragment comes last", "/x#y", asLink, inView + "https://a.example/x#y"},
		{"a fragment alone stays on this page", "#y", asLink, "#y"},
		{"this page with a fragment stays on it", home + "#y", asLink, "#y"},
		{"this page without a fragment", home, asLink, inView + home},
		{"a fragment of an image is kept", "x.svg#part", asImage,
			inReplay + "https://a.example/dir/x.svg#part"},
		{"an image that is a fragment alone", "#part", asImage, "#part"},
		{"a document is replayed", "frame", asDocument, inReplay + "https://a.example/dir/frame"},
		{"a port is kept", "http://b.example:8080/", asLink, inView + "http://b.example:8080/"},
		{"a name in another script becomes ASCII", "http://bücher.example/", asLink,
			inView + "http://xn--bcher-kva.example/"},
		{"javascript:", "javascript:alert(1)", asLink, ""},
		{"javascript: in upper case with a line break", "JAVA\nSCRIPT:alert(1)", asLink, ""},
		{"javascript: after a control character", "\x01javascript:alert(1)", asLink, ""},
		{"javascript: as an image", "javascript:alert(1)", asImage, ""},
		{"vbscript:", "vbscript:x", asLink, ""},
		{"mailto:", "mailto:a@b.example", asLink, ""},
		{"file:", "file:///etc/passwd", asImage, ""},
		{"ftp:", "ftp://b.example/x", asLink, ""},
		{"wss:", "wss://b.example/", asDocument, ""},
		{"blob:", "blob:https://a.example/1", asImage, ""},
		{"about:blank", "about:blank", asDocument, ""},
		{"a data URL of an image", "data:image/png;base64,AAAA", asImage,
			"data:image/png;base64,AAAA"},
		{"a data URL of a page", "data:text/html,<p>", asImage, ""},
		{"a data URL as a document", "data:image/svg+xml,<svg/>", asDocument, ""},
		{"a data URL as a link", "data:image/png,x", asLink, ""},
		{"a data URL without a comma", "data:image/png", asImage, ""},
		{"an invalid URL", "http://[", asLink, ""},
		{"a URL without a host", "http://", asLink, ""},
		{"the viewer itself is a page like any other", "http://127.0.0.1:8080/", asImage,
			inReplay + "http://127.0.0.1:8080/"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := testLinker(home).rewrite(tt.ref, tt.use)
			require.Equal(t, tt.want != "", ok, "%q became %q", tt.ref, got)
			if ok {
				require.Equal(t, tt.want, got)
			}
		})
	}
}

func TestLinksOfPagesWithScriptsStayInTheFrame(t *testing.T) {
	l := testLinker(home)
	l.scripts = true
	got, ok := l.rewrite("/x#y", asLink)
	require.True(t, ok)
	require.Equal(t, inReplay+"https://a.example/x#y", got)
}

func TestSrcset(t *testing.T) {
	const d = inReplay + "https://a.example/dir/"
	for _, tt := range []struct{ name, list, want string }{
		{"one image", "a.png", d + "a.png"},
		{"descriptors are kept", "a.png 1x, b.png 2x", d + "a.png 1x, " + d + "b.png 2x"},
		{"spaces are collapsed", " a.png \n 100w ,\tb.png\n200w ",
			d + "a.png 100w, " + d + "b.png 200w"},
		{"commas inside a URL belong to it", "a,1.png 1x, b,2.png 2x",
			d + "a,1.png 1x, " + d + "b,2.png 2x"},
		{"a comma at its end does not", "a.png, b.png", d + "a.png, " + d + "b.png"},
		{"nor do several", "a.png,,, b.png", d + "a.png, " + d + "b.png"},
		{"a comma without a space does not separate", "a.png,b.png", d + "a.png,b.png"},
		{"nor does a comma in parentheses", "a.png f(1,2) 1x, b.png",
			d + "a.png f(1,2) 1x, " + d + "b.png"},
		{"data: has a comma", "data:image/png;base64,AA 1x, b.png 2x",
			"data:image/png;base64,AA 1x, " + d + "b.png 2x"},
		{"a forbidden URL is dropped with its descriptor", "javascript:x 1x, b.png 2x",
			d + "b.png 2x"},
		{"only commas", " , ,", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, testLinker(home).srcset(tt.list))
		})
	}
}

func TestRefresh(t *testing.T) {
	const x = ";url=" + inReplay + "https://a.example/x"
	for _, tt := range []struct{ name, content, want string }{
		{"the usual form", "5; url=/x", "5" + x},
		{"in upper case and with spaces", " 5 ;  URL = /x ", "5" + x},
		{"in quotes", "0;url='/x'", "0" + x},
		{"in unclosed quotes", `0;url="/x`, "0" + x},
		{"with a comma", "3,/x", "3" + x},
		{"with only a space", "3 /x", "3" + x},
		{"with a fraction", "1.5;/x", "1" + x},
		{"with only a fraction", ".5;/x", "0" + x},
		{"a reload", "5", ""},
		{"without a time", ";url=/x", ""},
		{"with an invalid time", "soon;url=/x", ""},
		{"to a script", "0;url=javascript:alert(1)", ""},
		{"to a data URL", "0;url=data:text/html,<p>", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := testLinker(home).refresh(tt.content)
			require.Equal(t, tt.want != "", ok)
			if ok {
				require.Equal(t, tt.want, got)
			}
		})
	}
}
