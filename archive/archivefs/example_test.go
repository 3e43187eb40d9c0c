package archivefs_test

import (
	"fmt"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/archivefs"
)

// A site as of Monday is read like a directory.
func Example() {
	dir, _ := os.MkdirTemp("", "archivefs")
	defer os.RemoveAll(dir)
	a, _ := archive.Open(dir, archive.Options{})
	defer a.Close()
	monday := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	visited := func(path string, at time.Time, body string) {
		_, err := a.Append(archive.Capture{URL: "https://www.example.org" + path, Time: at,
			Head: []byte("HTTP/1.1 200 OK\r\n\r\n"), Body: []byte(body)})
		if err != nil {
			log.Fatal(err)
		}
	}
	visited("/", monday, "home")
	visited("/news/", monday, "old news")
	visited("/news/?page=2", monday, "older news")
	visited("/news/", monday.AddDate(0, 0, 1), "new news")
	fsys := archivefs.New(a, "example.org", monday)
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(fsys, name)
		fmt.Printf("%s: %s\n", name, text)
		return err
	})
	fmt.Println(err)
	// Output:
	// www.example.org/index.html: home
	// www.example.org/news/#3Fpage=2: older news
	// www.example.org/news/index.html: old news
	// <nil>
}

// Hostile pages of the archive are contained by the headers that Handler sends with them.
func ExampleHandler() {
	dir, _ := os.MkdirTemp("", "archivefs")
	defer os.RemoveAll(dir)
	a, _ := archive.Open(dir, archive.Options{})
	defer a.Close()
	now := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	_, err := a.Append(archive.Capture{URL: "https://a.test/x.html", Time: now,
		Head: []byte("HTTP/1.1 200 OK\r\n\r\n"), Body: []byte("<script>steal()</script>")})
	if err != nil {
		log.Fatal(err)
	}
	w := httptest.NewRecorder()
	archivefs.Handler(archivefs.New(a, "a.test", now)).ServeHTTP(w, httptest.NewRequest("GET", "/a.test/x.html", nil))
	fmt.Println(w.Code, strings.HasSuffix(w.Header().Get("Content-Security-Policy"), "sandbox"))
	// Output: 200 true
}
