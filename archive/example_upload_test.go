package archive_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spinneret-go/spinneret/archive"
)

// bucket is a server that keeps objects as S3 does: PUT /bucket/key stores one. It stands for a real one,
// which needs signed requests: the SDK of its vendor sends them.
type bucket struct {
	mu      sync.Mutex
	objects map[string]int // sizes by key
}

// ServeHTTP implements http.Handler.
func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPut || int64(len(body)) != r.ContentLength {
		http.Error(w, "PutObject needs a body of its Content-Length", http.StatusBadRequest)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.objects[strings.TrimPrefix(r.URL.Path, "/")] = len(body)
}

func (b *bucket) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.objects)
}

// put uploads a file under its name.
func put(url, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPut, url+"/"+filepath.Base(path), f)
	if err != nil {
		return err
	}
	req.ContentLength = info.Size() // S3 takes no chunked bodies
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("upload %s: %s", path, resp.Status)
	}
	return nil
}

// Each file is uploaded when it is finished, and never changes after that. A call may be missing after a
// crash, so a program compares [archive.Archive.Files] with the bucket when it starts.
func ExampleOptions_upload() {
	stored := &bucket{objects: map[string]int{}}
	server := httptest.NewServer(stored)
	defer server.Close()
	dir, _ := os.MkdirTemp("", "archive")
	defer os.RemoveAll(dir)

	web, err := archive.Open(dir, archive.Options{MaxFile: 1, Finished: func(path string) {
		if err := put(server.URL+"/crawl", path); err != nil {
			log.Print(err) // the next start uploads it
		}
	}})
	if err != nil {
		log.Fatal(err)
	}
	for day := range 3 {
		_, _ = web.Append(visited("https://www.example.org/", monday.AddDate(0, 0, day), "hello"))
	}
	fmt.Println(stored.count(), web.Close(), stored.count())
	// Output: 2 <nil> 3
}
