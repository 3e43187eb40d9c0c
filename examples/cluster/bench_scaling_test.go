package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/crawl"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
	"github.com/spinneret-go/spinneret/examples/internal/graphweb"
	"github.com/spinneret-go/spinneret/fetch/webtest"
)

// A trialCrawl has the parameters of a crawl that measures scaling.
type trialCrawl struct {
	hosts, pages, requests int
	latency                time.Duration
	brokers, parts         int

	graph *graphweb.Graph // nil for a generated web
	seeds []string        // of the graph
}

// An outcome is the result of one crawl.
type outcome struct {
	expected, fetched, twice int // pages
	missing                  []string
	inner                    int // pages without the first and the last tenth
	took                     time.Duration
	urls, hosts, sites       string // deviations of the processes' shares
	heap                     uint64 // the largest live heap of a process
}

// benchScaling crawls a virtual web with more and more processes. Each process is limited to a
// number of requests in flight, and each request takes a fixed time. So one machine can stand for
// several.
func benchScaling(fs *flag.FlagSet) action {
	var s trialCrawl
	dir := fs.String("graph", defaultGraph(),
		"`directory` of a real link graph; \"\" for a generated web")
	limit := fs.Int("limit", 6000, "maximum pages of the graph, the nearest ones")
	perHost := fs.Int("host-pages", 100, "maximum pages per host of the graph")
	fs.IntVar(&s.hosts, "hosts", 400, "hosts of a generated web, each with an address of its own")
	fs.IntVar(&s.pages, "pages", 25, "pages per host of a generated web")
	fs.IntVar(&s.requests, "requests", 4, "maximum requests in flight per process")
	fs.DurationVar(&s.latency, "latency", 40*time.Millisecond, "duration of each request")
	fs.IntVar(&s.brokers, "brokers", 1, "1, or 3 with as many replicas")
	fs.IntVar(&s.parts, "parts", crawl.DefaultParts, "partitions of each module")
	list := fs.String("processes", "1,2,4,8", "numbers of processes to measure with")
	return func(ctx context.Context, _ []string, out, log io.Writer) error {
		var counts []int
		for text := range strings.SplitSeq(*list, ",") {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				return fmt.Errorf("%w: -processes %q", errUsage, *list)
			}
			counts = append(counts, n)
		}
		if *dir != "" {
			whole, err := readGraph(*dir)
			if err != nil {
				return err
			}
			s.graph, s.seeds = whole.Part(*limit, *perHost)
			fmt.Fprintf(out, "%s: %d of %d pages, at most %d per host, from %d seeds\n",
				*dir, s.graph.Len(), whole.Len(), *perHost, len(s.seeds))
		}
		return s.table(ctx, counts, out, log)
	}
}

// table crawls with each number of processes, and writes a row for each.
func (s trialCrawl) table(ctx context.Context, counts []int, out, log io.Writer) error {
	fmt.Fprintln(out, "processes  expected  fetched  missing  twice  seconds  pages/s  of ideal"+
		"  most heap    URLs by URL      hosts by host    URLs by host")
	ideal := float64(s.requests) / s.latency.Seconds()
	for _, n := range counts {
		o, err := s.run(ctx, n, log)
		if err != nil {
			return err
		}
		for _, url := range o.missing {
			fmt.Fprintf(log, "missing: %s\n", url)
		}
		rate := float64(o.inner) / o.took.Seconds()
		fmt.Fprintf(out, "%9d  %8d  %7d  %7d  %5d  %7.2f  %7.1f  %8.2f  %9s    %s  %s  %s\n",
			n, o.expected, o.fetched, len(o.missing), o.twice, o.took.Seconds(), rate,
			rate/(ideal*float64(n)), mebibytes(o.heap), o.urls, o.hosts, o.sites)
	}
	fmt.Fprintln(out, "(the last three: shares of the processes, largest deviation and standard "+
		"deviation, relative to the mean)")
	return nil
}

