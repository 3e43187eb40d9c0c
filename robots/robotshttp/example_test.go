package robotshttp_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/robots/robotshttp"
)

func Example() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			fmt.Fprint(w, "User-agent: *\nDisallow: /private/\n")
		}
	}))
	defer site.Close()

	transport := robotshttp.NewTransport(nil, robots.Options{Agent: "examplebot"})
	client := &http.Client{Transport: transport}
	resp, err := client.Get(site.URL + "/")
	if err == nil {
		resp.Body.Close()
		fmt.Println(resp.Status)
	}
	_, err = client.Get(site.URL + "/private/page")
	var denied *robots.DisallowedError
	if errors.As(err, &denied) {
		fmt.Println("line", denied.Line, "forbids", denied.Pattern)
	}
	// Output:
	// 200 OK
	// line 2 forbids /private/
}

// The cache of a transport says what it knows without a request.
func ExampleTransport_Cache() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			fmt.Fprint(w, "User-agent: *\nCrawl-delay: 10\n")
		}
	}))
	defer site.Close()

	transport := robotshttp.NewTransport(nil, robots.Options{Agent: "examplebot"})
	resp, err := (&http.Client{Transport: transport}).Get(site.URL + "/")
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	answer, err := transport.Cache().Lookup(site.URL+"/other", time.Now())
	if err != nil {
		fmt.Println(err)
		return
	}
	delay, _ := answer.Rules.Delay()
	fmt.Println(answer.Known, delay)
	// Output: true 10s
}

// A host that is down has forbidden nothing, but nothing may be fetched either.
func ExampleTransport_unreachable() {
	site := httptest.NewServer(http.NotFoundHandler())
	site.Close()

	client := &http.Client{Transport: robotshttp.NewTransport(nil, robots.Options{Agent: "examplebot"})}
	_, err := client.Get(site.URL + "/")
	fmt.Println(errors.Is(err, robots.ErrDisallowed), errors.Is(err, robots.ErrUnreachable))
	var unreachable *robots.UnreachableError
	if errors.As(err, &unreachable) {
		fmt.Println("next attempt in", time.Until(unreachable.Retry).Round(time.Minute))
	}
	// Output:
	// false true
	// next attempt in 5m0s
}
