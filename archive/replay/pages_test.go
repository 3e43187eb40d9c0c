package replay

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/spinneret-go/spinneret/archive"
)

// tree parses one of the viewer's own pages and returns it with its text. It requires a status, and
// that templates worked.
func tree(t *testing.T, v *Handler, code int, address string) (*html.Node, string) {
	t.Helper()
	w := ask(t, v, address)
	require.Equal(t, code, w.Code, "%s: %s", address, w.Body)
	require.NotContains(t, w.Body.String(), "ZgotmplZ", "a value is unsafe in its context")
	require.NotContains(t, w.Body.String(), "<no value>")
	doc, err := html.Parse(w.Body)
	require.NoError(t, err)
	return doc, text(doc)
}

// text returns the text of a page with single spaces.
func text(n *html.Node) string {
	var out strings.Builder
	for n := range n.Descendants() {
		if n.Type == html.TextNode {
			out.WriteString(n.Data + " ")
		}
	}
	return strings.Join(strings.Fields(out.String()), " ")
}

// links returns the targets of the links in a page.
func links(n *html.Node) (list []string) {
	for n := range n.Descendants() {
		if n.Type != html.ElementNode || n.Data != "a" {
			continue
		}
		for _, a := range n.Attr {
			if a.Key == "href" {
				list = append(list, a.Val)
			}
		}
	}
	return list
}

func TestStartPage(t *testing.T) {
	v := siteHandler(t, Options{})
	doc, words := tree(t, v, 200, "/")
	require.Contains(t, words, "30 versions of 25 addresses on 3 hosts, ")
	require.Regexp(t, `hosts, \d+\.\d KiB, found`, words)
	require.Contains(t, words, "from 2 Nov 2026, 09:00:00 UTC to 6 Nov 2026, 09:00:00 UTC")
	require.Regexp(t, "example.net.*shop.example.org.*www.example.org 23 28", words)
	require.Contains(t, links(doc), "/browse?prefix=www.example.org/")

	_, words = tree(t, v, 200, "/?host=SHOP")
	require.Contains(t, words, "shop.example.org")
	require.NotContains(t, words, "example.net")
	_, words = tree(t, v, 200, "/?host=%3Cb%3E")
	require.Contains(t, words, "No host has “<b>” in its name")

	_, words = tree(t, New(archiveOf(t), Options{}), 200, "/")
	require.Contains(t, words, "There is nothing in the archive yet")
}

func TestStartPageCountsUpToALimit(t *testing.T) {
	v := siteHandler(t, Options{})
	v.maxScan = 7
	_, words := tree(t, v, 200, "/")
	require.Contains(t, words, "7 versions")
	require.Contains(t, words, "The search finds all of them")
}

func TestStartPageHasPages(t *testing.T) {
	var visits []visit
	for i := range 250 {
		visits = append(visits, htmlAt(days(0), fmt.Sprintf("http://h%03d.example/", i), "x"))
	}
	v := New(archiveOf(t, visits...), Options{})
	seen := map[string]bool{}
	next := "/"
	for pages := 1; ; pages++ {
		doc, words := tree(t, v, 200, next)
		for _, host := range regexp.MustCompile(`h\d{3}\.example`).FindAllString(words, -1) {
			require.False(t, seen[host], host)
			seen[host] = true
		}
		next = ""
		for _, link := range links(doc) {
			if link == fmt.Sprintf("/?host=&page=%d", pages+1) {
				next = link
			}
		}
		if next == "" {
			require.Equal(t, 3, pages)
			break
		}
	}
	require.Len(t, seen, 250)
	_, words := tree(t, v, 200, "/?page=99")
	require.Contains(t, words, "h000.example")
}

