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
	for id, score := range f.Ahead(1) {
		fmt.Printf("page %d is next, with %.0f %%\n", id, 100*score/stats.Total)
	}
	fmt.Printf("%d pages hold %.0f %%, at least %.0f\n",
		stats.Fetched, 100*stats.Held/stats.Total, 100*stats.Mass)
	// Output:
	// page 0 has 34 %, give or take 26
	// page 4 has 25 %, give or take 26
	// page 2 is next, with 10 %
	// 3 pages hold 81 %, at least 33
}

func ExampleFrontier_Ahead() {
	f := pagerank.New(pagerank.Options{Cutoff: pagerank.DL1})
	f.Fetched(0, []uint32{10, 11})
	f.Fetched(1, []uint32{11, 12, 13})
	for id, score := range f.Ahead(2) {
		fmt.Printf("page %d, score %.2f\n", id, score)
	}
	fmt.Println(f.Next())
	// Output:
	// page 11, score 0.83
	// page 10, score 0.50
	// 11 true
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

func ExampleFrontier_Trust() {
	f := pagerank.New(pagerank.Options{Trusted: true, Threshold: 0.01})
	f.Trust(0, 1)
	f.Discover(4) // known, not trusted
	for id, ok := f.Next(); ok && f.Stats().Mass < 0.5; id, ok = f.Next() {
		f.Fetched(id, web[id])
		fmt.Printf("%d pages hold at least %.0f %%\n", f.Stats().Fetched, 100*f.Stats().Mass)
	}
	// Output:
	// 1 pages hold at least 15 %
	// 2 pages hold at least 19 %
	// 3 pages hold at least 24 %
	// 4 pages hold at least 28 %
	// 5 pages hold at least 46 %
	// 6 pages hold at least 59 %
}

func ExampleLoad() {
	f := pagerank.New(pagerank.Options{})
	f.Fetched(0, web[0])
	var file bytes.Buffer
	if _, err := f.WriteTo(&file); err != nil {
		fmt.Println(err)
	}
	f, err := pagerank.Load(&file, pagerank.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(f.Next())
	// Output:
	// 1 true
}

func ExampleLoadURLs() {
	f := pagerank.NewURLs(pagerank.Options{})
	f.Fetched("http://a.test/", []string{"http://b.test/"})
	var file bytes.Buffer
	if _, err := f.WriteTo(&file); err != nil {
		fmt.Println(err)
	}
	f, err := pagerank.LoadURLs(&file, pagerank.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
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
	fmt.Println(u.Score("http://a.test/") > u.Score("http://b.test/1"))
	for url := range u.Top(1) {
		fmt.Println(url)
	}
	// Output:
	// http://c.test/ true
	//  false
	// http://b.test/1 true
	// true
	// http://a.test/
}
