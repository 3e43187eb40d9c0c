package exact_test

import (
	"bytes"
	"fmt"
	"os"

	"github.com/spinneret-go/spinneret/dedupe"
	"github.com/spinneret-go/spinneret/dedupe/exact"
)

// A frontier says of each URL once that it is to be fetched. Most are told at once, as a Filter that
// calls a URL new is always right. Where it says "old" it may be wrong, and the Set has the last
// word, at the next settling.
type frontier struct {
	seen  *dedupe.Filter
	set   *exact.Set
	next  uint64 // entry of the set, to be kept with what is fetched
	fetch func(url string)
}

// What an entry of the set needs to have stored with it.
var told, asked = []byte("told"), []byte("asked")

// admit takes a link in.
func (f *frontier) admit(url string) error {
	if !f.seen.Add(url) {
		return f.set.Add(url, asked)
	}
	if err := f.set.Add(url, told); err != nil {
		return err
	}
	f.fetch(url)
	return nil
}

// settle is for a time.Ticker, whose period is then the longest that a URL waits. It costs nothing
// if no URL came, and little if the Set knows all that did.
func (f *frontier) settle() error {
	if err := f.set.Merge(); err != nil {
		return err
	}
	for entry, err := range f.set.Entries(f.next) {
		if err != nil {
			return err
		}
		if bytes.Equal(entry.Data, asked) { // the Filter was wrong
			f.fetch(entry.URL)
		}
		f.next = entry.Seq + 1
	}
	return nil
}

// resume fills the Filter with what the Set knows when a crawl goes on. After a crash, what came
// since the last settling is in neither, and is told again when it is met again.
func (f *frontier) resume() error {
	for entry, err := range f.set.Entries(0) {
		if err != nil {
			return err
		}
		f.seen.Add(entry.URL)
	}
	return nil
}

// A Filter answers at once and is rarely wrong, a Set is never wrong and answers a little later.
// Together, they lose no URL and hold hardly any up.
func ExampleSet() {
	dir, err := os.MkdirTemp("", "exact")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	fetched := map[string]int{}
	for range 2 { // the second time, the crawl was stopped and goes on
		set, err := exact.Open(dir, exact.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		f := &frontier{
			// Far too small for all URLs, to show what happens then.
			seen:  dedupe.New(dedupe.Options{Capacity: 1000, Rate: 0.1, MaxBytes: -1, Recent: -1}),
			set:   set,
			next:  uint64(len(fetched)),
			fetch: func(url string) { fetched[url]++ },
		}
		err = f.resume()
		for i := 0; i < 5000 && err == nil; i++ {
			err = f.admit(fmt.Sprintf("https://example.com/%d", i*7%3000))
			if i%1000 == 999 && err == nil {
				err = f.settle()
			}
		}
		fmt.Println(len(fetched), "URLs fetched,", err)
		fmt.Println("some of them lost by the Filter:", f.seen.Len() < 3000)
		if err := set.Close(); err != nil {
			fmt.Println(err)
		}
	}
	for url, times := range fetched {
		if times != 1 {
			fmt.Println(url, "was fetched", times, "times")
		}
	}
	// Output:
	// 3000 URLs fetched, <nil>
	// some of them lost by the Filter: true
	// 3000 URLs fetched, <nil>
	// some of them lost by the Filter: true
}