// Captures appended and files imported while the viewer runs are counted too.
func TestStartPageGrows(t *testing.T) {
	a := archiveOf(t)
	v := New(a, Options{})
	tree(t, v, 200, "/")
	_, err := a.Append(archive.Capture{URL: "http://new.example/", Time: days(0),
		Head: []byte("HTTP/1.1 200 OK\r\n\r\n")})
	require.NoError(t, err)
	v.summary.until = time.Time{}
	_, words := tree(t, v, 200, "/")
	require.Contains(t, words, "new.example")

	file := filepath.Join(t.TempDir(), "a.warc")
	header := "WARC/1.1\r\nWARC-Type: resource\r\nWARC-Record-ID: <urn:a>\r\n" +
		"WARC-Date: 2026-11-02T09:00:00Z\r\nWARC-Target-URI: http://imported.example/\r\n" +
		"Content-Type: text/plain\r\nContent-Length: 1\r\n\r\n"
	require.NoError(t, os.WriteFile(file, []byte(header+"x\r\n\r\n"), 0o600))
	_, err = a.Import(file)
	require.NoError(t, err)
	v.summary.until = time.Time{}
	_, words = tree(t, v, 200, "/")
	require.Contains(t, words, "imported.example")
}

func TestSearch(t *testing.T) {
	v := siteHandler(t, Options{})
	for _, tt := range []struct{ name, query, want string }{
		{"a URL", "url=http://www.example.org/", versionsAddress(millHome)},
		{"without its scheme", "url=www.example.org", versionsAddress(millHome)},
		{"with a scheme in capitals", "url=Http://www.example.org/", versionsAddress(millHome)},
		{"without www", "url=example.org", versionsAddress(millHome)},
		{"with the other scheme", "url=http://example.net/only-https",
			versionsAddress("https://example.net/only-https")},
		{"with spaces around it", "url=+www.example.org/about/+",
			versionsAddress(millHome + "about/")},
		{"at a time", "url=www.example.org&t=2026-11-04T10:00",
			"/view/20261104100059999999/" + millHome},
		{"all URLs below", "url=www.example.org/news/*",
			browseAddress("https://www.example.org/news/", time.Time{})},
		{"nothing", "url=", "/"}, {"everything", "url=+*", "/"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := ask(t, v, "/go?"+tt.query)
			require.Equal(t, http.StatusFound, w.Code)
			require.Equal(t, tt.want, w.Header().Get("Location"))
		})
	}
	_, words := tree(t, v, 400, "/go?url=javascript:alert(1)")
	require.Contains(t, words, "Invalid address")
	_, words = tree(t, v, 400, "/go?url=www.example.org&t=soon")
	require.Contains(t, words, "Invalid time")
	doc, words := tree(t, v, 404, "/go?url=www.example.org/none")
	require.Contains(t, words, "Not in the archive")
	require.Contains(t, links(doc), browseAddress("https://www.example.org/", time.Time{}))
}

func TestBrowse(t *testing.T) {
	v := siteHandler(t, Options{})
	doc, words := tree(t, v, 200, "/browse?prefix=www.example.org/")
	require.Contains(t, words, "28 versions of 23 addresses")
	require.Regexp(t,
		`/ text/html 200 5 .* about/ directory 3 inside 3 .* news/ directory 12 inside 12`,
		words)
	require.Contains(t, links(doc), browseAddress("http://www.example.org/news/", time.Time{}))
	require.Contains(t, links(doc), at(viewPath, time.Time{}, millHome+"logo.png"))

	doc, words = tree(t, v, 200, browseAddress(millHome+"about/", days(0)))
	require.Contains(t, words, "2 versions of 2 addresses")
	require.Contains(t, words, "people.html")
	require.NotContains(t, words, "history")
	require.Contains(t, links(doc), at(viewPath, days(0), millHome+"about/people.html"))
	require.Contains(t, links(doc), browseAddress(millHome, days(0)), "the way up")

	doc, _ = tree(t, v, 200, browseAddress(millHome+"about/", days(2)))
	require.Contains(t, links(doc), at(viewPath, days(2), millHome+"about/history?page=(2)"))

	_, words = tree(t, v, 200, "/browse?prefix=shop.example.org/")
	require.Contains(t, words, "shop.example.org:8443/", "other ports of the host are listed")
	_, words = tree(t, v, 200, "/browse?prefix=https://shop.example.org:8443/")
	require.Contains(t, words, "1 version of 1 address,")
	_, words = tree(t, v, 200, "/browse?prefix=nowhere.example/")
	require.Contains(t, words, "There is nothing here")
	tree(t, v, 400, "/browse?prefix=javascript:x")
	tree(t, v, 400, "/browse?prefix=a.example&t=soon")
}

