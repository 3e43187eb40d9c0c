package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/crawl"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/engine"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/hostcache/resolve"
)

// releasedBytes is about what a waiting URL takes in a message. All that waits in a partition of hosts may
// be released and committed together, and must fit into half of the stream.
const releasedBytes = 128

// create creates a crawl and adds its seeds.
func create(fs *flag.FlagSet) action {
	at := brokerFlags(fs)
	var o crawl.Options
	fs.IntVar(&at.Replicas, "replicas", 3, "number of brokers that store everything")
	fs.Int64Var(&at.MaxBytes, "stream-bytes", jet.DefaultMaxBytes,
		"maximum bytes of the stream, which each broker reserves; at three quarters of it, links are dropped")
	fs.IntVar(&o.Parts, "parts", crawl.DefaultParts, "number of partitions of each module, and so the most processes that share it")
	fs.StringVar(&o.Agent, "agent", "spinneret",
		"`name` of the crawler, in User-Agent and in robots.txt")
	fs.StringVar(&o.Contact, "contact", "",
		"`URL` or e-mail address where site owners can reach you; required without -loopback")
	fs.DurationVar(&o.Delay, "delay", 5*time.Second,
		"minimum delay between requests to a host or address")
	fs.StringVar(&o.Scope, "scope", "host",
		"how far to follow links: page, prefix, host, domain or any")
	fs.IntVar(&o.MaxDepth, "depth", 20, "maximum number of links from a seed to a page; negative: no limit")
	fs.IntVar(&o.HostPages, "host-pages", 10_000, "maximum number of URLs per host")
	fs.IntVar(&o.Waiting, "waiting", crawl.DefaultWaiting,
		"maximum number of URLs that wait for an address or a robots.txt in a partition of hosts")
	fs.DurationVar(&o.Timeout, "timeout", 30*time.Second, "maximum duration of a request")
	fs.IntVar(&o.Retries, "retries", crawl.DefaultRetries,
		"number of retries of a page after temporary failures; negative: none")
	fs.DurationVar(&o.Retry, "retry", 0,
		"delay before the first retry, doubled for each further one; 0: a minute to an hour, by the kind of failure")
	fs.DurationVar(&o.Backoff, "backoff", 0, "delay of a host after a failure, doubled for each further one; 0: 30s")
	fs.DurationVar(&o.Revisit, "revisit", 0,
		"minimum interval between two visits of a page; 0: each page is visited once")
	fs.BoolVar(&o.NoSitemaps, "no-sitemaps", false, "do not read the sitemaps that robots.txt names")
	deny := fs.String("deny", "", "`file` with hosts, URL prefixes and /regexps/ never to fetch, one per line")
	fs.BoolVar(&o.Loopback, "loopback", false, "crawl only addresses of this machine; needs no -contact")
	file := fs.String("seeds", "", "`file` with seed URLs, one per line")
	return func(ctx context.Context, args []string, out, log io.Writer) error {
		seeds, err := readSeeds(args, *file, log)
		switch {
		case err != nil:
			return err
		case len(seeds) == 0:
			return fmt.Errorf("%w: no seeds: list URLs after the flags, or a file with -seeds", errUsage)
		case at.MaxBytes < jet.MinMaxBytes:
			return fmt.Errorf("%w: -stream-bytes %d: want at least %d", errUsage,
				at.MaxBytes, jet.MinMaxBytes)
		case at.MaxBytes/2 < int64(o.Waiting)*releasedBytes:
			return fmt.Errorf("%w: -stream-bytes %d has no room for what one robots.txt may release: want at least %d, or a smaller -waiting",
				errUsage, at.MaxBytes, 2*int64(o.Waiting)*releasedBytes)
		case !o.Loopback && localSeed(seeds) != "":
			return fmt.Errorf("%w: %s is on this machine: use -loopback to crawl it", errUsage,
				localSeed(seeds))
		case o.Contact == "" && !o.Loopback:
			return fmt.Errorf("%w: -contact is missing: site owners must be able to reach you",
				errUsage)
		}
		if o.Deny, err = readLines(*deny); err != nil {
			return err
		}
		// Every process needs the seeds that define the scope. The scope of the whole web needs none,
		// however many seeds there are.
		if o.Scope != string(urlfilter.Any) {
			o.Seeds = seeds
		}
		err = withBrokers(ctx, at, log, func(ctx context.Context, bus *jet.Bus) error {
			c, err := crawl.Create(ctx, bus, o)
			if err != nil {
				return err
			}
			return c.Seed(ctx, seeds)
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "seeds: %d; now start as many \"cluster run\" as you like\n", len(seeds))
		return nil
	}
}

// readLines returns the lines of a file, or none without a name.
func readLines(file string) ([]string, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if text := strings.TrimSpace(string(data)); text != "" {
		return strings.Split(text, "\n"), nil
	}
	return nil, nil
}

// readSeeds takes seeds from the command line and from a file. Lines that are not valid URLs are
// reported on log.
func readSeeds(args []string, file string, log io.Writer) (seeds []string, err error) {
	for _, arg := range args {
		url, err := urlfilter.Seed(arg)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errUsage, err)
		}
		seeds = append(seeds, url)
	}
	if file == "" {
		return seeds, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	more, err := urlfilter.Seeds(f, file)
	if bad := (*urlfilter.SyntaxError)(nil); errors.As(err, &bad) {
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintln(log, "skipped:", strings.TrimSpace(line))
		}
		err = nil
	}
	return append(seeds, more...), err
}

