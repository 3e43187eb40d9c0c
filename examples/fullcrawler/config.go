package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch"
)

// A config is what the command line asks for.
type config struct {
	seeds    []string // canonical
	badSeeds int      // that were no URLs
	demo     bool     // no seeds: crawl the built-in web

	agent, contact string
	out            string
	archive        string // how it is compressed; "" is gzip
	delay          time.Duration
	backoff        time.Duration // after a first failure; 0 is the scheduler's default
	reach          stage.Reach
	filter         stage.Filter
	resources      bool
	sitemaps       bool
	byRank         bool // not in the order in which pages are found

	policy  policy  // nil is Bayes as it is by default
	pace    float64 // of the pages' clock; 0 counts as 1
	forever bool
	texts   bool // a page of which little changes counts as unchanged
	fresh   bool // forget the pages of earlier crawls

	pages       int64
	bytes       int64
	duration    time.Duration
	wait        time.Duration // for retries, without progress
	minFree     int64
	listen      string // address of the live page; "" is none
	logFile     string // "" is none
	denyFile    string // "" is none
	seedFile    string // "" is none
	dryRun      bool
	memory      int64 // 0 is DefaultPagesMemory for the pages, and no bound on the rest
	hostPages   int
	queue       int // pages in hand
	concurrency int
	timeout     time.Duration
	maxBody     int64

	bounds fetch.Reach
	hosts  map[string]netip.Addr
}

// noArchive is a config.archive that keeps nothing.
const noArchive = "none"

// demoDelay makes the built-in crawl worth watching: its web has no owner to annoy.
const (
	demoDelay      = 500 * time.Millisecond
	demoCrawlDelay = time.Second
)

const usage = `fullcrawler crawls websites politely and keeps what it gets as WARC files.

	fullcrawler                                     a small web that it serves itself
	fullcrawler [flags] URL ...                     real ones
	fullcrawler -contact https://you.example/bot https://www.example.org/
	fullcrawler serve                               browse what was kept
	fullcrawler check|explain|export|scan|snapshot  other uses of it; -h tells how

Robots.txt is obeyed, and the sitemaps that it names are read. A host is visited by one request at a
time, and the pause between two requests to a host or an address is the longest of -delay, the site's
Crawl-delay, and five times what the last answer took.

Whatever ends the crawl, Ctrl-C, a limit, a full disk or a power failure, the same command goes on
from there. Pages are visited again when it is likely enough that they have changed: in a later run,
or, with -forever, in the same one.

Flags:
`

// A commandLine is what flags say before it is checked and read.
type commandLine struct {
	config
	scope, order, hosts, seedList string
	configFile                    string
	private                       bool
	revisiting                    revisiting
	sizes                         sizes
	include, exclude              patterns
}

// parseFlags reads the command line. Lines of a seed file that are no URLs are reported on log.
func parseFlags(args []string, log io.Writer) (config, error) {
	l := commandLine{sizes: sizes{minFree: 1 << 30, memory: 512 << 20}}
	l.filter.Deny = new(stage.DenyList)
	fs := flag.NewFlagSet("fullcrawler", flag.ContinueOnError)
	fs.SetOutput(log)
	fs.Usage = func() { fmt.Fprint(log, usage); fs.PrintDefaults() }
	l.mainFlags(fs)
	l.choiceFlags(fs)
	l.limitFlags(fs)
	if err := fs.Parse(args); err != nil {
		return l.config, err
	}
	c := &l.config
	steps := []func() error{
		func() error {
			return readFile(l.configFile, func(f io.Reader) error { return readFlags(fs, f, l.configFile) })
		},
		func() error { return c.readScope(l.scope) },
		func() error { return c.readOrder(l.order) },
		func() (err error) { c.policy, err = l.revisiting.policy(); return err },
		c.readDeny,
		func() error { return checkListen(c.listen) },
		func() error { return c.readHosts(l.hosts) },
		func() error { return c.readSeeds(fs.Args(), l.seedList, log) },
		func() error { return c.check(l.private) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return *c, err
		}
	}
	c.filter.Include, c.filter.Exclude = l.include, l.exclude
	c.bytes, c.minFree, c.memory = int64(l.sizes.bytes), int64(l.sizes.minFree), int64(l.sizes.memory)
	return *c, nil
}

