package robots_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/spinneret-go/spinneret/robots"
)

func Example() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "User-agent: *\nDisallow: /private/\n")
	}))
	defer site.Close()

	rules := robots.NewCache(robots.Options{Agent: "examplebot"})
	for _, path := range []string{"/", "/private/page"} {
		allowed, err := rules.Allowed(context.Background(), site.URL+path)
		fmt.Println(path, allowed, err)
	}
	// Output:
	// / true <nil>
	// /private/page false <nil>
}

// A crawler that schedules its requests itself uses Lookup and Store, which never wait.
func ExampleCache_Lookup() {
	cache := robots.NewCache(robots.Options{Agent: "examplebot"})
	const url = "https://example.com/page"
	now := time.Now()

	answer, _ := cache.Lookup(url, now)
	fmt.Println("ask for", answer.Request.URL)
	another, _ := cache.Lookup(url, now)
	fmt.Println("in flight:", !another.Known && another.Request == nil)

	moved := robots.Response{Status: 301, Header: http.Header{
		"Location": {"https://www.example.com/robots.txt"},
	}}
	answer, _ = cache.Store(*answer.Request, moved, now)
	fmt.Println("ask for", answer.Request.URL)
	answer, _ = cache.Store(*answer.Request, robots.Response{Status: 404}, now)
	fmt.Println("known:", answer.Known, "allowed:", answer.Rules.Allowed(url))
	// Output:
	// ask for https://example.com/robots.txt
	// in flight: true
	// ask for https://www.example.com/robots.txt
	// known: true allowed: true
}

// Pending also keeps what waits for a robots.txt.
func ExamplePending() {
	pending := robots.Pending[string]{Cache: robots.NewCache(robots.Options{Agent: "examplebot"})}
	var requests []robots.Request // a queue, like that for pages
	var route func(url string)
	route = func(url string) {
		answer, ready, err := pending.Lookup(url, url, time.Now())
		switch {
		case err != nil:
			fmt.Println(err)
		case answer.Known:
			fmt.Println(url, answer.Rules.Allowed(url))
		case answer.Request != nil:
			requests = append(requests, *answer.Request)
		}
		for _, url := range ready {
			route(url)
		}
	}
	route("https://example.com/a")
	route("https://example.com/b")
	fmt.Println(len(requests), "request,", pending.Len(), "URLs wait")

	body := []byte("User-agent: *\nDisallow: /a\n")
	_, released, _ := pending.Store(requests[0],
		robots.Response{Status: 200, Body: body, Whole: true}, time.Now())
	for _, url := range released {
		route(url)
	}
	// Output:
	// 1 request, 2 URLs wait
	// https://example.com/a false
	// https://example.com/b true
}

// What a cache knows goes into a file, or anywhere else, as plain values.
func ExampleCache_All() {
	old := robots.NewCache(robots.Options{})
	answer, _ := old.Lookup("https://example.com/", time.Now())
	_, _ = old.Store(*answer.Request, robots.Response{Status: 404}, time.Now())

	file, _ := os.CreateTemp("", "robots")
	defer os.Remove(file.Name())
	enc := json.NewEncoder(file)
	for e := range old.All() {
		_ = enc.Encode(e)
	}

	rules := robots.NewCache(robots.Options{})
	_, _ = file.Seek(0, 0)
	for dec := json.NewDecoder(file); dec.More(); {
		var e robots.Entry
		if err := dec.Decode(&e); err != nil {
			fmt.Println(err)
			return
		}
		if err := rules.Restore(e); err != nil {
			fmt.Println(err)
		}
	}
	known, _ := rules.Entry("https://example.com/page")
	fmt.Println(known.URL, known.Status)
	// Output:
	// https://example.com/robots.txt 404
}

// A crawler with its own client lets ReadResponse interpret the response.
func ExampleReadResponse() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "User-agent: *\nDisallow: /private/\n")
	}))
	defer site.Close()

	cache := robots.NewCache(robots.Options{Agent: "examplebot"})
	page := site.URL + "/private/page"
	answer, err := cache.Lookup(page, time.Now())
	if err != nil {
		fmt.Println(err)
		return
	}
	got := robots.ReadResponse(http.Get(answer.Request.URL))
	answer, err = cache.Store(*answer.Request, got, time.Now())
	fmt.Println(answer.Known, answer.Rules.Allowed(page), err)
	// Output: true false <nil>
}
