//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// A prompt store answers immediately, for one URL at a time.
type prompt interface {
	store
	addNow(url string) (added bool, err error)
}

// A crawl is a recorded crawl: its URLs, and its links as indexes into them, in the order in which
// the crawler found them.
type crawl struct {
	urls  []string
	links []int32
}

// readCrawl reads the nodes and edges of a graph.
func readCrawl(dir string) (*crawl, error) {
	c := &crawl{}
	err := readColumn(dir, "*.nodes.tsv.zst", 2, func(url string) error {
		c.urls = append(c.urls, url)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c, readColumn(dir, "*.edges.tsv.zst", 1, func(id string) error {
		n, err := strconv.ParseUint(id, 10, 31)
		if err == nil && n >= uint64(len(c.urls)) {
			err = fmt.Errorf("link to %d of %d URLs", n, len(c.urls))
		}
		c.links = append(c.links, int32(n))
		return err
	})
}

func readColumn(dir, pattern string, column int, take func(string) error) error {
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(names) != 1 {
		return fmt.Errorf("want one file %s in %s, have %d", pattern, dir, len(names))
	}
	f, err := os.Open(names[0])
	if err != nil {
		return err
	}
	defer f.Close()
	in, err := zstd.NewReader(f)
	if err != nil {
		return err
	}
	defer in.Close()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		if len(fields) <= column {
			return fmt.Errorf("%s: %d fields", names[0], len(fields))
		}
		if err := take(strings.Clone(fields[column])); err != nil {
			return err
		}
	}
	return lines.Err()
}

// copied returns the URL in a copy of the crawl, which has the same pages on other hosts.
func copied(url string, copy int) string {
	scheme, rest, _ := strings.Cut(url, "://")
	return scheme + "://c" + strconv.Itoa(copy) + "." + rest
}

// compareLinks fills each store with copies of a crawl's URLs, and then adds the links of two
// crawls one at a time: a crawl whose URLs are all known, and a new one.
func compareLinks(out io.Writer, dir string, chosen []subject, c *crawl, o options, rounds int) error {
	fmt.Fprintf(out, "%d known URLs, %.1f MB of memory; then %d links, one at a time, all known, and as many of a new crawl\n",
		o.urls, float64(o.memory)/1e6, len(c.links))
	fmt.Fprintf(out, "%-8s %12s %10s %12s %10s %10s\n", "store", "known/s", "CPU ns", "new/s", "CPU ns", "slowest ms")
	all := map[string][][2]measurement{}
	for range rounds {
		for _, s := range chosen {
			m, err := measureLinks(s, dir, c, o)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			all[s.name] = append(all[s.name], m)
			printLinks(out, s.name, m, len(c.links))
		}
	}
	fmt.Fprintln(out, "medians")
	for _, s := range chosen {
		var m [2]measurement
		for phase := range m {
			var rounds []measurement
			for _, r := range all[s.name] {
				rounds = append(rounds, r[phase])
			}
			m[phase] = median(rounds)
		}
		printLinks(out, s.name, m, len(c.links))
	}
	return nil
}

func printLinks(out io.Writer, name string, m [2]measurement, links int) {
	n := float64(links)
	fmt.Fprintf(out, "%-8s %12.0f %10.0f %12.0f %10.0f %10.1f\n", name, n/m[0].took.Seconds(),
		float64(m[0].cpu)/n, n/m[1].took.Seconds(), float64(m[1].cpu)/n,
		max(m[0].slowest, m[1].slowest).Seconds()*1e3)
}

func measureLinks(s subject, parent string, c *crawl, o options) (m [2]measurement, err error) {
	dir, err := os.MkdirTemp(parent, s.name)
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(dir)
	opened, err := s.open(dir, o)
	if err != nil {
		return m, err
	}
	st, copies := opened.(prompt), 0
	for known := 0; known < o.urls; copies++ {
		for _, url := range c.urls {
			if err := st.add(copied(url, copies)); err != nil {
				return m, err
			}
		}
		known += len(c.urls)
	}
	if err := st.flush(); err != nil {
		return m, err
	}
	for phase, number := range []int{0, copies} {
		urls := make([]string, len(c.urls))
		for i, url := range c.urls {
			urls[i] = copied(url, number)
		}
		if m[phase], err = addLinks(st, urls, c.links); err != nil {
			return m, err
		}
	}
	if m[0].found != 0 {
		return m, fmt.Errorf("%d known URLs were new", m[0].found)
	}
	_, err = st.finish()
	return m, err
}

func addLinks(st prompt, urls []string, links []int32) (m measurement, err error) {
	before, err := usage()
	if err != nil {
		return m, err
	}
	start := time.Now()
	last := start
	for i, link := range links {
		added, err := st.addNow(urls[link])
		if err != nil {
			return m, err
		}
		if added {
			m.found++
		}
		if i%8 == 0 { // reading the clock costs as much as the fastest calls
			now := time.Now()
			m.slowest = max(m.slowest, now.Sub(last))
			last = now
		}
	}
	m.took = time.Since(start)
	after, err := usage()
	m.cpu = after.cpu - before.cpu
	return m, err
}
