package archive_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spinneret-go/spinneret/archive"
)

func Example() {
	dir, _ := os.MkdirTemp("", "archive")
	defer os.RemoveAll(dir)
	a, err := archive.Open(dir, archive.Options{
		Info: map[string]string{"operator": "Example Crawls, crawl@example.org", "robots": "obey"},
	})
	if err != nil {
		log.Fatal(err)
	}
	_, err = a.Append(archive.Capture{
		URL:     "https://www.example.org/",
		Time:    time.Now(),
		Request: []byte("GET / HTTP/1.1\r\nHost: www.example.org\r\n\r\n"),
		Head:    []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"),
		Body:    []byte("hello"),
	})
	fmt.Println(err, a.Stats().Captures, a.Stats().Records)
	fmt.Println(a.Close())
	// Output:
	// <nil> 1 2
	// <nil>
}

// A location is enough to read one response, here with nothing but the standard library.
func ExampleLocation() {
	dir, _ := os.MkdirTemp("", "archive")
	defer os.RemoveAll(dir)
	a, _ := archive.Open(dir, archive.Options{})
	loc, _ := a.Append(archive.Capture{
		URL: "https://www.example.org/", Time: time.Date(2026, 11, 3, 0, 0, 0, 0, time.UTC),
		Head: []byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
		Body: []byte("hello"),
	})
	_ = a.Close()

	f, _ := os.Open(filepath.Join(dir, loc.File))
	defer f.Close()
	member, _ := gzip.NewReader(io.NewSectionReader(f, loc.Offset, loc.Length))
	record := bufio.NewReader(member)
	for {
		line, _, err := record.ReadLine()
		if err != nil || len(line) == 0 { // the end of the record's header
			break
		}
	}
	resp, _ := http.ReadResponse(record, nil)
	body, err := io.ReadAll(resp.Body)
	fmt.Println(resp.Status, string(body), err)
	// Output: 200 OK hello <nil>
}

// An archive fills files up to a size. Those that are finished are never touched again.
func ExampleArchive_Files() {
	dir, _ := os.MkdirTemp("", "archive")
	defer os.RemoveAll(dir)
	a, _ := archive.Open(dir, archive.Options{Prefix: "daily", MaxFile: 1000})
	for range 3 {
		_, _ = a.Append(archive.Capture{
			URL: "https://www.example.org/", Time: time.Now(),
			Head: []byte("HTTP/1.1 404 Not Found\r\n\r\n"),
		})
	}
	files, _ := a.Files()
	for _, name := range files {
		fmt.Println(name[:len("daily-20")], filepath.Ext(name))
	}
	fmt.Println(a.Close())
	// Output:
	// daily-20 .gz
	// daily-20 .open
	// <nil>
}
