// Command archive compares package archive with the minimum work for the same task:
//
//	go run ./archive write
//	go run ./archive read
//
// write appends pages of 20 KB to a disk, by one and by two goroutines, compared with compressing
// and writing the same records with and without hashing. read reads and checks records, compared
// with decompressing and hashing them.
//
// Each round runs all subjects in random order. The medians are printed.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/internal/bench/measure"
)

// options are the flags of the command.
type options struct {
	dir           string
	pages, rounds int
}

// A contest has the subjects to compare. Each processes all pages.
type contest []subject

type subject struct {
	name string
	run  func() error
}

func main() {
	log.SetFlags(0)
	var o options
	flag.StringVar(&o.dir, "dir", os.TempDir(), "`directory` on the disk to measure")
	flag.IntVar(&o.pages, "pages", 400, "`number` of pages")
	flag.IntVar(&o.rounds, "rounds", 25, "`number` of rounds")
	flag.Parse()
	if flag.NArg() == 0 {
		log.Fatal("archive: no measurement given: want write or read")
	}
	for _, what := range flag.Args() {
		run, ok := map[string]func(options) error{"write": write, "read": read}[what]
		if !ok {
			log.Fatalf("archive: unknown measurement %q: want write or read", what)
		}
		if err := run(o); err != nil {
			log.Fatal(err)
		}
	}
}

// compare runs the subjects in turn, and prints the medians of their speeds, in MB per second and
// per CPU second of all cores, each with its ratio to the first subject. Each round has a random
// order, because the disk, or the host of a virtual machine, caches the reads of the previous subject
// below the page cache.
func (c contest) compare(what string, o options) error {
	var all measure.Results
	r := rand.New(rand.NewPCG(5, 6))
	megabytes := float64(bodies(o.pages)) / 1e6
	for range o.rounds {
		for _, i := range r.Perm(len(c)) {
			runtime.GC() // the garbage of one subject must not slow down the next
			began, computed := time.Now(), measure.CPU()
			if err := c[i].run(); err != nil {
				return fmt.Errorf("%s: %s: %w", what, c[i].name, err)
			}
			all.Add(c[i].name, megabytes/time.Since(began).Seconds(), megabytes/(measure.CPU()-computed).Seconds())
		}
	}
	for _, s := range c {
		speed, first := all.Medians(s.name), c[0].name
		fmt.Printf("%-9s %-30s %8.1f MB/s %5.2f  %8.1f MB/CPU-s %5.2f\n", what, s.name,
			speed[0], all.Ratio(s.name, first, 0), speed[1], all.Ratio(s.name, first, 1))
	}
	return nil
}

// sample is the number of different pages; more would only use memory.
const sample = 500

// pages are captures of 20 KB that compress to about a third. They are made once, outside of any
// measurement.
var pages = sync.OnceValue(makePages)

func makePages() []archive.Capture {
	r := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 4000)
	for i := range words {
		word := make([]byte, 2+r.IntN(9))
		for j := range word {
			word[j] = byte('a' + r.IntN(26))
		}
		words[i] = string(word)
	}
	zipf := rand.NewZipf(r, 1.2, 4, uint64(len(words)-1))
	list := make([]archive.Capture, sample)
	for i := range list {
		var body bytes.Buffer
		for body.Len() < 20_000 {
			fmt.Fprintf(&body, "<p class=\"text\"><a href=\"/%s/%x.html\">%s</a>",
				words[zipf.Uint64()], r.Uint32(), words[zipf.Uint64()])
			for range 20 {
				body.WriteString(words[zipf.Uint64()] + " ")
			}
		}
		list[i] = archive.Capture{
			Time: time.Unix(1.8e9, int64(i)*1000), Body: body.Bytes(),
			Head: []byte("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"),
		}
	}
	return list
}

// fill creates an archive of n pages.
func fill(dir string, n int, o archive.Options) (*archive.Archive, error) {
	a, err := archive.Open(dir, o)
	if err != nil {
		return nil, err
	}
	for i := range n {
		c := capture(i)
		if _, err := a.Append(c); err != nil {
			return nil, err
		}
	}
	return a, a.Sync()
}

// capture returns page i, with a unique URL on one of a thousand hosts.
func capture(i int) archive.Capture {
	c := pages()[i%sample]
	c.URL = fmt.Sprintf("http://%d.example.org/%d.html", i*7919%1000, i)
	return c
}

// compressions are the ones to compare.
var compressions = []struct {
	name string
	warc.Compression
}{{"gzip", warc.Gzip}, {"zstd", warc.Zstd}}
