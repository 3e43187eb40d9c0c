package replay_test

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
	"github.com/spinneret-go/spinneret/archive/replay"
)

func Example() {
	dir, _ := os.MkdirTemp("", "replay")
	defer os.RemoveAll(dir)
	a, _ := archive.Open(dir, archive.Options{})
	defer a.Close()
	for day, body := range []string{"<h1>Hello</h1>", "<h1>Goodbye</h1>"} {
		_, _ = a.Append(archive.Capture{
			URL:  "https://www.example.org/",
			Time: time.Date(2026, 11, 2+day, 9, 0, 0, 0, time.UTC),
			Head: []byte("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"),
			Body: []byte(body),
		})
	}
	server := httptest.NewServer(replay.New(a, replay.Options{}))
	defer server.Close()
	resp, err := http.Get(server.URL +
		"/diff?url=https://www.example.org/&a=20261102&b=latest&mode=text")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	page, _ := io.ReadAll(resp.Body)
	for _, word := range []string{"Hello", "Goodbye", "1 line removed"} {
		fmt.Println(word, strings.Contains(string(page), word))
	}
	// Output:
	// Hello true
	// Goodbye true
	// 1 line removed true
}

// The handler shares a server with other pages. Its addresses contain double slashes, which a
// ServeMux removes, so it comes before the mux.
func ExampleOptions() {
	dir, _ := os.MkdirTemp("", "replay")
	defer os.RemoveAll(dir)
	web, _ := archive.Open(dir, archive.Options{})
	defer web.Close()

	pages := replay.New(web, replay.Options{Base: "/archive", Title: "What we have seen"})
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "ours") })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/archive/") {
			pages.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	defer server.Close()

	resp, err := http.Get(server.URL + "/archive/")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	page, _ := io.ReadAll(resp.Body)
	fmt.Println(resp.StatusCode, strings.Contains(string(page), "What we have seen"))
	// Output: 200 true
}

// What changed on a page since yesterday?
func ExampleChanges() {
	dir, _ := os.MkdirTemp("", "replay")
	defer os.RemoveAll(dir)
	web, _ := archive.Open(dir, archive.Options{})
	defer web.Close()
	monday := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	for i, price := range []string{"12.00", "9.50"} {
		_, err := web.Append(archive.Capture{URL: "http://shop.test/1", Time: monday.AddDate(0, 0, i),
			Head: []byte("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"),
			Body: fmt.Appendf(nil, "<h1>A kettle</h1><p>Price: <b>%s</b><p>in stock", price)})
		if err != nil {
			fmt.Println(err)
		}
	}
	yesterday, err1 := web.At("http://shop.test/1", monday)
	today, err2 := web.At("http://shop.test/1", time.Time{})
	if err := errors.Join(err1, err2); err != nil {
		fmt.Println(err)
	}
	for piece, err := range replay.Changes(web, yesterday, today) {
		switch {
		case err != nil:
			fmt.Println(err)
		case piece.Kind == replay.Removed:
			fmt.Println("removed:", piece.Text)
		case piece.Kind == replay.Added:
			fmt.Println("added:  ", piece.Text)
		}
	}
	// Output:
	// removed: Price: 12.00
	// added:   Price: 9.50
}