// The pages of a listing follow each other without a gap.
func TestBrowseHasPages(t *testing.T) {
	var visits []visit
	for i := range 3*itemsPerPage/2 + 7 {
		visits = append(visits, htmlAt(days(0), fmt.Sprintf("http://a.example/p%04d", i), "x"))
		if i%50 == 0 {
			visits = append(visits, htmlAt(days(0), fmt.Sprintf("https://a.example/p%04d", i), "x"),
				htmlAt(days(0), fmt.Sprintf("http://a.example/p%04d/x", i), "x"))
		}
	}
	v := New(archiveOf(t, visits...), Options{})
	var seen []string
	next := "/browse?prefix=http://a.example/"
	for pages := 1; next != ""; pages++ {
		doc, words := tree(t, v, 200, next)
		seen = append(seen, regexp.MustCompile(`p\d{4}/?`).FindAllString(words, -1)...)
		next = ""
		for _, link := range links(doc) {
			if strings.Contains(link, "after=") {
				next = link
			}
		}
		require.LessOrEqual(t, pages, 3)
	}
	require.Len(t, seen, len(visits))
	require.IsNonDecreasing(t, seen)
}

func TestTimeline(t *testing.T) {
	v := siteHandler(t, Options{})
	doc, words := tree(t, v, 200, versionsAddress(millHome))
	require.Contains(t, words, "5 versions, 3 with new content, 1 with an error")
	require.Regexp(t,
		`6 Nov.*new 200.*5 Nov.*error 503.*4 Nov.*new 200.*3 Nov.*unchanged 200.*2 Nov.*new`,
		words)
	var marks []string
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || n.Data != "a" {
			continue
		}
		for _, a := range n.Attr {
			if a.Key == "aria-label" {
				marks = append(marks, a.Val)
			}
		}
	}
	require.Equal(t, []string{
		"2 Nov 2026, 09:00:00 UTC, changed, status 200",
		"3 Nov 2026, 09:00:00 UTC, unchanged, status 200",
		"4 Nov 2026, 09:00:00 UTC, changed, status 200",
		"5 Nov 2026, 09:00:00 UTC, failed, status 503",
		"6 Nov 2026, 09:00:00 UTC, changed, status 200",
	}, marks)
	for i := range 5 {
		require.Contains(t, links(doc), at(viewPath, days(i), millHome))
	}
	require.Contains(t, links(doc), diffAddress(millHome, days(1), days(2)))
	require.Contains(t, words, "3 Nov", "the axis has dates")

	_, words = tree(t, v, 404, versionsAddress(millHome+"none"))
	require.Contains(t, words, "Not in the archive")
	tree(t, v, 400, "/versions?url=mailto:a@b")
}

// For any number of versions, a bounded number of marks is drawn, in chronological order. Unchanged
// versions hide neither errors nor new content, and new content hides no error.
func TestMarksAreBounded(t *testing.T) {
	var versions []archive.Version
	for i := range 10_000 {
		kind := archive.Unchanged
		if i%100 == 50 {
			kind = archive.Changed
		}
		versions = append(versions, archive.Version{Time: days(0).Add(time.Duration(i) * time.Hour),
			Kind: kind})
	}
	versions[5000].Kind = archive.Failed
	list := marks(millHome, versions)
	require.LessOrEqual(t, len(list), slots+1)
	kinds := map[string]int{}
	for _, m := range list {
		kinds[m.Kind]++
	}
	require.Greater(t, kinds["changed"], 80)
	require.Equal(t, 1, kinds["failed"])
	require.Len(t, marks(millHome, versions[:1]), 1)
}

