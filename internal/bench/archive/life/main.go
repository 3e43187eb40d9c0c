// Command life simulates the life of one archive, and prints its measurements as JSON. It only uses
// functions that package archive has had since its first version, because the benchmark in the
// parent directory also builds it against an older version, to compare both in one run.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/archive"
)

// Seen contains the measurements.
type Seen struct {
	FillPerSecond   float64 // entries imported in random order
	IndexBytes      float64 // per entry
	AppendPerSecond float64 // captures of 2 KB, while nothing else runs
	AtMicros        float64 // median of a lookup, while nothing else runs
	BusyAtMicros    float64 // median of a lookup, during appends and imports
	WorstAt         float64 // milliseconds
	WorstAppend     float64 // milliseconds
	Recovery        float64 // seconds of Open after a crash
	VisitedAt       float64 // microseconds of At after 20,000 unchanged visits of one page
	VisitedAppend   float64 // microseconds of Append then
}

const lookups = 100_000

func main() {
	log.SetFlags(0)
	dir, entries := os.Args[1], 0
	if _, err := fmt.Sscan(os.Args[2], &entries); err != nil {
		log.Fatal(err)
	}
	if len(os.Args) > 3 {
		check(die(dir, entries))
		os.Exit(1) // like a crash: nothing is closed
	}
	var s Seen
	check(s.fill(dir, entries))
	check(s.live(dir, entries))
	check(s.visits(filepath.Join(dir, "visits")))
	check(s.crash(filepath.Join(dir, "crash"), entries/20))
	check(json.NewEncoder(os.Stdout).Encode(s))
}

func check(err error) {
	if err != nil {
		log.Fatal("life: ", err)
	}
}

func url(i int) string {
	return fmt.Sprintf("http://www.host-%05d.example.org/some/path/of-usual-length/%04d.html", i%5003, i/5003)
}