// localSeed returns a seed on this machine, which needs -loopback, or "".
func localSeed(seeds []string) string {
	for _, seed := range seeds {
		host := weburl.Host(seed)
		addr, literal := stage.Literal(host)
		if host == "localhost" || literal && addr.IsLoopback() {
			return seed
		}
	}
	return ""
}

// run takes part in a crawl until it is interrupted or drained.
func run(fs *flag.FlagSet) action {
	at := brokerFlags(fs)
	var o crawl.WorkerOptions
	var modules, hosts string
	var port int
	var level slog.Level
	name, _ := os.Hostname()
	fs.TextVar(&level, "log", slog.LevelInfo, "log `level`: debug, info, warn or error")
	fs.StringVar(&modules, "modules", "dedupe,hosts,fetch", "`modules` whose partitions this process takes, separated by commas")
	fs.StringVar(&o.Name, "name", name, "`name` of this process, for the operator")
	fs.StringVar(&o.Dir, "dir", "archive", "`directory` for the archive of this process")
	fs.IntVar(&o.Workers, "workers", 16,
		"maximum requests in flight for each partition of fetch")
	fs.IntVar(&o.Requests, "requests", 0,
		"maximum requests in flight in this process; 0: only -workers limits them")
	fs.IntVar(&o.Window, "window", 1<<16, "maximum URLs in memory for each partition of fetch, up to 65536")
	fs.DurationVar(&o.Every, "commit", engine.DefaultEvery,
		"how long results wait to be committed together; a killed process repeats as much. Links to "+
			"partitions of other processes wait five times as long")
	fs.DurationVar(&o.TTL, "ttl", 0,
		"time without a renewal after which a process counts as dead (default 3s)")
	fs.StringVar(&hosts, "hosts", "", "`file` in the format of /etc/hosts, consulted before DNS")
	fs.IntVar(&port, "web-port", 0,
		"connect to this port instead of 80, for a virtual web on this machine")
	return func(ctx context.Context, _ []string, _, log io.Writer) (err error) {
		if o.Modules, err = parseModules(modules); err != nil {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
		if o.Hosts, err = readHosts(hosts); err != nil {
			return err
		}
		if port != 0 {
			o.Dial = dialPort(port)
		}
		at.Name, o.Log = o.Name, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level})).With("process", o.Name)
		return withBrokers(ctx, at, log, func(ctx context.Context, bus *jet.Bus) error {
			c, err := opened(ctx, bus, log)
			if err != nil {
				return err
			}
			w, err := c.NewWorker(o)
			if err != nil {
				return err
			}
			o.Log.Info("taking part", "modules", modules, "dir", o.Dir)
			err = w.Run(ctx)
			o.Log.Info("ended", "answers", w.Report().Visits)
			return err
		})
	}
}

// opened opens the crawl. It waits until the crawl has been created, and says so on log.
func opened(ctx context.Context, bus *jet.Bus, log io.Writer) (*crawl.Crawl, error) {
	for told := false; ; told = true {
		c, err := crawl.Open(ctx, bus)
		if !errors.Is(err, crawl.ErrNone) {
			return c, err
		}
		if !told {
			fmt.Fprintln(log, "cluster: the brokers have no such crawl yet; waiting for \"cluster create\"")
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

func parseModules(list string) (modules []message.Module, err error) {
	for name := range strings.SplitSeq(list, ",") {
		m, err := message.ParseModule(strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		modules = append(modules, m)
	}
	return modules, nil
}

// readHosts reads a hosts file. Without a name it returns nil.
func readHosts(name string) (map[string][]netip.Addr, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	table, err := resolve.ParseHosts(f)
	if err != nil {
		return nil, fmt.Errorf("hosts file %s: %w", name, err)
	}
	return table, nil
}

// dialPort returns a dial function that connects to port instead of port 80.
func dialPort(port int) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, asked, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		if asked == "80" {
			addr = net.JoinHostPort(host, strconv.Itoa(port))
		}
		var d net.Dialer
		return d.DialContext(ctx, network, addr)
	}
}