// Each mark of several versions leads to a timeline of them, so that each version is found by its
// mark alone.
func TestMarksLeadToAllVersions(t *testing.T) {
	var visits []visit
	for i := range 300 {
		at := days(0).Add(time.Duration(i*i) * time.Minute)
		v := htmlAt(at, millHome, fmt.Sprint(i))
		if i%50 == 7 {
			v.status = 503
		}
		visits = append(visits, v)
	}
	v := New(archiveOf(t, visits...), Options{})
	views, failed := map[string]bool{}, 0
	var walk func(address string, depth int)
	walk = func(address string, depth int) {
		require.Less(t, depth, 20)
		doc, _ := tree(t, v, 200, address)
		for n := range doc.Descendants() {
			if n.Data != "svg" || n.Parent.Data != "a" {
				continue
			}
			href := n.Parent.Attr[0].Val
			if strings.HasPrefix(href, viewPath) {
				views[href] = true
				continue
			}
			if depth == 0 && strings.Contains(n.Parent.Attr[2].Val, "error") {
				failed++
			}
			walk(href, depth+1)
		}
	}
	walk(versionsAddress(millHome), 0)
	require.Len(t, views, 300)
	require.Greater(t, failed, 2)
	_, words := tree(t, v, 200, versionsBetween(millHome, days(1), days(2)))
	require.Contains(t, words, "16 versions, ")
	require.Contains(t, words, "All versions")
	tree(t, v, 404, versionsBetween(millHome, days(-2), days(-1)))
	tree(t, v, 400, versionsAddress(millHome)+"&from=x")
}

// A version that is selected stays so on the other pages of the list, where it can be compared. The
// drawing takes no tab stops.
func TestVersionsOfTwoPagesAreCompared(t *testing.T) {
	var visits []visit
	for i := range 250 {
		visits = append(visits, htmlAt(days(i), millHome, fmt.Sprint(i)))
	}
	v := New(archiveOf(t, visits...), Options{})
	checked := func(doc *html.Node) (list []string) {
		for n := range doc.Descendants() {
			if n.Data != "input" || !strings.Contains(fmt.Sprint(n.Attr), "{ checked }") {
				continue
			}
			list = append(list, n.Attr[1].Val+" "+n.Attr[2].Val)
		}
		return list
	}
	doc, words := tree(t, v, 200, versionsAddress(millHome))
	require.Equal(t, []string{"b " + formatMoment(days(249)), "a " + formatMoment(days(248))},
		checked(doc))
	require.Contains(t, words, "1 2 3 More ›")
	doc, _ = tree(t, v, 200, versionsAddress(millHome)+"&page=3&a="+formatMoment(days(3))+
		"&b="+formatMoment(days(249)))
	require.Equal(t, []string{"b " + formatMoment(days(249)), "a " + formatMoment(days(3))},
		checked(doc))
	stops := 0
	for n := range doc.Descendants() {
		if n.Data == "button" && strings.HasPrefix(text(n), "Compare") {
			break
		}
		if slices.Contains([]string{"a", "input", "button"}, n.Data) &&
			!strings.Contains(fmt.Sprint(n.Attr), "{ tabindex -1}") {
			stops++
		}
	}
	require.Less(t, stops, 12)
}

func TestPagers(t *testing.T) {
	list := make([]int, 5000)
	for number, want := range map[string]string{
		"":   "1 2 3 12 25 37 50 More ›",
		"20": "‹ Before 1 12 18 19 20 21 22 25 37 50 More ›",
		"50": "‹ Before 1 12 25 37 48 49 50", "x": "1 2 3 12 25 37 50 More ›",
	} {
		part, p := pageOf(list, number, 100)
		require.Len(t, part, 100)
		var labels []string
		for _, turn := range p.Turns() {
			labels = append(labels, turn.Label)
		}
		require.Equal(t, want, strings.Join(labels, " "), number)
	}
	_, p := pageOf(list[:100], "", 100)
	require.Empty(t, p.Turns())
}

