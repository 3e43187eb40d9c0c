package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"

	"github.com/spinneret-go/spinneret/fetch"
)

func Example() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `<a href="/next">next</a> <a rel=nofollow href="ad">ad</a> <img src=i.png>`)
	}))
	defer site.Close()
	client, err := fetch.New(fetch.Options{Reach: fetch.Loopback})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.CloseIdle()
	page, err := client.Get(context.Background(), site.URL, fetch.Validators{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(page.Status, len(page.Body), "bytes")
	for link, err := range fetch.Links(page.Body, page.URL) {
		if err == nil && link.Kind == fetch.Anchor && !link.NoFollow {
			fmt.Println(link.URL[len(site.URL):])
		}
	}
	// Output:
	// 200 73 bytes
	// /next
}

func ExampleSitemap() {
	doc := `<urlset><url><loc>/intro</loc><lastmod>2005-01-01</lastmod></url></urlset>`
	for entry, err := range fetch.Sitemap(strings.NewReader(doc), "http://a.test/sitemap.xml") {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(entry.URL, "changed in", entry.LastMod.Year())
	}
	// Output:
	// http://a.test/intro changed in 2005
}

func ExampleScan() {
	page := []byte(`<title>Intro</title><p>Some <a href="more">text</a>.`)
	opts := fetch.ScanOptions{
		Title: true,
		Text:  func(piece []byte) { fmt.Printf("%q\n", piece) },
	}
	for link, err := range fetch.Scan(page, "http://a.test/", opts) {
		switch {
		case err != nil:
			fmt.Println(err)
		case link.Kind == fetch.Title:
			fmt.Println("about", link.Text)
		default:
			fmt.Println(link.URL)
		}
	}
	// Output:
	// about Intro
	// "Some "
	// http://a.test/more
	// "text"
	// "."
}

func ExampleHeaderLinks() {
	header := http.Header{"Link": {`</de>; rel=alternate; hreflang=de`}}
	for link, err := range fetch.HeaderLinks(header, "http://a.test/") {
		if err == nil {
			fmt.Println(link.URL, link.Lang)
		}
	}
	// Output:
	// http://a.test/de de
}

func ExampleLinks() {
	page := []byte(`<base href="/docs/">
		<meta name="robots" content="noarchive">
		<link rel="canonical" href="https://a.test/docs/intro">
		<a href="intro#top">Intro</a>`)
	for link, err := range fetch.Links(page, "http://a.test/index.html") {
		switch {
		case err != nil:
			fmt.Println(err)
		case link.Kind == fetch.Directive:
			fmt.Println(link.Name, "says", link.Text)
		case link.Kind == fetch.Canonical:
			fmt.Println("better known as", link.URL)
		default:
			fmt.Println(link.URL)
		}
	}
	// Output:
	// robots says noarchive
	// better known as https://a.test/docs/intro
	// http://a.test/docs/intro
}

func ExampleError() {
	client, err := fetch.New(fetch.Options{
		UserAgent: "examplebot/1.0 (+https://a.test/bot)",
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("169.254.169.254")}, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = client.Get(context.Background(), "http://a.test/", fetch.Validators{})
	fmt.Println(err)
	fmt.Println(errors.Is(err, fetch.Blocked))
	var failure *fetch.Error
	if errors.As(err, &failure) {
		fmt.Println("worth another try:", failure.Temporary())
	}
	// Output:
	// fetch: http://a.test/: blocked: 169.254.169.254 is no public address
	// true
	// worth another try: false
}

func ExampleReach_Allows() {
	for _, a := range []string{"1.1.1.1", "10.0.0.1", "::ffff:127.0.0.1"} {
		fmt.Println(a, fetch.Public.Allows(netip.MustParseAddr(a)))
	}
	// Output:
	// 1.1.1.1 true
	// 10.0.0.1 false
	// ::ffff:127.0.0.1 false
}

// What is too large for memory goes to a file, for an archive.
func ExampleResponse_RawReader() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, strings.Repeat("a large file. ", 1000))
	}))
	defer site.Close()
	client, err := fetch.New(fetch.Options{
		Reach: fetch.Loopback, Spool: os.TempDir(), SpoolAbove: 1000, MaxBody: 1 << 30,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.CloseIdle()
	page, err := client.Get(context.Background(), site.URL, fetch.Validators{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Release(page)
	n, err := io.Copy(io.Discard, page.RawReader())
	fmt.Println(len(page.Body), "bytes in memory of", n, "in all:", page.Truncated, err)
	// Output:
	// 1000 bytes in memory of 14000 in all: spool <nil>
}
