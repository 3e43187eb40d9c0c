//go:build linux

// Command dedupe compares a Set of package dedupe/exact with two key-value stores that answer the
// same question, "which of these URLs are new?", about the same stream of URLs:
//
//	go run ./dedupe -urls 1e6 -sightings 1e7 -rounds 5
//
// The stream is the worst case for all of them. URLs are drawn uniformly, so that a cache of recent
// URLs does not help, and most sightings are of known URLs, which only the disk can confirm. Each
// store may use 1/20 of the total size of the URLs, syncs at the end of each batch, and keeps the
// new URLs in the order of their first sighting. The page cache of the system would be additional
// memory, so the files are dropped from it after each tenth of the number of URLs; -bounded=false
// leaves them there.
//
// Each round measures all stores, one after the other. The medians are printed at the end.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"time"
	"unsafe"

	"github.com/spinneret-go/spinneret/internal/bench/measure"
)

// A store decides which URLs are new.
type store interface {
	add(url string) error
	finish() (found uint64, err error) // decides on pending URLs and closes the store
	unmap() error                      // drops mapped files from memory
}

// A subject is a kind of store that is measured.
type subject struct {
	name string
	open func(dir string, o options) (store, error)
}

var subjects = []subject{{"exact", openExact}, {"bbolt", openBolt}, {"pebble", openPebble}}

type options struct {
	urls, sightings int
	memory          int64
	bounded         bool
}

func main() {
	log.SetFlags(0)
	urls := flag.Float64("urls", 1e5, "`number` of distinct URLs")
	sightings := flag.Float64("sightings", 1e6, "`number` of sightings of them")
	bounded := flag.Bool("bounded", true, "keep files out of the page cache")
	rounds := flag.Int("rounds", 1, "`number` of rounds")
	dir := flag.String("dir", "", "`directory` for the files; empty means the system's")
	flag.Parse()
	o := options{urls: int(*urls), sightings: int(*sightings), bounded: *bounded}
	o.memory = int64(o.urls * meanURL / 20)
	if err := compare(os.Stdout, *dir, subjects, o, *rounds); err != nil {
		log.Fatal(err)
	}
}

// compare prints each round as it is measured, and then the medians and ratios.
func compare(out io.Writer, dir string, chosen []subject, o options, rounds int) error {
	fmt.Fprintf(out, "%d sightings of %d URLs, %.1f MB of memory; figures are per sighting\n",
		o.sightings, o.urls, float64(o.memory)/1e6)
	fmt.Fprintf(out, "%-8s %12s %10s %10s %10s %9s %10s\n", "store", "sightings/s", "ns",
		"CPU ns", "read B", "written B", "peak MB")
	all := make([][]measurement, len(chosen))
	for range rounds {
		for i, s := range chosen {
			m, err := measureStream(s, dir, o)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			all[i] = append(all[i], m)
			m.print(out, s.name, float64(o.sightings))
		}
	}
	fmt.Fprintln(out, "medians by time, and multiples of the first store's time")
	for i, s := range chosen {
		m := median(all[i])
		m.print(out, s.name, float64(o.sightings))
		first := median(all[0])
		fmt.Fprintf(out, "%-8s %6.1f x, in CPU time %6.1f x\n", "",
			m.took.Seconds()/first.took.Seconds(), m.cpu.Seconds()/first.cpu.Seconds())
	}
	return nil
}

// A measurement is the cost of the whole stream in one store.
type measurement struct {
	took, cpu     time.Duration
	read, written int64 // bytes, by system calls, without mapped memory
	peak          int64 // bytes of resident memory
	found         uint64
}

func (m measurement) print(out io.Writer, name string, n float64) {
	fmt.Fprintf(out, "%-8s %12.0f %10.0f %10.0f %10.1f %9.1f %10.1f\n", name, n/m.took.Seconds(),
		float64(m.took)/n, float64(m.cpu)/n, float64(m.read)/n, float64(m.written)/n,
		float64(m.peak)/1e6)
}

func median(all []measurement) measurement {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b measurement) int {
		return cmp.Compare(a.took, b.took)
	})
	return sorted[len(sorted)/2]
}

func measureStream(s subject, parent string, o options) (m measurement, err error) {
	dir, err := os.MkdirTemp(parent, s.name)
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(dir)
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // resets the peak of memory
		return m, err
	}
	read, written, err := transfers()
	if err != nil {
		return m, err
	}
	start, computed := time.Now(), measure.CPU()
	if m.found, err = run(s, dir, o); err != nil {
		return m, err
	}
	m.took, m.cpu = time.Since(start), measure.CPU()-computed
	if m.read, m.written, err = transfers(); err != nil {
		return m, err
	}
	m.read, m.written = m.read-read, m.written-written
	m.peak, err = measure.ProcNumber("/proc/self/status", "VmHWM")
	m.peak *= 1024
	return m, err
}

// transfers returns the bytes that this process has read and written by system calls.
func transfers() (read, written int64, err error) {
	read, err1 := measure.ProcNumber("/proc/self/io", "rchar")
	written, err2 := measure.ProcNumber("/proc/self/io", "wchar")
	return read, written, errors.Join(err1, err2)
}

// meanURL is the length of the URLs of the stream, a typical one.
const meanURL = len(urlStart) + 10

const urlStart = "https://www.example.test/articles/2026/11/21/some-title-of-the-usual-length/"

// run passes the stream to a store. It is the same stream each time. The buffer of a URL is reused,
// so that garbage collection of URLs does not count.
func run(s subject, dir string, o options) (found uint64, err error) {
	st, err := s.open(dir, o)
	if err != nil {
		return 0, err
	}
	random := rand.New(rand.NewPCG(1, 0))
	url := []byte(urlStart + "0000000000")
	for i := range o.sightings {
		if o.bounded && i%max(o.urls/10, 1) == 0 {
			if err := errors.Join(st.unmap(), measure.DropPages(dir)); err != nil {
				return 0, err
			}
		}
		n := random.IntN(o.urls)
		for i := len(url) - 1; i >= len(urlStart); i-- {
			url[i] = '0' + byte(n%10)
			n /= 10
		}
		if err := st.add(unsafe.String(&url[0], len(url))); err != nil {
			return 0, err
		}
	}
	return st.finish()
}