// write makes a file of n tiny records whose URLs are in random order.
func write(name string, first, n int) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	for i := range n {
		at := time.Unix(1.7e9+int64(i), 0).UTC().Format(time.RFC3339)
		fmt.Fprintf(w, "WARC/1.1\r\nWARC-Type: resource\r\nWARC-Record-ID: <urn:uuid:%032x>\r\n"+
			"WARC-Date: %s\r\nWARC-Target-URI: %s\r\nWARC-Payload-Digest: sha1:%040x\r\n"+
			"Content-Type: text/html\r\nContent-Length: 1\r\n\r\nx\r\n\r\n", first+i, at,
			url(scatter(first+i)), rand.Uint64())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

// scatter is an injective function that looks random.
func scatter(i int) int { return (i * 7_368_787) % 15_485_863 }

// fill imports entries at random places of the index, as in a crawl.
func (s *Seen) fill(dir string, entries int) error {
	const part = 500_000
	a, err := archive.Open(filepath.Join(dir, "a"), archive.Options{})
	if err != nil {
		return err
	}
	took := time.Duration(0)
	for first := 0; first < entries; first += part {
		name := filepath.Join(dir, fmt.Sprintf("%d.warc", first))
		if err := write(name, first, min(part, entries-first)); err != nil {
			return err
		}
		began := time.Now()
		if _, err := a.Import(name); err != nil {
			return err
		}
		took += time.Since(began)
	}
	began := time.Now()
	if err := a.Close(); err != nil {
		return err
	}
	s.FillPerSecond = float64(entries) / (took + time.Since(began)).Seconds()
	files, err := filepath.Glob(filepath.Join(dir, "a", "index*"))
	for _, name := range files {
		if info, err := os.Stat(name); err == nil {
			s.IndexBytes += float64(info.Size()) / float64(entries)
		}
	}
	return err
}

func capture(i int, body []byte) archive.Capture {
	return archive.Capture{URL: fmt.Sprintf("http://new-%d.example.org/%d", i%997, i), Time: time.Now(),
		Head: []byte("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"), Body: body}
}

func page(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	var body []byte
	for len(body) < 2000 {
		body = fmt.Appendf(body, "<p>%x word ", r.Uint32())
	}
	return body
}

// live looks up and appends, first separately and then concurrently, until the index is written.
func (s *Seen) live(dir string, entries int) error {
	a, err := archive.Open(filepath.Join(dir, "a"), archive.Options{Level: 1})
	if err != nil {
		return err
	}
	began := time.Now()
	const alone = 10_000
	for i := range alone {
		if _, err := a.Append(capture(i, page(uint64(i)))); err != nil {
			return err
		}
	}
	s.AppendPerSecond = alone / time.Since(began).Seconds()
	if s.AtMicros, _, err = ask(a, entries, func() bool { return false }); err != nil {
		return err
	}
	const together = 150_000 // more than the index buffers in memory
	var done atomic.Bool
	var all sync.WaitGroup
	var failed error
	all.Go(func() {
		defer done.Store(true)
		bodies := [][]byte{page(1), page(2), page(3)}
		for i := alone; i < alone+together && failed == nil; i++ {
			c := capture(i, bodies[i%3])
			began := time.Now()
			_, failed = a.Append(c)
			s.WorstAppend = max(s.WorstAppend, time.Since(began).Seconds()*1e3)
		}
	})
	s.BusyAtMicros, s.WorstAt, err = ask(a, entries, func() bool { return !done.Load() })
	all.Wait()
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	return a.Close()
}

// ask makes at least lookups calls of At, and continues as long as more returns true.
func ask(a *archive.Archive, entries int, more func() bool) (median, worst float64, err error) {
	var took []float64
	for i := 0; i < lookups || more(); i++ {
		u := url(scatter(rand.IntN(entries)))
		began := time.Now()
		if _, err := a.At(u, time.Time{}); err != nil {
			return 0, 0, fmt.Errorf("%s: %w", u, err)
		}
		took = append(took, time.Since(began).Seconds()*1e6)
	}
	slices.Sort(took)
	return took[len(took)/2], took[len(took)-1] / 1e3, nil
}

// visits records many unchanged visits of one page.
func (s *Seen) visits(dir string) error {
	a, err := archive.Open(dir, archive.Options{Level: 1})
	if err != nil {
		return err
	}
	c := capture(1, page(1))
	visit := func() error {
		c.Time = c.Time.Add(time.Second)
		_, err := a.Append(c)
		return err
	}
	for range 20_000 {
		if err := visit(); err != nil {
			return err
		}
	}
	const n = 200
	began := time.Now()
	for range n {
		if _, err := a.At(c.URL, time.Time{}); err != nil {
			return err
		}
	}
	s.VisitedAt = time.Since(began).Seconds() * 1e6 / n
	began = time.Now()
	for range n {
		if err := visit(); err != nil {
			return err
		}
	}
	s.VisitedAppend = time.Since(began).Seconds() * 1e6 / n
	return a.Close()
}

// die appends n captures and leaves the archive open, so that its index may lack them.
func die(dir string, n int) error {
	a, err := archive.Open(dir, archive.Options{Level: 1})
	for i := 0; i < n && err == nil; i++ {
		_, err = a.Append(capture(i, page(uint64(i))))
	}
	return err
}

// crash opens an archive after its process has died.
func (s *Seen) crash(dir string, n int) error {
	n = min(n, 100_000)
	_ = exec.Command(os.Args[0], dir, fmt.Sprint(n), "die").Run() // which ends with an error
	began := time.Now()
	a, err := archive.Open(dir, archive.Options{})
	if err != nil {
		return err
	}
	s.Recovery = time.Since(began).Seconds()
	if _, err := a.At(capture(n-1, nil).URL, time.Time{}); err != nil {
		return fmt.Errorf("after the crash: %w", err)
	}
	return a.Close()
}
