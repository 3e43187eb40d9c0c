package replay

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Old servers name many types wrongly. Browsers look at the bytes of an image, and run a script of any type, but
// not where they are told nosniff, as the handler does, or in an origin of its own.
func TestTypesByWhatLoadsThem(t *testing.T) {
	const root, other = "http://a.example/", "http://b.example/"
	for _, test := range []struct{ dest, fields, url, want string }{
		{"image", "Content-Type: text/plain", root, "application/octet-stream"},
		{"image", "Content-Type: text/html", root, "application/octet-stream"},
		{"image", "Content-Type: image/png", root, "image/png"},
		{"image", "Content-Type: text/xml\nX-Content-Type-Options: nosniff", root, "application/octet-stream"},
		{"style", "Server: x", root, "text/css; charset=utf-8"},
		{"style", "Content-Type: */*", other, "text/css; charset=utf-8"},
		{"style", "Content-Type: text/plain", root, "text/plain"},
		{"style", "X-Content-Type-Options: nosniff", root, "text/plain; charset=utf-8"},
		{"script", "Server: x", other, "text/javascript"},
		{"script", "Content-Type: text/plain; charset=koi8-r", other, "text/javascript; charset=koi8-r"},
		{"script", "Content-Type: text/html", root, "text/javascript"},
		{"script", "Content-Type: application/json", other, "application/json"},
		{"script", "Content-Type: application/x-javascript", root, "application/x-javascript"},
		{"script", "Content-Type: text/plain\nX-Content-Type-Options: nosniff", root, "text/plain"},
		{"iframe", "Content-Type: text/plain", root, "text/plain"},
		{"", "Content-Type: text/plain", root, "text/plain"},
	} {
		v := New(archiveOf(t, visit{test.url, monday, http.StatusOK, test.fields, "a{b:url(c)}"}), Options{Scripts: true})
		address := v.replayAddress(v.owner(placeOf(t, monday, root).url), placeOf(t, monday, test.url))
		w := ask(t, v, address, "Sec-Fetch-Dest", test.dest, "Sec-Fetch-Mode", "no-cors")
		require.Equal(t, test.want, w.Header().Get("Content-Type"), "%+v", test)
		accepted := map[string]string{"image": "image/avif,image/*,*/*;q=0.8", "style": "text/css,*/*;q=0.1"}[test.dest]
		if accepted != "" { // without Sec-Fetch-Dest
			require.Equal(t, test.want, ask(t, v, address, "Accept", accepted).Header().Get("Content-Type"), "%+v", test)
		}
		if test.want == "text/css; charset=utf-8" {
			require.Contains(t, w.Body.String(), replayPath)
		}
	}
}

// Caches of today put scripts into data: URLs, and images of old pages have odd types, or none, in theirs.
func TestDataOfAPage(t *testing.T) {
	const script = `data:text/javascript;base64,eA==`
	for markup, want := range map[string][2]bool{ // kept without scripts, and with them
		`<script src="` + script + `">`:         {false, true},
		`<img src="data:img/gif;base64,R0lG">`:  {true, true},
		`<img src="data:;base64,R0lG">`:         {true, true},
		`<img src="data:text/html,x">`:          {false, false},
		`<iframe src="` + script + `">`:         {false, false},
		`<iframe src="data:,x">`:                {false, false},
		`<link rel=stylesheet href="data:,x">`:  {false, false},
		`<p style="background:url(data:;a,b)">`: {true, true},
	} {
		for i, scripts := range []bool{false, true} {
			l := testLinker(home)
			l.scripts = scripts
			require.Equal(t, want[i], strings.Contains(strings.ReplaceAll(string(rewrittenHTML([]byte(markup), l)), nowhere+`"`, ""), "data:"), markup)
		}
	}
}

// In XML, CDATA is text, scripts and styles have entities, and </br> is no second line break.
func TestTextOfXHTML(t *testing.T) {
	const url = "http://a.example/"
	for page, want := range map[string]string{
		`<p><![CDATA[a < b > c &amp;]]> &amp; d</p>`:        `<p>a &lt; b &gt; c &amp;amp; &amp; d</p>`,
		`<style> <![CDATA[ b>c{d:e} ]]> </style>f`:          `<style>  b>c{d:e}  </style>f`,
		`<style>b&gt;c{d:e}</style><p>&gt;</p>`:             `<style>b>c{d:e}</style><p>&gt;</p>`,
		`<script>//<![CDATA[` + "\nx<y&&z//]]>\n</script>a": `a`,
		`a<br></br>b<hr/>c<img alt="d"></img>`:              `a<br>b<hr />c<img alt="d">`,
	} {
		v := New(archiveOf(t, typed(monday, url, "application/xhtml+xml; charset=utf-8", page)), Options{})
		body := ask(t, v, v.replayOf(monday, url), "Sec-Fetch-Dest", "iframe").Body.String()
		require.Equal(t, want, body, page)
	}
	require.Equal(t, "<script>x<y&&z</script>", string(asHTML([]byte("<script>x&lt;y&amp;&amp;z</script>"), "application/xhtml+xml")))
	hostile := "<p><![CDATA[" + strings.Repeat("&", 1<<20) + "]]>"
	require.Less(t, len(asHTML([]byte(hostile), "application/xhtml+xml")), 3<<20)
}
