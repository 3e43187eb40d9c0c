package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/crawl"
	"github.com/spinneret-go/spinneret/internal/vweb"
)

// A trialCrawl is what scaling is measured with.
type trialCrawl struct {
	hosts, pages, requests int
	latency                time.Duration
	brokers, parts         int
}

// benchScaling crawls a virtual web with more and more processes. What a process can do is limited
// by how many requests it has under way, and each takes a fixed time: so processes that would need
// a machine each can be had on one.
func benchScaling(fs *flag.FlagSet) action {
	var s trialCrawl
	fs.IntVar(&s.hosts, "hosts", 400, "hosts of the virtual web, each with an address of its own")
	fs.IntVar(&s.pages, "pages", 25, "pages of a host")
	fs.IntVar(&s.requests, "requests", 4, "requests that a process has under way")
	fs.DurationVar(&s.latency, "latency", 40*time.Millisecond, "that each request takes")
	fs.IntVar(&s.brokers, "brokers", 1, "1, or 3 with as many replicas")
	fs.IntVar(&s.parts, "parts", crawl.DefaultParts, "partitions of each module")
	list := fs.String("processes", "1,2,4,8", "how many processes to measure with")
	return func(ctx context.Context, _ []string, out, log io.Writer) error {
		var counts []int
		for text := range strings.SplitSeq(*list, ",") {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				return fmt.Errorf("%w: -processes %q", errUsage, *list)
			}
			counts = append(counts, n)
		}
		fmt.Fprintln(out, "processes  pages  twice  seconds  pages/s  of ideal")
		ideal := float64(s.requests) / s.latency.Seconds()
		for _, n := range counts {
			pages, twice, took, err := s.run(ctx, n, log)
			if err != nil {
				return err
			}
			rate := float64(pages) / took.Seconds()
			fmt.Fprintf(out, "%9d  %5d  %5d  %7.2f  %7.1f  %8.2f\n",
				n, pages, twice, took.Seconds(), rate, rate/(ideal*float64(n)))
		}
		return nil
	}
}

// run crawls the web once. Time is that between the first and the last tenth of the pages: to begin
// and to end takes time that a crawl of weeks does not notice.
func (s trialCrawl) run(
	ctx context.Context, n int, log io.Writer,
) (pages, twice int, took time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	web, port, err := s.serve()
	if err != nil {
		cancel()
		return 0, 0, 0, err
	}
	defer web.Close()
	urls, stop, err := servers(ctx, s.brokers, log)
	if err != nil {
		cancel()
		return 0, 0, 0, err
	}
	defer stop()
	defer cancel()
	bus, err := reach(ctx, urls, s.brokers, 256<<20)
	if err != nil {
		return 0, 0, 0, err
	}
	defer bus.Close()
	c, err := crawl.Create(ctx, bus, crawl.Options{
		DedupeParts: s.parts, HostsParts: s.parts, FetchParts: s.parts,
		Delay: -1, Loopback: true, MaxDepth: -1,
	})
	if err != nil {
		return 0, 0, 0, err
	}
	dir, err := os.MkdirTemp("", "cluster-bench-")
	if err != nil {
		return 0, 0, 0, err
	}
	defer os.RemoveAll(dir)
	members, err := s.members(ctx, n, dir, urls, web, port, log)
	defer func() {
		cancel()
		for _, m := range members {
			_ = m.Wait() // it was told to end
		}
	}()
	if err != nil {
		return 0, 0, 0, err
	}
	for host := range web.Hosts() {
		if err := c.Seed(ctx, []string{host.URL()}); err != nil {
			return 0, 0, 0, err
		}
		break
	}
	// To look at all partitions costs the broker something, so it is not done all the time.
	if err := c.Wait(ctx, 500*time.Millisecond); err != nil {
		return 0, 0, 0, err
	}
	pages, twice, took = middle(web)
	return pages, twice, took, nil
}

// serve starts the web on a port that is free.
func (s trialCrawl) serve() (web *vweb.Web, port int, err error) {
	for port = 23000; port < 23100; port++ {
		web, err = vweb.Start(vweb.Options{
			Seed: 6, Hosts: s.hosts, Pages: s.pages, Port: port,
			Traits: func(int) vweb.Traits {
				return vweb.Traits{
					Latency: vweb.Latency{Median: s.latency},
					Robots:  vweb.Robots{Mode: vweb.RobotsMissing},
				}
			},
		})
		if err == nil {
			return web, port, nil
		}
	}
	return nil, 0, err
}

// members starts the processes.
func (s trialCrawl) members(
	ctx context.Context, n int, dir, urls string, web *vweb.Web, port int, log io.Writer,
) (members []*exec.Cmd, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var table strings.Builder
	for host := range web.Hosts() {
		fmt.Fprintln(&table, host.Addr, host.Name)
	}
	hosts := filepath.Join(dir, "hosts")
	if err := os.WriteFile(hosts, []byte(table.String()), 0o666); err != nil {
		return nil, err
	}
	for i := range n {
		name := fmt.Sprintf("p%d", i)
		m := program(ctx, self, log, "run", "-nats", urls, "-name", name,
			"-dir", filepath.Join(dir, name), "-requests", strconv.Itoa(s.requests),
			"-hosts", hosts, "-web-port", strconv.Itoa(port))
		if err := m.Start(); err != nil {
			return members, err
		}
		members = append(members, m)
	}
	return members, nil
}

// middle counts the requests but for the first and the last tenth, and how long they took.
func middle(web *vweb.Web) (pages, twice int, took time.Duration) {
	var at []time.Time
	seen := map[string]bool{}
	for _, r := range web.Log() {
		if url := r.URL(); web.IsPage(url) {
			at = append(at, r.Time)
			if seen[url] {
				twice++
			}
			seen[url] = true
		}
	}
	tenth := len(at) / 10
	if tenth == 0 {
		return len(at), twice, time.Nanosecond
	}
	inner := at[tenth : len(at)-tenth]
	return len(inner), twice, inner[len(inner)-1].Sub(inner[0])
}
