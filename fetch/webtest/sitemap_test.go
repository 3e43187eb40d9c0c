package webtest

import (
	"compress/gzip"
	"encoding/xml"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sitemapOf reads one document of either kind.
func sitemapOf(t *testing.T, text string) (locs []string, lastMod map[string]time.Time) {
	t.Helper()
	var doc struct {
		Entries []struct {
			Loc     string    `xml:"loc"`
			LastMod time.Time `xml:"lastmod"`
		} `xml:",any"`
	}
	require.NoError(t, xml.Unmarshal([]byte(text), &doc))
	lastMod = make(map[string]time.Time)
	for _, e := range doc.Entries {
		locs = append(locs, e.Loc)
		lastMod[e.Loc] = e.LastMod
	}
	return locs, lastMod
}

func TestSitemapsListPagesAndOrphans(t *testing.T) {
	for _, index := range []bool{false, true} {
		w := start(t, Options{Hosts: 2, Pages: 40, Traits: func(host int) Traits {
			return Traits{Sitemap: Sitemap{Orphans: 3 * (1 - host), Index: index}}
		}})
		c := client(t, w)
		require.Contains(t, get(t, c, first+"robots.txt").body, "\nSitemap: "+first+"sitemap.xml\n")
		host, _ := w.Host("h00000.vweb.test")
		pages, orphans := slices.Collect(host.Pages()), slices.Collect(host.Orphans())
		require.Len(t, orphans, 3)

		locs, lastMod := sitemapOf(t, get(t, c, first+"sitemap.xml").body)
		if index {
			require.Equal(t, []string{
				first + "sitemap-pages.xml", first + "sitemap-orphans.xml.gz", first + "sitemap.xml",
			}, locs)
			locs, lastMod = sitemapOf(t, get(t, c, locs[0]).body)
			r := get(t, c, first+"sitemap-orphans.xml.gz")
			require.Empty(t, r.header.Get("Content-Encoding"), "the file itself is compressed")
			z, err := gzip.NewReader(strings.NewReader(r.body))
			require.NoError(t, err)
			text, err := io.ReadAll(z)
			require.NoError(t, err)
			more, _ := sitemapOf(t, string(text))
			locs = append(locs, more...)
		}
		require.Equal(t, slices.Concat(pages,
			[]string{"http://h00001.vweb.test/ghost/sitemap.html"}, orphans), locs)
		modified := get(t, c, pages[3]).header.Get("Last-Modified")
		require.Equal(t, modified, lastMod[pages[3]].UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT"))
		for _, url := range orphans {
			require.Equal(t, 200, get(t, c, url).status)
			require.NotContains(t, crawl(t, w, first).other, url)
		}
	}
}

func TestHostsWithoutSitemap(t *testing.T) {
	w := start(t, Options{Hosts: 2, Traits: func(host int) Traits {
		return Traits{Sitemap: Sitemap{Orphans: 2 * host}}
	}})
	c := client(t, w)
	require.NotContains(t, get(t, c, first+"robots.txt").body, "Sitemap")
	for _, path := range []string{"sitemap.xml", "sitemap-pages.xml", "orphan/0.html"} {
		require.Equal(t, 404, get(t, c, first+path).status, path)
	}
	second := "http://h00001.vweb.test/"
	require.Equal(t, 200, get(t, c, second+"orphan/1.html").status)
	for _, path := range []string{"sitemap-pages.xml", "orphan/2.html", "orphan/01.html", "orphan/"} {
		require.Equal(t, 404, get(t, c, second+path).status, path)
	}
}