func TestTicks(t *testing.T) {
	for _, tt := range []struct {
		name   string
		length time.Duration
		labels []string
	}{
		{"an instant", 0, []string{"09:00:00"}},
		{"some seconds", 4 * time.Second,
			[]string{"09:00:00", "09:00:01", "09:00:02", "09:00:03", "09:00:04"}},
		{"some minutes", 3 * time.Minute, []string{"09:00", "09:01", "09:02", "09:03"}},
		{"some hours", 2 * time.Hour, []string{"09:00", "10:00", "11:00"}},
		{"some days", 3 * 24 * time.Hour, []string{"3 Nov", "4 Nov", "5 Nov"}},
		{"some months", 100 * 24 * time.Hour, []string{"Dec 2026", "Jan 2027", "Feb 2027"}},
		{"some years", 1500 * 24 * time.Hour, []string{"2027", "2028", "2029", "2030"}},
		{"centuries", 200 * 365 * 24 * time.Hour, []string{"2100", "2200"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list := ticks(monday, monday.Add(tt.length))
			var labels []string
			for _, tick := range list {
				labels = append(labels, tick.Label)
			}
			require.Equal(t, tt.labels, labels)
		})
	}
}

func TestView(t *testing.T) {
	v := siteHandler(t, Options{})
	frame := func(doc *html.Node) (src, sandbox string) {
		for n := range doc.Descendants() {
			if n.Data == "iframe" {
				for _, a := range n.Attr {
					switch a.Key {
					case "src":
						src = a.Val
					case "sandbox":
						sandbox = a.Val
					}
				}
			}
		}
		return src, sandbox
	}
	doc, words := tree(t, v, 200, at(viewPath, days(2).Add(time.Hour), millHome))
	src, sandbox := frame(doc)
	require.Equal(t, v.replayOf(days(2).Add(time.Hour), millHome), src)
	require.Equal(t, linkFlags, sandbox)
	require.Contains(t, words, "4 Nov 2026, 09:00:00 UTC")
	require.Contains(t, words, "as of 4 Nov 2026, 10:00:00 UTC")
	for _, want := range []string{at(viewPath, days(1), millHome), at(viewPath, days(3), millHome),
		versionsAddress(millHome), diffAddress(millHome, days(1), days(2)),
		v.rawOf(days(2).Add(time.Hour), millHome)} {
		require.Contains(t, links(doc), want)
	}

	doc, words = tree(t, v, 200, at(viewPath, days(1), millHome+"report.pdf"))
	src, _ = frame(doc)
	require.Empty(t, src)
	require.Contains(t, words, "application/pdf")

	doc, words = tree(t, v, 404, at(viewPath, days(0), millHome+"logo.png"))
	require.Contains(t, words, "yet")
	require.Contains(t, links(doc), at(viewPath, days(1), millHome+"logo.png"), "the nearest one")

	_, words = tree(t, v, 400, "/view/soon/"+millHome)
	require.Contains(t, words, "Invalid address")

	doc, words = tree(t, siteHandler(t, Options{Scripts: true}), 200,
		at(viewPath, days(2), millHome))
	_, sandbox = frame(doc)
	require.Equal(t, "allow-scripts", sandbox)
	require.Contains(t, words, "scripts run")
}

