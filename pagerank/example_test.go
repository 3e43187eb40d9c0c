package pagerank_test

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spinneret-go/spinneret/pagerank"
)

// web is what pages link to: two of them to 5.
var web = [][]uint32{{1, 2, 3}, {4}, {5}, {5}, {0}, {0}}

// Which page first? URLs in, URLs out.
func Example() {
	links := map[string][]string{
		"http://a.test/":  {"http://a.test/x", "http://b.test/"},
		"http://b.test/":  {"http://a.test/", "http://a.test/y"},
		"http://a.test/x": {"http://b.test/"},
	}
	f := pagerank.NewURLs(pagerank.Options{})
	f.Discover("http://a.test/")
	for url, ok := f.Next(); ok; url, ok = f.Next() {
		fmt.Println(url)
		f.Fetched(url, links[url])
	}
	// Output:
	// http://a.test/
	// http://b.test/
	// http://a.test/y
	// http://a.test/x
}

func ExampleFrontier() {
	f := pagerank.New(pagerank.Options{})
	f.Discover(0)
	for id, ok := f.Next(); ok; id, ok = f.Next() {
		fmt.Printf("page %d, score %.2f\n", id, f.Score(id))
		f.Fetched(id, web[id])
	}
	stats := f.Stats()
	fmt.Printf("%d pages, scores within %.2f of PageRank\n", stats.Fetched, stats.Error)
	// Output:
	// page 0, score 0.00
	// page 1, score 0.28
	// page 4, score 1.09
	// page 2, score 0.79
	// page 5, score 1.52
	// page 3, score 1.39
	// 6 pages, scores within 1.06 of PageRank
}

func ExampleOptions_score() {
	var f *pagerank.URLs
	f = pagerank.NewURLs(pagerank.Options{Score: func(id uint32) float64 {
		if strings.Contains(f.URL(id), "/login") {
			return 0.1
		}
		return 1
	}})
	f.Fetched("http://a.test/", []string{"http://a.test/login", "http://a.test/news"})
	fmt.Println(f.Next())
	// Output:
	// http://a.test/news true
}

func ExampleFrontier_NextReady() {
	f := pagerank.New(pagerank.Options{
		Cutoff: pagerank.DL1,
		Host:   func(id uint32) uint32 { return id / 10 },
	})
	f.Fetched(0, []uint32{11, 12, 21}) // 11 and 12 are on host 1, 21 on host 2
	busy := map[uint32]bool{1: true}
	ready := func(host uint32) bool { return !busy[host] }
	fmt.Println(f.NextReady(ready))
	fmt.Println(f.NextReady(ready))

	busy[1] = false
	f.Release(1)
	fmt.Println(f.NextReady(ready))
	// Output:
	// 21 true
	// 0 false
	// 11 true
}

func ExampleFrontier_Top() {
	f := pagerank.New(pagerank.Options{})
	for _, id := range []uint32{0, 1, 4} {
		f.Fetched(id, web[id])
	}
	stats := f.Stats()
	for id, score := range f.Top(2) {
		fmt.Printf("page %d has %.0f %%, give or take %.0f\n", id, 100*score/stats.Total, 50*stats.Error)
	}
	fmt.Printf("%d pages hold %.0f %%, at least %.0f\n",
		stats.Fetched, 100*stats.Held/stats.Total, 100*stats.Mass)
	// Output:
	// page 0 has 34 %, give or take 26
	// page 4 has 25 %, give or take 26
	// 3 pages hold 81 %, at least 33
}

func ExampleFrontier_Refine() {
	f := pagerank.New(pagerank.Options{})
	for id, links := range web {
		f.Fetched(uint32(id), links)
	}
	fmt.Printf("within %.2f, at least %.2f of the mass\n", f.Stats().Error, f.Stats().Mass)
	fmt.Println(f.Refine(0.01))
	fmt.Printf("at least %.2f\n", f.Stats().Mass)
	// Output:
	// within 1.08, at least 0.46 of the mass
	// true
	// at least 1.00
}

func ExampleRead() {
	f := pagerank.New(pagerank.Options{})
	f.Fetched(0, web[0])
	var file bytes.Buffer
	if _, err := f.WriteTo(&file); err != nil {
		fmt.Println(err)
	}
	f, err := pagerank.Read(&file, pagerank.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(f.Next())
	// Output:
	// 1 true
}

func ExampleReadURLs() {
	f := pagerank.NewURLs(pagerank.Options{})
	f.Fetched("http://a.test/", []string{"http://b.test/"})
	visiting, _ := f.Next()
	var file bytes.Buffer
	if _, err := f.WriteTo(&file); err != nil {
		fmt.Println(err)
	}
	f, err := pagerank.ReadURLs(&file, pagerank.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	f.Discover(visiting) // the process ended before it was fetched
	fmt.Println(f.Next())
	// Output:
	// http://b.test/ true
}

// A polite crawler takes the best page of a host that may be visited now.
func ExampleURLs_NextReady() {
	u := pagerank.NewURLs(pagerank.Options{Cutoff: pagerank.DL1})
	u.Fetched("http://a.test/", []string{"http://b.test/1", "http://b.test/2", "http://c.test/", "http://a.test/1"})
	waits := map[string]bool{"a.test": true, "b.test": true}
	ready := func(host string) bool { return !waits[host] }
	fmt.Println(u.NextReady(ready))
	fmt.Println(u.NextReady(ready))

	delete(waits, "b.test")
	u.Release("b.test")
	fmt.Println(u.NextReady(ready))

	u.Fetched("http://b.test/1", []string{"http://a.test/"})
	for id := range u.Frontier().Top(1) {
		fmt.Println(u.URL(id))
	}
	// Output:
	// http://c.test/ true
	//  false
	// http://b.test/1 true
	// http://a.test/
}

// What robots.txt forbids is dropped, and links to it do not bring it back.
func ExampleURLs_Drop() {
	u := pagerank.NewURLs(pagerank.Options{})
	u.Fetched("http://a.test/", []string{"http://b.test/private", "http://b.test/"})
	u.Drop("http://b.test/private")
	u.Fetched("http://c.test/", []string{"http://b.test/private"})
	fmt.Println(u.Next())
	fmt.Println(u.Next())
	// Output:
	// http://b.test/ true
	//  false
}

func ExampleFrontier_Drop() {
	f := pagerank.New(pagerank.Options{})
	f.Fetched(0, []uint32{1, 2})
	f.Drop(1)
	fmt.Println(f.Next())
	fmt.Println(f.Next())
	// Output:
	// 2 true
	// 0 false
}
