package exact_test

import (
	"fmt"
	"os"

	"github.com/spinneret-go/spinneret/dedupe/exact"
)

func Example() {
	dir, err := os.MkdirTemp("", "exact")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	for range 2 { // the second time, it remembers
		seen, err := exact.Open(dir, exact.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, url := range []string{"https://example.com/", "https://example.com/a", "https://example.com/"} {
			added, err := seen.Add(url)
			fmt.Println(url, added, err)
		}
		if err := seen.Sync(); err != nil { // from here on, they survive a power failure
			fmt.Println(err)
		}
		if err := seen.Close(); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// https://example.com/ true <nil>
	// https://example.com/a true <nil>
	// https://example.com/ false <nil>
	// https://example.com/ false <nil>
	// https://example.com/a false <nil>
	// https://example.com/ false <nil>
}

// A crawler that is killed before it processed a new URL finds the URL among the entries. It only
// has to remember the number up to which it has processed them.
func ExampleSet_Entries() {
	dir, err := os.MkdirTemp("", "exact")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	seen, err := exact.Open(dir, exact.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer seen.Close()
	for _, url := range []string{"https://example.com/", "https://example.com/a", "https://example.com/b"} {
		if _, err := seen.Add(url); err != nil {
			fmt.Println(err)
		}
	}
	queued := uint64(1) // from a checkpoint
	for entry, err := range seen.Entries(queued) {
		fmt.Println("enqueue", entry.URL, err)
		queued = entry.Seq + 1
	}
	fmt.Println(seen.Trim(queued)) // the log may forget them
	// Output:
	// enqueue https://example.com/a <nil>
	// enqueue https://example.com/b <nil>
	// <nil>
}

// If answers may wait, one pass over the disk decides on many URLs.
func ExampleSet_Defer() {
	dir, err := os.MkdirTemp("", "exact")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	seen, err := exact.Open(dir, exact.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer seen.Close()
	next := uint64(0)
	for _, page := range [][]string{
		{"https://example.com/", "https://example.com/a", "https://example.com/"},
		{"https://example.com/b", "https://example.com/a"},
	} {
		for _, link := range page {
			if err := seen.Defer(link, nil); err != nil {
				fmt.Println(err)
			}
		}
		if err := seen.Merge(); err != nil {
			fmt.Println(err)
		}
		for entry, err := range seen.Entries(next) {
			fmt.Println(entry.Seq, entry.URL, err)
			next = entry.Seq + 1
		}
	}
	// Output:
	// 0 https://example.com/ <nil>
	// 1 https://example.com/a <nil>
	// 2 https://example.com/b <nil>
}