// mainFlags say who crawls, into what, and how it can be watched.
func (l *commandLine) mainFlags(fs *flag.FlagSet) {
	fs.StringVar(&l.agent, "agent", "spinneret", "`name` of the crawler: in User-Agent, and as robots.txt calls it")
	fs.StringVar(&l.contact, "contact", "", "`URL` or address where site owners reach you; required beyond loopback")
	fs.StringVar(&l.out, "out", "crawl", "`directory` for the archive and all else")
	fs.StringVar(&l.archive, "archive", "gzip", "how to keep what is fetched: gzip, zstd or none")
	fs.StringVar(&l.seedList, "seeds", "", "`file` of seed URLs, one a line; SIGHUP reads it again")
	fs.StringVar(&l.configFile, "config", "", "`file` of flags, one a line: a name, a space and a value")
	fs.BoolVar(&l.forever, "forever", false, "go on when nothing is due, and wait for what will be")
	fs.BoolVar(&l.fresh, "fresh", false, "forget the pages of earlier runs; the archive stays")
	fs.BoolVar(&l.dryRun, "dry-run", false, "print what would be done, and do nothing")
	fs.StringVar(&l.listen, "listen", "", "show a live page at this `address`, such as 127.0.0.1:8080")
	fs.StringVar(&l.logFile, "log", "", "`file` to append a structured log to, as lines of JSON")
	fs.BoolVar(&l.private, "private", false, "allow private and loopback addresses")
	fs.StringVar(&l.hosts, "hosts", "", "`file` in the format of /etc/hosts, asked before DNS")
}

// choiceFlags say what is visited, in which order, and when again.
func (l *commandLine) choiceFlags(fs *flag.FlagSet) {
	fs.StringVar(&l.scope, "scope", "host", "how far to go: page, prefix, host, domain or any")
	fs.Var(&l.include, "include", "follow only links that match this `regexp` (repeatable)")
	fs.Var(&l.exclude, "exclude", "follow no links that match this `regexp` (repeatable)")
	fs.StringVar(&l.denyFile, "deny", "", "`file` of hosts, URL prefixes and /regexps/ never to fetch; + before "+
		"one takes it out; SIGHUP reads it again")
	fs.StringVar(&l.order, "order", "found", "which page comes first: found, as they are found, or rank, by PageRank so far")
	fs.IntVar(&l.filter.MaxDepth, "depth", 20, "most links between a seed and a page; negative: any number")
	fs.BoolVar(&l.resources, "resources", false, "fetch images, styles and scripts too")
	fs.BoolVar(&l.sitemaps, "sitemaps", true, "read the sitemaps that robots.txt names, and follow what they list")
	fs.BoolVar(&l.texts, "texts", false, "compare texts: a new date, counter or word or two is no change")
	l.revisiting.flags(fs)
	fs.Float64Var(&l.pace, "pace", 1, "how much `faster` than real time pages come due, to watch months in minutes")
}

// limitFlags say what it may cost, here and elsewhere.
func (l *commandLine) limitFlags(fs *flag.FlagSet) {
	fs.DurationVar(&l.delay, "delay", 0, "least pause between requests to a host or address (default 5s, or 0.5s without seeds)")
	fs.Int64Var(&l.pages, "pages", 0, "stop after this many pages; 0: no limit")
	fs.Var(&l.sizes.bytes, "bytes", "stop after this many `bytes` of bodies, such as 20GB; 0: no limit")
	fs.DurationVar(&l.duration, "time", 0, "stop after this time; 0: no limit")
	fs.DurationVar(&l.wait, "wait", 3*time.Minute, "with nothing else to do, wait so long for pages that are to be tried again")
	fs.Var(&l.sizes.minFree, "min-free", "stop when the disk has less than this many `bytes` left")
	fs.Var(&l.sizes.memory, "memory", "most `bytes` of memory, roughly: stop when nine tenths are in use; 0: no limit")
	fs.IntVar(&l.hostPages, "host-pages", 10_000, "most URLs of one host; 0: no limit")
	fs.IntVar(&l.queue, "queue", 100_000, "most pages in hand at one time; others wait in files")
	fs.IntVar(&l.concurrency, "concurrency", 64, "requests under way at one time, each to another host")
	fs.DurationVar(&l.timeout, "timeout", fetch.DefaultTimeout, "longest a request may take")
	fs.Int64Var(&l.maxBody, "max-body", fetch.DefaultMaxBody, "`bytes` after which a page is cut")
}

