package clients

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/archivehttp"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// record fetches a page twice with a client that archives it.
func record(dir, url string) error {
	kept, err := archive.Open(dir, archive.Options{})
	if err != nil {
		return err
	}
	client := &http.Client{Transport: archivehttp.NewTransport(nil, kept)}
	for range 2 {
		resp, err := client.Get(url)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return err
		}
		if err := resp.Body.Close(); err != nil { // an error means that the record was not written
			return err
		}
	}
	return kept.Close()
}

// records counts the records of a WARC file by type.
func records(file string) (n map[string]int, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	n = map[string]int{}
	for record, err := range warc.NewReader(f, warc.ReaderOptions{Verify: true}).Records() {
		if err != nil {
			return n, err // for example warc.ErrDamaged
		}
		n[record.Type()]++
	}
	return n, nil
}

// lookUp finds a page in WARC files of other programs. The files stay where they are.
func lookUp(dir string, files []string, url string, at time.Time) (string, error) {
	kept, err := archive.Open(dir, archive.Options{})
	if err != nil {
		return "", err
	}
	defer kept.Close()
	if _, err := kept.Import(files...); err != nil {
		return "", err
	}
	version, err := kept.At(url, at)
	if err != nil {
		return "", err
	}
	body, err := kept.Body(version)
	return string(body), err
}

func Example_warc() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "hello")
	}))
	defer site.Close()
	dir, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(dir)

	fmt.Println(record(filepath.Join(dir, "one"), site.URL))
	files, _ := filepath.Glob(filepath.Join(dir, "one", "*.warc*"))
	fmt.Println(len(files))
	fmt.Println(records(files[0]))
	fmt.Println(lookUp(filepath.Join(dir, "two"), files, site.URL, time.Now()))
	// Output:
	// <nil>
	// 1
	// map[request:2 response:1 revisit:1 warcinfo:1] <nil>
	// hello <nil>
}
