package archive_test

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// object is the URL of a file, such as one in S3, on a server that supports range requests.
type object string

// size returns the length of the file.
func (o object) size() (int64, error) {
	resp, err := http.Head(string(o))
	if err != nil {
		return 0, err
	}
	return resp.ContentLength, resp.Body.Close()
}

// ReadAt requests a range.
func (o object) ReadAt(p []byte, at int64) (int, error) {
	req, err := http.NewRequest(http.MethodGet, string(o), nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", at, at+int64(len(p))-1))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusPartialContent:
	case http.StatusRequestedRangeNotSatisfiable:
		return 0, io.EOF
	default:
		return 0, fmt.Errorf("%s: %s", o, resp.Status)
	}
	n, err := io.ReadFull(resp.Body, p)
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	return n, err
}

// A WARC file stays on its HTTP server. Reads are range requests.
func ExampleOptions_openImport() {
	file := warcFile("http://www.example.org/", "hello from afar")
	bucket := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "crawl.warc.gz", time.Time{}, bytes.NewReader(file))
	}))
	defer bucket.Close()
	dir, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(dir)

	web, err := archive.Open(dir, archive.Options{
		OpenImport: func(name string) (io.ReaderAt, int64, error) {
			size, err := object(name).size()
			return object(name), size, err
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer web.Close()
	found, err := web.Import(bucket.URL + "/crawl.warc.gz")
	fmt.Println(found.Versions, err)
	version, _ := web.At("http://www.example.org/", time.Time{})
	body, err := web.Body(version)
	fmt.Println(string(body), err)
	// Output:
	// 1 <nil>
	// hello from afar <nil>
}

// warcFile returns a file as another program might write it.
func warcFile(url, body string) []byte {
	var file bytes.Buffer
	encoder, _ := warc.NewEncoder(warc.EncoderOptions{})
	sum := sha1.Sum([]byte(body))
	_, _, _ = encoder.Encode(&file, &warc.Head{Type: "resource", TargetURI: url, Payload: &sum,
		Date: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), ContentType: "text/plain"}, []byte(body))
	return file.Bytes()
}