func (c *config) readScope(scope string) (err error) {
	c.reach, err = stage.ParseReach(scope)
	return err
}

func (c *config) readOrder(order string) error {
	c.byRank = order == "rank"
	if order != "rank" && order != "found" {
		return fmt.Errorf("unknown order %q: say found or rank", order)
	}
	return nil
}

// readDeny reads the list of what is never fetched. While a crawl runs, too.
func (c *config) readDeny() error {
	return readFile(c.denyFile, func(f io.Reader) error {
		list, err := urlfilter.Parse(f, c.denyFile)
		if err == nil {
			c.filter.Deny.Set(list)
		}
		return err
	})
}

func (c *config) readHosts(name string) error {
	return readFile(name, func(f io.Reader) (err error) {
		c.hosts, err = stage.ReadHosts(f, name)
		return err
	})
}

// readSeeds takes seeds from the command line and from a file. What is no URL is reported on log,
// counted, and does not keep the others from being crawled.
func (c *config) readSeeds(args []string, name string, log io.Writer) error {
	c.seedFile = name
	reject := func(where string, err error) {
		c.badSeeds++
		fmt.Fprintf(log, "%s: skipped: %v\n", where, err)
	}
	for _, arg := range args {
		url, err := stage.Seed(arg)
		if err != nil {
			reject("command line", err)
			continue
		}
		c.seeds = append(c.seeds, url)
	}
	c.demo = len(args) == 0 && name == ""
	return readFile(name, func(f io.Reader) error {
		urls, err := stage.Seeds(f, func(line int, err error) {
			reject(fmt.Sprintf("%s:%d", name, line), err)
		})
		c.seeds = append(c.seeds, urls...)
		return err
	})
}

// readFile opens the file for read; no name is no file.
func readFile(name string, read func(io.Reader) error) error {
	if name == "" {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return read(f)
}

// check settles what depends on several flags.
func (c *config) check(private bool) error {
	if c.delay == 0 {
		c.delay = 5 * time.Second
		if c.demo {
			c.delay = demoDelay
		}
	}
	local := c.demo || c.loopbackOnly()
	switch {
	case len(c.seeds) == 0 && !c.demo:
		return errors.New("none of the seeds is a URL")
	case c.archive != "gzip" && c.archive != "zstd" && c.archive != noArchive:
		return fmt.Errorf("-archive %q: want gzip, zstd or none", c.archive)
	case c.concurrency < 1:
		return errors.New("-concurrency must be at least 1")
	case c.queue < 1:
		return errors.New("-queue must be at least 1")
	case !(c.pace > 0 && c.pace <= maxPace):
		return fmt.Errorf("-pace must be positive, and at most %g", float64(maxPace))
	case !local && c.contact == "":
		return errors.New("-contact is missing: give a URL or an e-mail address where the owners of the " +
			"sites can reach you (not needed when every seed is a loopback address)")
	case private:
		c.bounds = fetch.Anywhere
	case local:
		c.bounds = fetch.Loopback
	}
	c.filter.Format.AnySuffix = c.bounds != fetch.Public
	return nil
}

// loopbackOnly says whether every seed is known to lie on this machine.
func (c *config) loopbackOnly() bool {
	for _, seed := range c.seeds {
		host := weburl.Host(seed)
		addr, ok := stage.Literal(host)
		if !ok {
			addr, ok = c.hosts[host]
		}
		if host != "localhost" && !(ok && addr.IsLoopback()) {
			return false
		}
	}
	return len(c.seeds) > 0
}
