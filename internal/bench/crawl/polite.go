package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Five hundred hosts share fifty addresses. The median latency is 50 ms, and three seconds for one
// response in 20. A crawler that leaves a second between two requests to an address can make fifty
// requests a second.
const (
	politeHosts, politeAddrs = 500, 50
	politePages              = 50
	politePause              = time.Second
	politeTime               = time.Minute
	politeLatency            = 50 * time.Millisecond

	// This is an upper bound for the time in which a request reaches the web on the same machine. A
	// crawler that waits for the first byte of each response, which proves that the request has
	// arrived, cannot exceed 0.83 of the ideal rate.
	politeArrival = 25 * time.Millisecond

	// A request is early if it follows the previous one by less than the delay minus this slack: a
	// request that is slightly late, followed by one on time, is not a violation.
	politeSlack = 50 * time.Millisecond
)

// runPolite runs each crawler for a minute. From the web's log it counts the requests, and those
// that were too early for their host or address.
func (b *bench) runPolite(only string) (err error) {
	remove, err := b.prepare()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	b.hosts, b.addrs, b.pages, b.size = politeHosts, politeAddrs, politePages, 4096
	b.latency, b.limit = politeLatency, politeTime
	seeds, err := b.seeds()
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(out, "crawler\trequests/s\tof the ideal\ttoo early for the host\tfor the address\tleast gap\t\n")
	for _, e := range wanted(b.politeEngines(seeds), only) {
		if _, err := b.measure(e); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		asked, err := b.requests()
		if err != nil {
			return err
		}
		rate := float64(len(asked)) / politeTime.Seconds()
		hosts, hostGap := early(asked, func(r request) string { return r.host })
		addrs, addrGap := early(asked, func(r request) string { return r.addr })
		fmt.Fprintf(out, "%s\t%.1f\t%.2f\t%d\t%d\t%v\t\n", e.name, rate,
			rate*politePause.Seconds()/politeAddrs, hosts, addrs, min(hostGap, addrGap).Round(time.Millisecond))
	}
	return out.Flush()
}

// seeds returns the first page of each host. The web knows the names.
func (b *bench) seeds() (urls []string, err error) {
	stop, err := b.serve()
	if err != nil {
		return nil, err
	}
	if err := stop(); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(b.path("hosts"))
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 {
			urls = append(urls, "http://"+fields[1]+"/")
		}
	}
	return urls, err
}

// politeEngines are the crawlers with a configurable delay. Only ours has one per address.
func (b *bench) politeEngines(seeds []string) []engine {
	self, _ := os.Executable()
	ours := func(arrival time.Duration) []string {
		return append([]string{b.path("fullcrawler"), "-hosts", b.path("hosts"), "-out", b.path("out"),
			"-delay", politePause.String(), "-arrival", arrival.String(), "-scope", "any", "-concurrency", "200",
			"-archive", "none"}, seeds...)
	}
	return b.installed([]engine{
		{"fullcrawler", ours(0), false},
		{"fullcrawler with -arrival", ours(politeArrival), false},
		{"colly", append([]string{self, "-polite", "-colly", proxy}, seeds...), false},
		{"wget2", append([]string{"wget2", "-q", "-r", "-l", "0", "-H", "--max-threads=200", "--wait=1",
			"-P", b.path("out")}, seeds...), true},
	})
}

// A request is a line of the web's log.
type request struct {
	at         time.Time
	host, addr string
}

// requests returns all requests, in order of arrival.
func (b *bench) requests() (all []request, err error) {
	log, err := os.Open(b.path("log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		fields := strings.SplitN(lines.Text(), "\t", 4)
		at, err := time.Parse(time.RFC3339Nano, fields[0])
		if err != nil || len(fields) < 4 {
			return nil, fmt.Errorf("invalid line in the web's log: %q", lines.Text())
		}
		all = append(all, request{at, fields[1], fields[2]})
	}
	slices.SortFunc(all, func(a, b request) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	return all, lines.Err()
}

// early counts the requests that arrived less than a delay after the previous one with the same
// key. It also returns the shortest time between two of them.
func early(asked []request, key func(request) string) (n int, least time.Duration) {
	last := map[string]time.Time{}
	least = politeTime
	for _, r := range asked {
		if before, found := last[key(r)]; found {
			gap := r.at.Sub(before)
			if least = min(least, gap); gap < politePause-politeSlack {
				n++
			}
		}
		last[key(r)] = r.at
	}
	return n, least
}