// A refresh is replaced by a link.
func TestViewOfARefresh(t *testing.T) {
	v := New(archiveOf(t,
		htmlAt(days(0), "http://a.example/", `<META http-equiv="Refresh" content="0; URL=/next">`),
		visit{"http://a.example/head", days(0), 200,
			"Content-Type: text/html\nRefresh: 5;url=/next", ""},
		htmlAt(days(0), "http://a.example/bad",
			`<meta http-equiv=refresh content="0;url=javascript:x">`),
	), Options{})
	for _, path := range []string{"", "head"} {
		doc, words := tree(t, v, 200, at(viewPath, days(0), "http://a.example/"+path))
		require.Contains(t, words, "would redirect to /next")
		require.Contains(t, links(doc), at(viewPath, days(0), "http://a.example/next"))
	}
	_, words := tree(t, v, 200, at(viewPath, days(0), "http://a.example/bad"))
	require.NotContains(t, words, "would redirect")
}

func TestDiffPage(t *testing.T) {
	v := siteHandler(t, Options{})
	doc, words := tree(t, v, 200, diffAddress(millHome, days(0), days(2)))
	require.Contains(t, words, "2 lines removed , 2 added")
	require.Contains(t, words, "<h1>The mill opens in spring </h1>")
	require.Contains(t, words, "<h1>The mill is open </h1>")
	require.Contains(t, links(doc), diffAddress(millHome, days(2), days(0)), "swapped")

	_, words = tree(t, v, 200, diffAddress(millHome, days(0), days(4))+"&mode=text")
	require.Contains(t, words, "closed for winter")
	require.NotContains(t, words, "<h1>")

	_, words = tree(t, v, 200, diffAddress(millHome, days(0), days(1)))
	require.Contains(t, words, "nothing changed")
	_, words = tree(t, v, 200, diffAddress(millHome+"logo.png", days(1), days(4)))
	require.Contains(t, words, "different content")
	_, words = tree(t, v, 200, diffAddress(millHome+"logo.png", days(1), days(2)))
	require.Contains(t, words, "the same content")
	_, words = tree(t, v, 200, diffAddress(millHome, days(2), days(3)))
	require.Regexp(t, "Status 200 503", words)
	tree(t, v, 404, diffAddress(millHome+"logo.png", days(0), days(1)))
	tree(t, v, 400, "/diff?url=x")
	tree(t, v, 400, "/diff?url=http://a.example/&a=1&b=2")

	const film = "http://a.example/film"
	scenes := strings.Repeat("x", maxCompared+1)
	v = New(archiveOf(t, typed(days(0), film, "video/mp4", scenes),
		typed(days(1), film, "video/mp4", scenes),
		typed(days(2), film, "video/mp4", scenes+"y")), Options{})
	_, words = tree(t, v, 200, diffAddress(film, days(0), days(1)))
	require.Contains(t, words, "the same content", "however long")
	_, words = tree(t, v, 200, diffAddress(film, days(1), days(2)))
	require.Contains(t, words, "different content")
}

// The viewer's own pages escape archived content and URLs.
func TestOwnPagesEscape(t *testing.T) {
	const evil = `http://a.example/"><script>alert(1)</script>'&?<b>(x)`
	u, err := parseURL(evil)
	require.NoError(t, err)
	url := u.String()
	v := New(archiveOf(t, htmlAt(days(0), url, `<title></title><script>alert(1)</script>`),
		htmlAt(days(1), url, `<script>alert(2)</script>`)), Options{})
	for _, address := range []string{"/", versionsAddress(url),
		browseAddress("http://a.example/", days(9)), diffAddress(url, days(0), days(1)),
		at(viewPath, days(0), url), "/go?url=" + url + "x",
		"/?host=%22%3E%3Cscript%3E"} {
		w := ask(t, v, address)
		require.NotContains(t, w.Body.String(), "<script>alert", address)
		require.NotContains(t, w.Body.String(), `"><script>`, address)
	}
	doc, _ := tree(t, v, 200, versionsAddress(url))
	require.Contains(t, links(doc), at(viewPath, days(1), url), "the address is exact")
	require.Equal(t, 200, ask(t, v, at(viewPath, days(1), url)).Code)
}
