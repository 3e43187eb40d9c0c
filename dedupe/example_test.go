package dedupe_test

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spinneret-go/spinneret/dedupe"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
)

func Example() {
	seen := dedupe.New(dedupe.Options{Capacity: 1_000_000})
	for _, url := range []string{
		"https://example.com/",
		"https://example.com/news?id=1",
		"https://example.com/",
	} {
		if seen.Add(url) {
			fmt.Println("new:", url)
		} else {
			fmt.Println("old:", url)
		}
	}
	// Output:
	// new: https://example.com/
	// new: https://example.com/news?id=1
	// old: https://example.com/
}

func ExampleFilter() {
	const planned = 20_000
	seen := dedupe.New(dedupe.Options{Capacity: planned, Rate: 0.01, Recent: 1000})
	for _, host := range []string{"a", "b", "c"} {
		for i := range planned {
			seen.Add(fmt.Sprintf("https://%s.example/%d", host, i))
		}
		s := seen.Stats()
		fmt.Printf("%d of the latest URLs, %d layers with %.1f bits for each planned one\n",
			s.Recent, s.Layers, float64(s.Bits)/float64(s.Capacity))
		fmt.Println("error within the bound:", s.Error <= 0.01)
	}
	// Output:
	// 1000 of the latest URLs, 1 layers with 9.7 bits for each planned one
	// error within the bound: true
	// 1000 of the latest URLs, 2 layers with 27.0 bits for each planned one
	// error within the bound: true
	// 1000 of the latest URLs, 3 layers with 64.4 bits for each planned one
	// error within the bound: true
}

func ExampleRead() {
	seen := dedupe.New(dedupe.Options{})
	seen.Add("https://example.com/")

	var file bytes.Buffer
	if _, err := seen.WriteTo(&file); err != nil {
		fmt.Println(err)
		return
	}
	again, err := dedupe.Read(&file, dedupe.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(again.Add("https://example.com/"), again.Add("https://example.com/new"))

	_, err = dedupe.Read(strings.NewReader("something else"), dedupe.Options{})
	fmt.Println(err)
	// Output:
	// false true
	// dedupe: read filter: byte 0: not "SPNFILT3"
}

func ExampleLinkCache() {
	const (
		refused = iota
		met
	)
	seen, links := dedupe.New(dedupe.Options{}), dedupe.NewLinkCache(1<<16)
	sight := func(link string) {
		verdict, known := links.Get(link, 0)
		if !known {
			verdict = refused
			if url, err := weburl.Canonical(link); err == nil {
				verdict = met
				if seen.Add(url) {
					fmt.Println("fetch", url)
				}
			}
			links.Put(link, 0, verdict)
		}
		if verdict == refused {
			fmt.Println("refused", link)
		}
	}
	for range 2 { // two pages with the same links
		sight("https://example.com/#top")
		sight("mailto:me@example.com")
	}
	// Output:
	// fetch https://example.com/
	// refused mailto:me@example.com
	// refused mailto:me@example.com
}
