package stage

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/sitemap"
)

// listed is one call of List's yield.
type listed struct {
	it  Item
	why Reason
}

func list(it Item, url, body string) (all []listed, err error) {
	err = List(&fetch.Response{URL: url, Body: []byte(body)}, it, func(entry Item, why Reason) {
		all = append(all, listed{entry, why})
	})
	return all, err
}

func TestListOfPages(t *testing.T) {
	it := Item{Depth: 2, Sitemap: &Sitemap{Server: "a.example"}}
	got, err := list(it, "http://cdn.example/s.xml", `<urlset>
		<url><loc>http://a.example/1</loc><lastmod>2026-01-02</lastmod></url>
		<url><loc>https://a.example/2</loc></url>
		<url><loc>http://a.example:8080/3</loc></url>
		<url><loc>http://b.example/4</loc></url>
		<url><loc>http://cdn.example/5</loc></url></urlset>`)
	require.NoError(t, err)
	modified := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC).Unix()
	require.Equal(t, []listed{
		{Item{URL: "http://a.example/1", Depth: 3, LastMod: modified}, ""},
		{Item{URL: "https://a.example/2", Depth: 3}, ""},
		{Item{URL: "http://a.example:8080/3", Depth: 3}, OtherServer},
		{Item{URL: "http://b.example/4", Depth: 3}, OtherServer},
		{Item{URL: "http://cdn.example/5", Depth: 3}, ""},
	}, got)
}

func TestListOfSitemaps(t *testing.T) {
	const index = `<sitemapindex><sitemap><loc>http://a.example/t.xml</loc></sitemap></sitemapindex>`
	it := Item{Depth: 2, Sitemap: &Sitemap{Server: "a.example"}}
	got, err := list(it, "http://a.example/s.xml", index)
	require.NoError(t, err)
	nested := Item{
		URL: "http://a.example/t.xml", Depth: 2, Sitemap: &Sitemap{Server: "a.example", Nested: true},
	}
	require.Equal(t, []listed{{nested, ""}}, got)

	got, err = list(nested, "http://a.example/t.xml", index)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, IndexInIndex, got[0].why)
}

func TestInvalidLists(t *testing.T) {
	it := Item{Sitemap: &Sitemap{Server: "a.example"}}
	got, err := list(it, "http://a.example/s.xml", "<!doctype html><title>Not found</title>")
	require.ErrorIs(t, err, sitemap.ErrFormat)
	require.Empty(t, got)

	got, err = list(it, "http://a.example/s.xml", "<urlset><url><loc>http://a.example/1</loc></url><url")
	require.Error(t, err)
	require.Len(t, got, 1, "entries before the error are valid")
}
