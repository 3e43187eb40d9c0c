package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/page"
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
	defer client.CloseIdleConnections()
	got, err := client.Get(context.Background(), site.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(got.Status, len(got.Body), "bytes")
	for link, err := range page.Links(got.Body, got.URL, got.Header.Get("Content-Type")) {
		if err == nil && link.Kind == page.Anchor && !link.NoFollow {
			fmt.Println(link.URL[len(site.URL):])
		}
	}
	// Output:
	// 200 73 bytes
	// /next
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
	_, err = client.Get(context.Background(), "http://a.test/")
	fmt.Println(err)
	fmt.Println(errors.Is(err, fetch.Blocked))
	var failure *fetch.Error
	if errors.As(err, &failure) {
		fmt.Println("worth another try:", failure.Temporary())
	}
	// Output:
	// fetch: http://a.test/: blocked: 169.254.169.254 is not a public address
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
