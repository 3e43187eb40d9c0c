// Command hostcache compares package hostcache with Go's map and with trees, with values of 16
// bytes: memory per entry, the time of put and get, a scan, and the cost of a garbage collection.
//
// Each round builds every structure again, one after the other, so that all of them see the same
// noise. The table shows the medians of the rounds.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/internal/bench/measure"
)

func main() {
	hosts := flag.Int("n", 1_000_000, "`number` of host names")
	rounds := flag.Int("rounds", 5, "`number` of rounds; the table has the medians")
	chosen := flag.String("structures", "map,sharded map,btree,radix,trie,cache", "`names` of the structures to measure")
	file := flag.String("hosts", filepath.Join(os.Getenv("SPINNERET_DATA"), "hosts.txt.zst"),
		"`file` of host names, one per line, compressed with zstd")
	flag.Parse()
	if err := run(*hosts, *rounds, strings.Split(*chosen, ","), *file); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(n, rounds int, chosen []string, file string) error {
	names, err := hostNames(file, n)
	if err != nil {
		return err
	}
	works := map[bool]workload{true: newWorkload(names, strings.Clone), false: newWorkload(names, reversed)}
	raw := float64(len(names.text))/float64(n) + 16
	fmt.Printf("%d hosts, %.2f bytes of key and value\n", n, raw)
	var seen measure.Results
	for round := range rounds {
		for _, name := range chosen {
			if makers[name] == nil {
				return fmt.Errorf("unknown structure %q", name)
			}
			plain := makers[name]().plain
			f := works[plain].measure(makers[name])
			seen.Add(name, f[:]...)
			fmt.Fprintf(os.Stderr, "round %d of %d: %s: %.1f\n", round+1, rounds, name, f)
		}
	}
	return report(chosen, &seen, raw)
}

// figures are the measurements, in the order of columns. A missing one is negative.
type figures [len(columns)]float64

var columns = [...]string{
	"B/entry", "own count", "put ns", "hit ns", "miss ns", "scan M/s", "gc ms",
}

func report(chosen []string, seen *measure.Results, raw float64) error {
	out := measure.Columns()
	fmt.Fprintf(out, "structure\t%s\tof raw\t\n", strings.Join(columns[:], "\t"))
	for _, name := range chosen {
		fmt.Fprintf(out, "%s\t", name)
		medians := seen.Medians(name)
		for _, median := range medians {
			if median < 0 {
				fmt.Fprint(out, "–\t")
			} else {
				fmt.Fprintf(out, "%.4g\t", median)
			}
		}
		fmt.Fprintf(out, "%.2f\t\n", medians[0]/raw)
	}
	return out.Flush()
}

type workload struct{ keys, present, absent nameList }

func newWorkload(names nameList, spell func(string) string) workload {
	keys := names.shuffled(1, spell)
	return workload{
		keys:    keys,
		present: keys.shuffled(2, strings.Clone),
		absent: keys.shuffled(3, func(key string) string {
			return key[:len(key)-1] + "~"
		}),
	}
}

func (w workload) measure(make func() structure) (f figures) {
	n := w.keys.len()
	bytesBefore, gcBefore := live()
	s := make()
	f[2] = timed(n, func(i int) { s.put(w.keys.at(i), value{byte(i), 1}) })
	bytes, gc := live()
	f[0] = (bytes - bytesBefore) / float64(n)
	f[1], f[5] = -1, -1
	if s.reports != nil {
		f[1] = float64(s.reports()) / float64(n)
	}
	found := 0
	f[3] = timed(n, func(i int) { found += b2i(s.get(w.present.at(i))) })
	f[4] = timed(n, func(i int) { found += b2i(s.get(w.absent.at(i))) })
	if found != n {
		panic(fmt.Sprintf("%d of %d names were found", found, n))
	}
	if s.prefix != nil {
		start := time.Now()
		hosts := s.prefix("com.")
		f[5] = float64(hosts) / time.Since(start).Seconds() / 1e6
	}
	f[6] = max(0, (gc-gcBefore).Seconds()*1000)
	runtime.KeepAlive(s)
	return f
}

// timed returns the nanoseconds per call of n calls.
func timed(n int, f func(i int)) float64 {
	start := time.Now()
	for i := range n {
		f(i)
	}
	return float64(time.Since(start).Nanoseconds()) / float64(n)
}

// live returns the bytes in use, and the minimum time of a garbage collection.
func live() (bytes float64, gc time.Duration) {
	gc = time.Hour
	for range 4 {
		start := time.Now()
		runtime.GC()
		gc = min(gc, time.Since(start))
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc), gc
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
