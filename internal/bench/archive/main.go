// Command archive compares package archive with the minimum work for the same task:
//
//	go run ./archive write
//	go run ./archive read
//	go run ./archive share
//	go run ./archive -site DIR -pages 2500 -rounds 5 levels
//	go run ./archive -pages 1000000 -rounds 5 snapshot
//	go run ./archive -entries 1000000 -rounds 3 -old /tmp/older life
//	go run ./archive -workers 2 -rounds 3 -svg figure2.svg scan
//
// write appends pages of 20 KB to a disk, by one and by two goroutines, compared with compressing
// and writing the same records with and without hashing. read reads and checks records, compared
// with decompressing and hashing them. levels encodes the HTML pages under a directory with each
// level of each compression. snapshot reads the documents of a snapshot from a disk with an empty
// page cache, compared with reading the same bytes from one file, reading all files sequentially,
// and following the pointers in the order of the index. life runs a whole workload on an archive,
// interleaved with an older version of this package: filling an index in random order, appending,
// lookups alone and during writes, the slowest single calls, opening after a crash, and lookups of
// a page with many visits. scan runs an analysis in child processes and in goroutines. Documents
// are assigned statically, one by one, or one ahead, as in Figure 2 of Tamura and Kitsuregawa's
// paper. It prints the utilization of the workers, until 98 % of the documents were done and until
// the end, and plots it over time. For a child process, utilization is its CPU time; for a
// goroutine, the time from the start of a document to its end, even if its core was doing something
// else. So compare utilization only within a kind, and seconds between kinds.
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
	"slices"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// options are the flags of the command.
type options struct {
	dir     string
	pages   int
	rounds  int
	workers int
	entries int
	svg     string
	old     string
	site    string
}

// A contest has the subjects to compare, by name. Each returns the number of bytes it processed.
type contest []subject

type subject struct {
	name    string
	run     func() (int64, error)
	prepare func() error // called before each run, not measured; may be nil
}

// speeds are the measurements of a subject, in MB per second and per CPU second of all cores.
type speeds struct{ wall, cpu []float64 }

func main() {
	if os.Getenv(childEnv) != "" {
		serve()
		return
	}
	log.SetFlags(0)
	var o options
	flag.StringVar(&o.dir, "dir", os.TempDir(), "`directory` on the disk to measure")
	flag.IntVar(&o.pages, "pages", 400, "`number` of pages")
	flag.IntVar(&o.rounds, "rounds", 25, "`number` of rounds")
	flag.IntVar(&o.workers, "workers", 2, "`number` of workers of a scan")
	flag.IntVar(&o.entries, "entries", 1_000_000, "`number` of entries in the index")
	flag.StringVar(&o.old, "old", "", "`directory` with the code of an older version, for life")
	flag.StringVar(&o.site, "site", "", "`directory` of HTML pages, for levels")
	flag.StringVar(&o.svg, "svg", "", "`file` for a drawing of the workers of a scan")
	flag.Parse()
	if flag.NArg() == 0 {
		log.Fatal("archive: no measurement given: want write, read, levels, snapshot, scan, life or share")
	}
	for _, what := range flag.Args() {
		measure, ok := map[string]func(options) error{
			"write": write, "read": read, "snapshot": snapshot, "scan": scanAll, "life": life,
			"share": share, "levels": levels}[what]
		if !ok {
			log.Fatalf("archive: unknown measurement %q", what)
		}
		if err := measure(o); err != nil {
			log.Fatal(err)
		}
	}
}

// compare runs the subjects in turn, and prints the medians and their ratios to the first subject.
// Each round has a random order, because the disk, or the host of a virtual machine, caches the
// reads of the previous subject below the page cache. A ratio is the median of the ratios in all
// rounds, since the load of the machine changes between rounds: many short rounds show differences
// of a few percent that few long rounds do not.
func (c contest) compare(what string, rounds int) error {
	all := make([]speeds, len(c))
	r := rand.New(rand.NewPCG(5, 6))
	for range rounds {
		for _, i := range r.Perm(len(c)) {
			if c[i].prepare != nil {
				if err := c[i].prepare(); err != nil {
					return fmt.Errorf("%s: %s: %w", what, c[i].name, err)
				}
			}
			runtime.GC() // the garbage of one subject must not slow down the next
			began, computed := time.Now(), cpuUsed()
			n, err := c[i].run()
			if err != nil {
				return fmt.Errorf("%s: %s: %w", what, c[i].name, err)
			}
			all[i].wall = append(all[i].wall, float64(n)/1e6/time.Since(began).Seconds())
			all[i].cpu = append(all[i].cpu, float64(n)/1e6/(cpuUsed()-computed).Seconds())
		}
	}
	for i, s := range c {
		fmt.Printf("%-9s %-30s %8.1f MB/s %5.2f  %8.1f MB/CPU-s %5.2f\n", what, s.name,
			median(all[i].wall), ratio(all[i].wall, all[0].wall),
			median(all[i].cpu), ratio(all[i].cpu, all[0].cpu))
	}
	return nil
}

// ratio returns the median of the ratios of all rounds.
func ratio(values, first []float64) float64 {
	ratios := make([]float64, len(values))
	for i := range values {
		ratios[i] = values[i] / first[i]
	}
	return median(ratios)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
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
