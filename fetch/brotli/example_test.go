package brotli_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	encoder "github.com/andybalholm/brotli"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/brotli"
)

func Example() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "br")
		z := encoder.NewWriter(w)
		fmt.Fprintf(z, "you accept %s", r.Header.Get("Accept-Encoding"))
		z.Close()
	}))
	defer site.Close()
	client, err := fetch.New(fetch.Options{
		Reach:  fetch.Loopback,
		Brotli: brotli.New,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.CloseIdleConnections()
	page, err := client.Get(context.Background(), site.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", page.Body)
	// Output:
	// you accept gzip, zstd, deflate, br
}
