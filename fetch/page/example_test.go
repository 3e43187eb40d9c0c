package page_test

import (
	"fmt"
	"net/http"

	"github.com/spinneret-go/spinneret/fetch/page"
)

func Example() {
	body := []byte(`<base href="/docs/">
		<meta name="robots" content="noarchive">
		<link rel="canonical" href="https://a.test/docs/intro">
		<a href="intro#top">Intro</a>`)
	for link, err := range page.Links(body, "http://a.test/index.html", "text/html") {
		switch {
		case err != nil:
			fmt.Println(err)
		case link.Kind == page.Directive:
			fmt.Println(link.Name, "says", link.Text)
		case link.Kind == page.Canonical:
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

func ExampleScan() {
	body := []byte(`<title>Intro</title><h1 id=top>R&amp;D</h1><p>Some <a href="more#end">text</a>.`)
	var text []byte
	opts := page.Options{
		Meta: true,
		IDs:  true,
		Text: func(piece []byte) { text = append(text, piece...) },
	}
	for link, err := range page.Scan(body, "http://a.test/", "text/html", opts) {
		switch {
		case err != nil:
			fmt.Println(err)
		case link.Kind == page.Title:
			fmt.Println("about", link.Text)
		case link.Kind == page.ID:
			fmt.Println("at", link.Text)
		default:
			fmt.Println(link.URL, "at", link.Fragment)
		}
	}
	fmt.Printf("%q\n", text)
	// Output:
	// about Intro
	// at top
	// http://a.test/more at end
	// "R&D\nSome text."
}

func ExampleHeaderLinks() {
	header := http.Header{"Link": {`</de>; rel=alternate; hreflang=de`}}
	for link, err := range page.HeaderLinks(header, "http://a.test/") {
		if err == nil {
			fmt.Println(link.URL, link.Lang)
		}
	}
	// Output:
	// http://a.test/de de
}

func ExampleToUTF8() {
	text, encoding := page.ToUTF8([]byte("caf\xe9"), "text/html; charset=iso-8859-1")
	fmt.Printf("%s, %s\n", text, encoding)
	// Output:
	// café, windows-1252
}
