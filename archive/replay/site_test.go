package replay

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
)

// site returns the visits of a small website:
//
//	day     0         1           2         3       4
//	/       first     unchanged   second    error   third
//	/logo.png         red                           blue
func site() []visit {
	const (
		root  = "http://www.example.org/"
		style = "body{background:#e9f2ec url(/logo.png) no-repeat right 1em top 1em;" +
			"font-family:Georgia,serif;margin:2em;max-width:40em}h1{color:#123a26}"
	)
	visits := []visit{
		htmlAt(days(0), root, frontPage("The mill opens in spring", "first")),
		htmlAt(days(1), root, frontPage("The mill opens in spring", "first")),
		htmlAt(days(2), root, frontPage("The mill is open", "second")),
		{root, days(3), 503, "Content-Type: text/html\nRetry-After: 60",
			"<h1>Down for repair</h1>"},
		htmlAt(days(4), root, frontPage("The mill is closed for winter", "third")),
		typed(days(1), root+"logo.png", "image/png", square(color.RGBA{200, 30, 30, 255})),
		typed(days(4), root+"logo.png", "image/png", square(color.RGBA{30, 30, 200, 255})),
		typed(days(0), root+"style.css", "text/css", style),
		htmlAt(days(0), root+"about/", "<title>About</title><h1>About the mill</h1>"),
		htmlAt(days(0), root+"about/people.html", "<h1>Ada, Bo, Cy</h1>"),
		htmlAt(days(2), root+"about/history?page=(2)", "<h1>History, page two</h1>"),
		{root + "old", days(0), 301, "Location: /about/#top", ""},
		{root + "gone", days(0), 302, "Location: http://elsewhere.example/", ""},
		{root + "circle", days(0), 302, "Location: /circle2", ""},
		{root + "circle2", days(0), 302, "Location: /circle", ""},
		typed(days(1), root+"report.pdf", "application/pdf", "%PDF-1.4 and so on"),
		htmlAt(days(0), "https://shop.example.org:8443/", "<h1>Flour</h1>"),
		htmlAt(days(0), "https://example.net/only-https", "<h1>Safe</h1>"),
	}
	for i := range 12 {
		visits = append(visits, htmlAt(days(i%5), fmt.Sprintf("%snews/%02d", root, i),
			fmt.Sprintf("<h1>News %d</h1>", i)))
	}
	return visits
}

func frontPage(headline, words string) string {
	return `<!DOCTYPE html><html><head><meta charset="utf-8"><title>The mill</title>
<link rel="stylesheet" href="style.css">
<script>document.title = "A script ran"</script>
</head>
<body>
<h1>` + headline + `</h1>
<p>This is the ` + words + ` page of a mill that grinds what the farmers of the valley bring.</p>
<p><img src="//www.example.org/logo.png" alt="A square"> <img src="http://elsewhere.example/x.png"
 alt=""></p>
<ul>
<li><a href="about/">About us</a></li>
<li><a href="about/history?page=(2)">Our history</a></li>
<li><a href="http://www.example.org/old">An old address</a></li>
<li><a href="report.pdf">The yearly report</a></li>
<li><a href="javascript:alert(1)">A script</a></li>
</ul>
<form action="/order"><input name="flour" value="Rye"> <button>Order</button></form>
</body></html>
`
}

// square returns a small image of one color.
func square(c color.Color) string {
	img := image.NewRGBA(image.Rect(0, 0, 48, 48))
	for i := range 48 * 48 {
		img.Set(i%48, i/48, c)
	}
	var out bytes.Buffer
	if err := png.Encode(&out, img); err != nil {
		panic(err)
	}
	return out.String()
}

// gzipped returns text compressed with gzip.
func gzipped(text string) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return out.String()
}

// siteHandler returns a viewer of the small website.
func siteHandler(t testing.TB, opts Options) *Handler {
	return New(archiveOf(t, site()...), opts)
}

const millHome = "http://www.example.org/"

// policyOf splits a policy into its directives.
func policyOf(csp string) map[string]string {
	directives := map[string]string{}
	for part := range strings.SplitSeq(csp, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), " ")
		directives[name] = value
	}
	return directives
}
