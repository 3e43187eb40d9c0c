package replay

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/weburl"
)

func TestNumbersForPeople(t *testing.T) {
	for n, want := range map[int]string{0: "0", 7: "7", 999: "999", 1000: "1\u202f000",
		123456: "123\u202f456", 1234567: "1\u202f234\u202f567"} {
		require.Equal(t, want, number(n))
	}
	for n, want := range map[int64]string{0: "0 bytes", 1023: "1023 bytes", 1024: "1.0 KiB",
		1536: "1.5 KiB", 5 << 20: "5.0 MiB", 3 << 30: "3.0 GiB"} {
		require.Equal(t, want, bytesText(n))
	}
	for d, want := range map[time.Duration]string{0: "less than a second", time.Second: "1 second",
		90 * time.Second: "1 minute", 2 * time.Hour: "2 hours", 36 * time.Hour: "1 day",
		45 * 24 * time.Hour: "1 month", 800 * 24 * time.Hour: "2 years"} {
		require.Equal(t, want, span(d))
	}
	require.Equal(t, "2 Nov 2026, 09:00:00 UTC", when(monday))
	require.Equal(t, "now", when(time.Time{}))
	require.Equal(t, "2 Nov 2026, 09:00:00 UTC", when(monday.In(time.FixedZone("", 7200))))
}

func TestHostsOfURLs(t *testing.T) {
	for url, want := range map[string]string{
		"http://a.example/": "a.example", "http://a.example": "a.example",
		"https://a.example:8443/x": "a.example", "http://a.example?x": "a.example",
		"http://[::1]:80/": "[::1]", "http://[::1]/": "[::1]", "dns:a.example": "", "": "",
	} {
		require.Equal(t, want, hostOf(url), url)
	}
}

func TestDirectories(t *testing.T) {
	for path, want := range map[string]string{"/": "/", "/a": "/", "/a/": "/a/", "/a/b.c": "/a/",
		"": "/"} {
		require.Equal(t, want, folderOf(weburl.URL{Path: path, Query: "q", HasQuery: true}).Path, path)
	}
}

func TestCrumbs(t *testing.T) {
	list := crumbs("http", "a.example/b/c/", time.Time{})
	var names []string
	for _, crumb := range list {
		names = append(names, crumb.Text)
	}
	require.Equal(t, []string{"a.example/", "b/", "c/"}, names)
	require.Equal(t, browseAddress("http://a.example/b/", time.Time{}), list[1].Address)
	require.Len(t, crumbs("http", "a.example/b", days(0)), 2)

	// Another website may link here with an address of any length.
	deep := crumbs("http", "a.example/"+strings.Repeat("b/", 1000)+"c", days(0))
	require.Equal(t, maxCrumbs, len(deep))
	require.True(t, strings.HasSuffix(deep[maxCrumbs-1].Text, "b/b/c"))
}

func TestLongTimelinesHavePages(t *testing.T) {
	v := New(archiveOf(t, longHistory()...), Options{})
	seen := map[string]bool{}
	for page := 1; page <= 3; page++ {
		doc, words := tree(t, v, 200, fmt.Sprint(versionsAddress(millHome+"prices"), "&page=", page))
		require.Equal(t, page < 3, strings.Contains(words, "More ›"))
		for n := range doc.Descendants() {
			if link := links(n); n.Data == "td" && len(link) > 0 && strings.HasPrefix(link[0], viewPath) {
				seen[link[0]] = true
			}
		}
	}
	require.Len(t, seen, 300, "all versions are on one of the pages")
}

// Long lines are cut between characters.
func TestLongLinesAreCut(t *testing.T) {
	require.Equal(t, "abc", short("abc"))
	got := short(strings.Repeat("é", maxRowText))
	require.Less(t, len(got), maxRowText+10)
	require.True(t, utf8.ValidString(got))
}

// The size of a comparison is bounded, and the page says so.
func TestLongComparisonsAreCut(t *testing.T) {
	var a, b strings.Builder
	for i := range 4000 {
		a.WriteString(strings.Repeat("a", i%7) + "\n")
		b.WriteString(strings.Repeat("b", i%7+1) + "\n")
	}
	const url = "http://a.example/"
	v := New(archiveOf(t, typed(days(0), url, "text/plain", a.String()),
		typed(days(1), url, "text/plain", b.String())), Options{})
	_, words := tree(t, v, 200, diffAddress(url, days(0), days(1)))
	require.Contains(t, words, "Only the first changes are shown")
	require.Less(t, strings.Count(words, "−"), maxRows)
}

func TestIsShown(t *testing.T) {
	for _, media := range []string{"text/html", "text/plain", "text/x-go", "image/png",
		"image/svg+xml",
		"application/json", "application/ld+json", "application/atom+xml", "application/xhtml+xml",
		"video/mp4", "audio/ogg", "application/javascript"} {
		require.True(t, isShown(media), media)
	}
	for _, media := range []string{"application/pdf", "application/zip", "text/csv", "image/tiff",
		"application/octet-stream", "", "x"} {
		require.False(t, isShown(media), media)
	}
}
