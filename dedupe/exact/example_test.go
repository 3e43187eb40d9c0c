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

	next := uint64(0)
	for _, links := range [][]string{
		{"https://example.com/", "https://example.com/a", "https://example.com/"},
		{"https://example.com/b", "https://example.com/a"},
	} {
		set, err := exact.Open(dir, exact.Options{}) // as a crawl that was stopped does
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, link := range links {
			err = set.Add(link, nil)
		}
		if err == nil {
			err = set.Merge()
		}
		for entry, err := range set.Entries(next) {
			fmt.Println(entry.Seq, entry.URL, err)
			next = entry.Seq + 1
		}
		if err := set.Close(); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// 0 https://example.com/ <nil>
	// 1 https://example.com/a <nil>
	// 2 https://example.com/b <nil>
}