// run crawls the web once. The measured time excludes the first and the last tenth of the pages:
// starting and ending takes time that does not matter in a crawl of weeks.
func (s trialCrawl) run(ctx context.Context, n int, log io.Writer) (o outcome, err error) {
	web, seeds, port, err := s.serve()
	if err != nil {
		return o, err
	}
	defer web.Close()
	urls, stop, err := servers(ctx, s.brokers, log)
	if err != nil {
		return o, err
	}
	defer stop()
	bus, err := reach(ctx, urls, s.brokers, 256<<20)
	if err != nil {
		return o, err
	}
	defer bus.Close()
	c, err := crawl.Create(ctx, bus, crawl.Options{
		Parts: s.parts,
		Delay: -1, Loopback: true, MaxDepth: -1,
	})
	if err != nil {
		return o, err
	}
	dir, err := os.MkdirTemp("", "cluster-bench-")
	if err != nil {
		return o, err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(ctx) // of the processes, which end before the brokers
	members, err := s.members(ctx, n, dir, urls, web, port, log)
	defer func() {
		cancel()
		for _, m := range members {
			_ = m.Wait() // it was interrupted
		}
	}()
	if err != nil {
		return o, err
	}
	if err := allThere(ctx, c, n); err != nil {
		return o, err
	}
	if err := c.Seed(ctx, seeds); err != nil {
		return o, err
	}
	// Reading all partitions loads the broker, so it is done rarely.
	if err := c.Wait(ctx, 500*time.Millisecond); err != nil {
		return o, err
	}
	o = outcomeOf(web, seeds)
	return o, o.shares(ctx, c, web.Reachable(seeds...), n)
}

// allThere waits until each process has its share of the partitions, as the assignment of
// partitions is not part of the measurement.
func allThere(ctx context.Context, c *crawl.Crawl, n int) error {
	for {
		owners, free := map[string]bool{}, 0
		parts, _, _, err := c.Look(ctx)
		if err != nil {
			return err
		}
		for _, p := range parts {
			if p.Owner == "" {
				free++
			}
			owners[p.Owner] = true
		}
		if free == 0 && len(owners) >= min(n, len(parts)) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// shares records the largest heap, and the share of each of n processes: a URL counts for the owner
// of its partition of dedupe, a host for the owner of its partition of hosts. If whole sites were
// assigned, a URL would count for the owner of its host.
func (o *outcome) shares(ctx context.Context, c *crawl.Crawl, urls []string, n int) error {
	parts, _, _, err := c.Look(ctx)
	if err != nil {
		return err
	}
	_, members, _, err := c.Look(ctx)
	if err != nil {
		return err
	}
	for _, m := range members {
		o.heap = max(o.heap, m.Heap)
	}
	owners := map[message.Module][]string{}
	for _, p := range parts { // in order
		owners[p.To] = append(owners[p.To], p.Owner)
	}
	byURL, byHost, bySite := map[string]int{}, map[string]int{}, map[string]int{}
	seen := map[string]bool{}
	for _, url := range urls {
		host := weburl.Host(url)
		owner := owners[message.Hosts][message.Part(host, c.Parts)]
		byURL[owners[message.Dedupe][message.Part(url, c.Parts)]]++
		bySite[owner]++
		if !seen[host] {
			seen[host] = true
			byHost[owner]++
		}
	}
	counts := func(shares map[string]int) []int {
		all := slices.Collect(maps.Values(shares))
		return append(all, make([]int, max(0, n-len(all)))...) // 0 for the other processes
	}
	o.urls, o.hosts = deviation(counts(byURL), n), deviation(counts(byHost), n)
	o.sites = deviation(counts(bySite), n)
	return nil
}

// serve starts the web on a free port.
func (s trialCrawl) serve() (web site, seeds []string, port int, err error) {
	for port = 23000; port < 23100; port++ {
		if s.graph != nil {
			web, err = graphweb.Start(s.graph, graphweb.Options{Port: port, Latency: s.latency})
		} else {
			web, err = webtest.Start(webtest.Options{
				Seed: 6, Hosts: s.hosts, Pages: s.pages, Port: port,
				Traits: func(int) webtest.Traits {
					return webtest.Traits{
						Latency: webtest.Latency{Median: s.latency},
						Robots:  webtest.Robots{Mode: webtest.RobotsMissing},
					}
				},
			})
		}
		if err != nil {
			continue
		}
		if s.graph != nil {
			return web, s.seeds, port, nil
		}
		for host := range web.Hosts() {
			return web, []string{host.URL()}, port, nil
		}
	}
	return nil, nil, 0, err
}

// hostsFile returns the hosts of the web in the format of /etc/hosts.
func hostsFile(web site) []byte {
	var table []byte
	for host := range web.Hosts() {
		table = fmt.Appendln(table, host.Addr, host.Name)
	}
	return table
}

// members starts the processes.
func (s trialCrawl) members(
	ctx context.Context, n int, dir, urls string, web site, port int, log io.Writer,
) (members []*exec.Cmd, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	hosts := filepath.Join(dir, "hosts")
	if err := os.WriteFile(hosts, hostsFile(web), 0o666); err != nil {
		return nil, err
	}
	for i := range n {
		name := fmt.Sprintf("p%d", i)
		m := program(ctx, self, log, "run", "-nats", urls, "-name", name,
			"-dir", filepath.Join(dir, name), "-commit", "200ms", "-requests", strconv.Itoa(s.requests),
			"-hosts", hosts, "-web-port", strconv.Itoa(port))
		if err := m.Start(); err != nil {
			return members, err
		}
		members = append(members, m)
	}
	return members, nil
}

// outcomeOf compares the requests that the server received with the reachable pages.
func outcomeOf(web site, seeds []string) (o outcome) {
	o.expected = len(web.Reachable(seeds...))
	var at []time.Time
	seen := map[string]bool{}
	for _, r := range web.Log() {
		if url := r.URL(); web.IsPage(url) {
			at = append(at, r.Time)
			if seen[url] {
				o.twice++
			}
			seen[url] = true
		}
	}
	for _, url := range web.Reachable(seeds...) {
		if !seen[url] {
			o.missing = append(o.missing, url)
		}
	}
	o.fetched, o.inner, o.took = len(seen), len(at), time.Nanosecond
	if tenth := len(at) / 10; tenth > 0 {
		inner := at[tenth : len(at)-tenth]
		o.inner, o.took = len(inner), inner[len(inner)-1].Sub(inner[0])
	}
	return o
}
