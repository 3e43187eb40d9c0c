package page_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/spinneret-go/spinneret/internal/weburl"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

// pieces are the parts of random pages. None of them changes how its neighbors are parsed, so the
// tree of the page has the elements in document order.
var pieces = []string{
	"<a href=%d>", "</a>", "<a href='/x/%d?a=1&amp;b=2#f' class=c>text</a>", "<a name=n%d>",
	"<A HREF=\"//b.test/%d\" rel='nofollow noopener'>", "<a href=mailto:a%d@b.test>",
	"<a href=' \n ../%d '>", "<a href='http://[%d/'>", "<a href='#f%d'>", "<a title='>' href=%d>",
	"<img src=i%d.png alt='<a href=no>'>", "<img srcset='i%d.png 1x, j.png 2x'>", "<img src=''>",
	"<p>text %d &lt;a href=no&gt;</p>", "<!-- <a href=no%d> -->", "<div/><br/><hr>",
	"<script>'<a href=no%d>'</script>", "<style>a { b: '<a href=no%d>' }</style>",
	"<script src='s%d.js'></script>", "<iframe src=f%d><a href=no></iframe>",
	"<video src=v%d poster='p.png'></video>", "<noscript><a href=n%d></a></noscript>",
	"<textarea><a href=no%d></textarea>", "< a href=no%d>", "<a\thref\n=\r'%d'\f>",
}

func randomPage(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString("<!doctype html><title>x</title><body>")
	for n := range 1 + r.IntN(60) {
		piece := pieces[r.IntN(len(pieces))]
		if strings.Contains(piece, "%d") {
			piece = fmt.Sprintf(piece, n)
		}
		b.WriteString(piece)
	}
	return b.String()
}

// reference finds the links of a page in its tree.
func reference(t *testing.T, page, base string) (found []string) {
	root, err := html.ParseWithOptions(strings.NewReader(page), html.ParseOptionEnableScripting(false))
	require.NoError(t, err)
	from, err := weburl.Parse(base, nil)
	require.NoError(t, err)
	add := func(kind, raw, rest string) {
		u, err := weburl.Parse(raw, &from)
		if err == nil && (u.Scheme == "http" || u.Scheme == "https") {
			found = append(found, kind+" "+string(u.Append(nil, false))+rest)
		}
	}
	// The parser reopens an <a> after another element has closed it. The copy has the attributes of
	// the original, but is not another link.
	seen := map[string]bool{}
	for node := range root.Descendants() {
		value := map[string]string{}
		for _, a := range node.Attr {
			value[a.Key] = strings.Trim(a.Val, " \t\n\f\r")
		}
		switch node.Data {
		case "a":
			href, ok := value["href"]
			if !ok || strings.HasPrefix(href, "#") || seen[href] {
				continue
			}
			seen[href] = true
			rest := ""
			if value["rel"] != "" {
				rest = " rel=" + value["rel"] + " nofollow"
			}
			add("anchor", href, rest)
		case "iframe":
			add("frame", value["src"], "")
		case "img", "script", "video":
			for _, raw := range []string{value["src"], value["poster"]} {
				if raw != "" {
					add("resource", raw, "")
				}
			}
			for _, candidate := range strings.Split(value["srcset"], ", ") {
				if raw, _, _ := strings.Cut(candidate, " "); raw != "" {
					add("resource", raw, "")
				}
			}
		}
	}
	return found
}

func TestLinksModel(t *testing.T) {
	for seed := range uint64(300) {
		page := randomPage(rand.New(rand.NewPCG(seed, 0)))
		got, err := collect(page, pageURL)
		require.NoError(t, err)
		require.Equal(t, reference(t, page, pageURL), got, "seed %d: %s", seed, page)
	}
}
