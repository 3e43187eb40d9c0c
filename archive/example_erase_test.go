package archive_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/spinneret-go/spinneret/archive"
)

// erase removes all versions of a page, and proves that the rest of the archive is what it was.
func erase(ctx context.Context, dir, url, reason string) (erased int, err error) {
	web, err := archive.Open(dir, archive.Options{})
	if err != nil {
		return 0, err
	}
	defer web.Close()
	done, err := web.Erase(ctx, archive.Selection{URL: url}, reason)
	if err != nil {
		return done.Erased, err
	}
	proof, err := web.Verify(ctx, func(f archive.Fault) { log.Print(f) })
	if err == nil && proof.Faults > 0 {
		err = fmt.Errorf("%d faults in %s", proof.Faults, dir)
	}
	return done.Erased, err
}

// Example_erase is the program of docs/erasure.md.
func Example_erase() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	web, err := archive.Open(dir, archive.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for n, url := range []string{"https://a.example/me", "https://a.example/you", "https://a.example/me"} {
		if _, err := web.Append(archive.Capture{
			URL: url, Time: time.Date(2026, 1, 1+n, 0, 0, 0, 0, time.UTC),
			Head: []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"), Body: []byte("my telephone number"),
		}); err != nil {
			log.Fatal(err)
		}
	}
	if err := web.Close(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(erase(context.Background(), dir, "https://a.example/me", "asked by the author"))
	// Output: 2 <nil>
}
