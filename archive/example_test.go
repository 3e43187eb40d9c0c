package archive_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/scan"
	"github.com/spinneret-go/spinneret/archive/warc"
)

var monday = time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)

// visited returns the capture of a visit.
func visited(url string, at time.Time, body string) archive.Capture {
	return archive.Capture{
		URL:     url,
		Time:    at,
		Request: []byte("GET / HTTP/1.1\r\nHost: www.example.org\r\n\r\n"),
		Head:    []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"),
		Body:    []byte(body),
	}
}

func Example() {
	dir, _ := os.MkdirTemp("", "archive")
	defer os.RemoveAll(dir)
	a, err := archive.Open(dir, archive.Options{
		Info: map[string]string{"operator": "Example Crawls, crawl@example.org", "robots": "obey"},
	})
	if err != nil {
		log.Fatal(err)
	}
	const url = "https://www.example.org/"
	for day, text := range []string{"hello", "hello", "goodbye"} {
		_, err = a.Append(visited(url, monday.AddDate(0, 0, day), text))
	}
	v, _ := a.At(url, monday.AddDate(0, 0, 1).Add(12*time.Hour)) // on Tuesday evening
	rec, _ := a.Read(v.Content)
	message, _ := rec.HTTP()
	text, _ := io.ReadAll(message.Body)
	fmt.Println(err, v.Kind, v.Time.Weekday(), "until", v.Until.Weekday(), string(text))
	fmt.Println(rec.Close(), a.Close())
	// Output:
	// <nil> unchanged Tuesday until Wednesday hello
	// <nil> <nil>
}

func ExampleArchive_Versions() {
	dir, _ := os.MkdirTemp("", "archive")
	defer os.RemoveAll(dir)
	a, _ := archive.Open(dir, archive.Options{})
	defer a.Close()
	for day, text := range []string{"one", "one", "two"} {
		_, _ = a.Append(visited("https://www.example.org/", monday.AddDate(0, 0, day), text))
	}
	versions, err := a.Versions("https://www.example.org/")
	for _, v := range versions {
		fmt.Println(v.Time.Format(time.DateOnly), v.Kind, v.Status, v.Media)
	}
	fmt.Println(err)
	// Output:
	// 2026-11-02 changed 200 text/plain
	// 2026-11-03 unchanged 200 text/plain
	// 2026-11-04 changed 200 text/plain
	// <nil>
}

// Pages in files of other crawlers are found by URL and time too. The files are not copied.
func ExampleArchive_Import() {
	dir, _ := os.MkdirTemp("", "archive")
	defer os.RemoveAll(dir)
	foreign := filepath.Join(dir, "other-crawler.warc.gz")
	out, _ := os.Create(foreign)
	enc, _ := warc.NewEncoder(warc.EncoderOptions{})
	_, _, _ = enc.Encode(out, &warc.Head{Type: "resource", Date: monday, ContentType: "text/plain",
		TargetURI: "https://www.example.org/"}, []byte("hello"))
	_ = out.Close()

	a, _ := archive.Open(filepath.Join(dir, "archive"), archive.Options{})
	found, err := a.Import(foreign)
	fmt.Println(found.Versions, err)
	v, err := a.At("https://www.example.org/", monday)
	fmt.Println(v.Media, filepath.Base(v.Location.File), err)
	_ = os.Remove(foreign)
	fmt.Println(len(a.Missing()), a.Close())
	// Output:
	// 1 <nil>
	// text/plain other-crawler.warc.gz <nil>
	// 1 <nil>
}

// A snapshot is a site as it was at a time. Here a function of this process analyzes it;
// scan.Command would use child processes.
func ExampleSnapshot_Scan() {
	dir, _ := os.MkdirTemp("", "archive")
	defer os.RemoveAll(dir)
	a, _ := archive.Open(dir, archive.Options{})
	defer a.Close()
	for day, text := range []string{"some words", "some more words"} {
		_, _ = a.Append(visited("https://www.example.org/a", monday.AddDate(0, 0, day), text))
		_, _ = a.Append(visited("https://www.example.net/", monday.AddDate(0, 0, day), text))
	}
	s, _ := a.Snapshot(archive.Query{Site: "example.org", To: monday.AddDate(0, 0, 1)})
	defer s.Close()
	count := scan.Func(func(doc *scan.Document) ([]byte, error) {
		rec, err := warc.NewReader(bytes.NewReader(doc.Data), warc.ReaderOptions{}).Next()
		if err != nil {
			return nil, err
		}
		message, err := rec.HTTP()
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(message.Body)
		return fmt.Appendf(nil, "%d words", len(bytes.Fields(text))), err
	})
	for result, err := range s.Scan(context.Background(), count, scan.Options{}) {
		fmt.Println(result.Value.(archive.Version).URL, string(result.Out), result.Err, err)
	}
	// Output: https://www.example.org/a 2 words <nil> <nil>
}

// An archive writes files up to a maximum size. Finished files never change.
func ExampleArchive_Files() {
	dir, _ := os.MkdirTemp("", "archive")
	defer os.RemoveAll(dir)
	a, _ := archive.Open(dir, archive.Options{MaxFile: 1})
	for day := range 2 {
		_, _ = a.Append(visited("https://www.example.org/", monday.AddDate(0, 0, day), "hello"))
	}
	files, _ := a.Files()
	for _, name := range files {
		fmt.Println(name[:len("spinneret-20")], filepath.Ext(name))
	}
	fmt.Println(a.Close())
	// Output:
	// spinneret-20 .gz
	// spinneret-20 .open
	// <nil>
}
