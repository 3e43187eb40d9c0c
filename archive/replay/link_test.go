package replay

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReferencesStayInTheArchive(t *testing.T) {
	for _, tt := range []struct {
		name, ref string
		use       usage
		want      string // "" for none
	}{
		{"a relative reference is below the directory of the page", "x.png", asImage,
			inReplay + "https://a.example/dir/x.png"},
		{"dots are resolved", "../x.png", asImage, inReplay + "https://a.example/x.png"},
		{"a path is on the host of the page", "/x.png", asImage, inReplay + "https://a.example/x.png"},
		{"a reference without scheme has the one of the page", "//b.example/x", asImage,
			inReplay + "https://b.example/x"},
		{"three slashes are two", "///b.example/x", asImage, inReplay + "https://b.example/x"},
		{"backslashes are slashes", `\\b.example\x`, asImage, inReplay + "https://b.example/x"},
		{"a scheme in upper case is the same scheme", "HTTP://B.Example/X", asImage,
			inReplay + "http://b.example/X"},
		{"line breaks within and spaces around are not there", " \n//b.exa\nmple/x\t", asImage,
			inReplay + "https://b.example/x"},
		{"credentials are not kept", "https://me:secret@b.example/", asLink,
			inView + "https://b.example/"},
		{"a query stays as it is", "?q=a%20b&c=(d)", asLink, inView + home + "?q=a%20b&c=(d)"},
		{"a fragment comes last", "/x#y", asLink, inView + "https://a.example/x#y"},
		{"a fragment of this page stays in it", "#y", asLink, "#y"},
		{"this page in full with a fragment does so too", home + "#y", asLink, "#y"},
		{"this page without a fragment is the page", home, asLink, inView + home},
		{"a fragment is kept for what has parts", "x.svg#part", asImage,
			inReplay + "https://a.example/dir/x.svg#part"},
		{"a fragment alone is a part of the page itself", "#part", asImage, "#part"},
		{"a document is replayed", "frame", asDocument, inReplay + "https://a.example/dir/frame"},
		{"a port is kept", "http://b.example:8080/", asLink, inView + "http://b.example:8080/"},
		{"a name in another script becomes ASCII", "http://bücher.example/", asLink,
			inView + "http://xn--bcher-kva.example/"},
		{"javascript: leads nowhere", "javascript:alert(1)", asLink, ""},
		{"nor does it in upper case with a line break", "JAVA\nSCRIPT:alert(1)", asLink, ""},
		{"nor with a control character before it", "\x01javascript:alert(1)", asLink, ""},
		{"nor as an image", "javascript:alert(1)", asImage, ""},
		{"vbscript: leads nowhere", "vbscript:x", asLink, ""},
		{"mail leads out", "mailto:a@b.example", asLink, ""},
		{"files lead out", "file:///etc/passwd", asImage, ""},
		{"ftp leads out", "ftp://b.example/x", asLink, ""},
		{"a web socket leads out", "wss://b.example/", asDocument, ""},
		{"blob: leads nowhere", "blob:https://a.example/1", asImage, ""},
		{"about:blank is no page", "about:blank", asDocument, ""},
		{"an image in the page may stay", "data:image/png;base64,AAAA", asImage,
			"data:image/png;base64,AAAA"},
		{"a page in the page may not", "data:text/html,<p>", asImage, ""},
		{"nor may an image be a document", "data:image/svg+xml,<svg/>", asDocument, ""},
		{"nor a link", "data:image/png,x", asLink, ""},
		{"data: without a comma is nothing", "data:image/png", asImage, ""},
		{"what is no URL leads nowhere", "http://[", asLink, ""},
		{"a host must be there", "http://", asLink, ""},
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
		{"descriptors stay", "a.png 1x, b.png 2x", d + "a.png 1x, " + d + "b.png 2x"},
		{"spaces are made one", " a.png \n 100w ,\tb.png\n200w ", d + "a.png 100w, " + d + "b.png 200w"},
		{"commas within a URL belong to it", "a,1.png 1x, b,2.png 2x",
			d + "a,1.png 1x, " + d + "b,2.png 2x"},
		{"a comma at its end does not", "a.png, b.png", d + "a.png, " + d + "b.png"},
		{"nor do several", "a.png,,, b.png", d + "a.png, " + d + "b.png"},
		{"a URL and the next without a space are one", "a.png,b.png", d + "a.png,b.png"},
		{"a comma in parentheses ends nothing", "a.png f(1,2) 1x, b.png",
			d + "a.png f(1,2) 1x, " + d + "b.png"},
		{"data: has a comma", "data:image/png;base64,AA 1x, b.png 2x",
			"data:image/png;base64,AA 1x, " + d + "b.png 2x"},
		{"what leads out goes, with its descriptor", "javascript:x 1x, b.png 2x", d + "b.png 2x"},
		{"nothing is nothing", " , ,", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, testLinker(home).srcset(tt.list))
		})
	}
}

func TestRefresh(t *testing.T) {
	const x = ";url=" + inReplay + "https://a.example/x"
	for _, tt := range []struct{ name, content, want string }{
		{"as it is written usually", "5; url=/x", "5" + x},
		{"in upper case and with spaces", " 5 ;  URL = /x ", "5" + x},
		{"in quotes", "0;url='/x'", "0" + x},
		{"in quotes that do not end", `0;url="/x`, "0" + x},
		{"with a comma", "3,/x", "3" + x},
		{"with a space alone", "3 /x", "3" + x},
		{"with a fraction", "1.5;/x", "1" + x},
		{"with nothing but a fraction", ".5;/x", "0" + x},
		{"the page itself", "5", ""},
		{"without a time", ";url=/x", ""},
		{"with words for a time", "soon;url=/x", ""},
		{"to a script", "0;url=javascript:alert(1)", ""},
		{"to a page in the URL", "0;url=data:text/html,<p>", ""},
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
