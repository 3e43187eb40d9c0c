package archivehttp_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/archivehttp"
)

func Example() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "hello")
	}))
	defer site.Close()
	dir, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(dir)

	web, _ := archive.Open(dir, archive.Options{})
	defer web.Close()
	client := &http.Client{Transport: archivehttp.NewTransport(nil, web)}
	resp, err := client.Get(site.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	if err := resp.Body.Close(); err != nil { // the response was not recorded
		fmt.Println(err)
	}
	version, _ := web.At(site.URL, time.Time{})
	body, _ := web.Body(version)
	fmt.Println(version.Status, version.Kind, string(body))
	// Output: 200 changed hello
}
