package viewer_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/examples/internal/viewer"
)

func Example() {
	dir, _ := os.MkdirTemp("", "viewer")
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
	server := httptest.NewServer(viewer.New(a, viewer.Options{}))
	defer server.Close()
	resp, err := http.Get(server.URL + "/diff?url=https://www.example.org/&a=20261102&b=latest&mode=text")
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
