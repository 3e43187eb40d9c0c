// Command robots compares package robots/robotstxt with temoto/robotstxt, the other matcher in Go
// that crawlers use: the cost of a check and of parsing a file, and the memory of the result.
//
//	go run ./robots
//
// Each round measures both on every file, one after the other, so that both see the same noise. The
// table shows the medians of the rounds. jimsmart/grobotstxt, a port of Google's parser, is
// omitted: it parses the file for each check, so a check includes the cost of parsing.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	ours "github.com/spinneret-go/spinneret/robots/robotstxt"
	"github.com/temoto/robotstxt"
)

func main() {
	rounds := flag.Int("rounds", 5, "`number` of rounds; the table has the medians")
	budget := flag.Duration("time", 100*time.Millisecond, "time for each figure in a round")
	only := flag.String("file", "", "name of a real robots.txt to measure as well")
	flag.Parse()
	files := made()
	if *only != "" {
		body, err := os.ReadFile(*only)
		if err != nil {
			fmt.Fprintln(os.Stderr, "robots:", err)
			os.Exit(1)
		}
		files = append(files, file{*only, body})
	}
	if err := run(files, *rounds, *budget); err != nil {
		fmt.Fprintln(os.Stderr, "robots:", err)
		os.Exit(1)
	}
}

// An engine parses a file for one agent and returns a function that checks the n-th path. One
// engine takes URLs and the other paths; both are prepared in advance.
type engine struct {
	name  string
	parse func(body []byte) (allowed func(n int) bool, keep any, err error)
}

var engines = []engine{
	{"robots", func(body []byte) (func(int) bool, any, error) {
		f := ours.Parse(body)
		rules := f.Rules("examplebot")
		return func(n int) bool { return rules.Allowed(urls[n%len(urls)]) }, f, nil
	}},
	{"temoto", func(body []byte) (func(int) bool, any, error) {
		data, err := robotstxt.FromBytes(body)
		if err != nil {
			return nil, nil, err
		}
		group := data.FindGroup("examplebot")
		return func(n int) bool { return group.Test(paths[n%len(paths)]) }, data, nil
	}},
}

// figures are the measurements of one engine on one file.
type figures struct{ check, allocs, parse, live float64 }

func run(files []file, rounds int, budget time.Duration) error {
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "file\tbytes\tengine\tcheck ns\tallocs\tparse us\tlive bytes\tcheck, times\tparse, times\t")
	for _, f := range files {
		seen := map[string][]figures{}
		for range rounds {
			for _, e := range engines {
				got, err := measure(e, f.body, budget)
				if err != nil {
					return fmt.Errorf("%s: %s: %w", f.name, e.name, err)
				}
				seen[e.name] = append(seen[e.name], got)
			}
		}
		own := medians(seen[engines[0].name])
		for _, e := range engines {
			m := medians(seen[e.name])
			fmt.Fprintf(out, "%s\t%d\t%s\t%.0f\t%.1f\t%.1f\t%.0f\t%.2f\t%.2f\t\n", f.name, len(f.body), e.name,
				m.check, m.allocs, m.parse/1000, m.live, m.check/own.check, m.parse/own.parse)
		}
	}
	return out.Flush()
}

func medians(all []figures) figures {
	of := func(field func(figures) float64) float64 {
		var values []float64
		for _, f := range all {
			values = append(values, field(f))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return figures{
		of(func(f figures) float64 { return f.check }), of(func(f figures) float64 { return f.allocs }),
		of(func(f figures) float64 { return f.parse }), of(func(f figures) float64 { return f.live }),
	}
}

// measure counts the first check as part of parse, since robots compiles rules on demand.
func measure(e engine, body []byte, budget time.Duration) (f figures, err error) {
	f.parse, _ = timed(budget, func() {
		allowed, _, parseErr := e.parse(body)
		if err = parseErr; err == nil {
			allowed(0)
		}
	})
	if err != nil {
		return f, err
	}
	before := heap()
	allowed, keep, _ := e.parse(body)
	allowed(0)
	f.live = heap() - before
	n := 0
	f.check, f.allocs = timed(budget, func() {
		allowed(n)
		n++
	})
	runtime.KeepAlive(keep)
	return f, nil
}

// timed returns the CPU nanoseconds, including garbage collection, and the allocations of a call of
// f. It calls f at least once, until the budget is used up.
func timed(budget time.Duration, f func()) (ns, allocs float64) {
	var before, after runtime.MemStats
	f()
	runtime.ReadMemStats(&before)
	start, calls := cpuTime(), 0
	took := time.Duration(0)
	for batch := 1; took < budget; batch = min(2*batch, 1000) {
		for range batch {
			f()
		}
		calls += batch
		took = cpuTime() - start
	}
	runtime.ReadMemStats(&after)
	return float64(took.Nanoseconds()) / float64(calls), float64(after.Mallocs-before.Mallocs) / float64(calls)
}

// cpuTime returns the CPU time so far. The call does not fail.
func cpuTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// A file is a robots.txt file, with a name for its kind.
type file struct {
	name string
	body []byte
}

// made returns files of typical sizes, and a hostile one that fills half a megabyte with rules with
// wildcards.
func made() []file {
	var typical, shop, hostile strings.Builder
	typical.WriteString("# Please be gentle.\nUser-agent: *\nCrawl-delay: 2\n")
	for _, name := range strings.Fields(`admin account basket bin cache checkout cgi-bin compare
		customer downloads feeds includes login logout media modules newsletter orders print profiles
		review search sendfriend wishlist`) {
		typical.WriteString("Disallow: /" + name + "/\n")
	}
	typical.WriteString("Allow: /media/\nAllow: /search/about\nDisallow: /*?session=\n" +
		"Disallow: /*/trackback/\nDisallow: /*.inc$\n")
	shop.WriteString("User-agent: *\n")
	for i := range 94 {
		fmt.Fprintf(&shop, "Disallow: /shop/%c%c/department-%d/\n", 'a'+i%26, 'a'+i%7, i)
	}
	for i := range 10 {
		fmt.Fprintf(&shop, "Disallow: /*/part-%d/*.html\nDisallow: /*?page%d=\nAllow: /shop/*/item-%d$\n", i, i, i)
	}
	hostile.WriteString("User-agent: *\n")
	for i := 0; hostile.Len() < ours.MaxSize; i++ {
		fmt.Fprintf(&hostile, "disallow:/*a%d*b$\n", i)
	}
	return []file{
		{"small", []byte("User-agent: *\nDisallow: /admin/\nDisallow: /login\n")},
		{"29 rules", []byte(typical.String())},
		{"124 rules", []byte(shop.String())},
		{"hostile", []byte(hostile.String())},
	}
}

var urls = func() (urls []string) {
	for _, path := range paths {
		urls = append(urls, "https://www.example.com"+path)
	}
	return urls
}()

var paths = []string{
	"/", "/blog/2024/05/how-we-bake-bread", "/orders/4711/details",
	"/shop/shoes/running/model-x?colour=red&size=42", "/search/about",
	"/shop/cart.php?session=0123456789abcdef", "/wiki/%E6%97%A5%E6%9C%AC%E8%AA%9E",
	"/media/img/photo-0001.jpg",
}
