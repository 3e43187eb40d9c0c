package archivehttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
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

// Record what an API answers once, and test against the recording.
func ExamplePlayer() {
	dir, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(dir)
	tape, _ := archive.Open(dir, archive.Options{})
	defer tape.Close()

	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "the answer to a ", r.Method)
	}))
	recorder := &http.Client{Transport: archivehttp.NewTransport(nil, tape)}
	resp, err := recorder.Post(api.URL, "text/plain", strings.NewReader("question"))
	if err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		err = resp.Body.Close()
	}
	if err != nil {
		fmt.Println(err)
	}
	api.Close()

	player := &http.Client{Transport: &archivehttp.Player{Archive: tape}}
	resp, err = player.Post(api.URL, "text/plain", strings.NewReader("question"))
	if err != nil {
		fmt.Println(err)
		return
	}
	text, _ := io.ReadAll(resp.Body)
	fmt.Println(resp.Status, string(text), resp.Body.Close())
	_, err = player.Get(api.URL)
	fmt.Println(errors.Is(err, archivehttp.ErrNotRecorded))
	// Output:
	// 200 OK the answer to a POST <nil>
	// true
}
