package cockpit

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/botauth"
	"github.com/spinneret-go/spinneret/hostcache/resolve"
	"github.com/spinneret-go/spinneret/revisit"
)

// A Config is the configuration from the command line. It is not safe for concurrent use.
type Config struct {
	Seeds    []string // canonical
	BadSeeds int      // that are not URLs
	Demo     bool     // no seeds: crawl the built-in web

	Agent, Contact string
	Out            string
	Archive        string // its compression; "" is gzip
	Level          int    // of the compression; 0 is the archive's default
	NoBlockDigest  bool   // in the archive
	Delay          time.Duration
	Backoff        time.Duration // after a first failure; 0 is the scheduler's default
	Reach          urlfilter.Reach
	Filter         stage.Filter
	Resources      bool
	Respect        []string // uses to which a site may object
	Sitemaps       bool
	AsFound        bool // links are not cleaned of tracking parameters
	ByRank         bool // in the order of PageRank

	Policy  revisit.Policy // nil is Bayes with its defaults
	Pace    float64        // of the pages' clock; 0 counts as 1
	Forever bool
	Texts   bool // a page counts as unchanged if its text hardly changed
	Fresh   bool // forget the pages of earlier crawls

	Pages       int64
	Bytes       int64
	Duration    time.Duration
	Wait        time.Duration // for retries, without progress
	MinFree     int64
	LedgerSize  int64  // at which a new file is started; 0 is never
	Listen      string // address of the live page; "" is none
	ListenNames []string
	Pprof       bool   // the live page has profiles
	LogFile     string // "" is none
	DenyFile    string // "" is none
	denyLines   []string
	erasedLines []string
	SeedFile    string // "" is none
	DryRun      bool
	Memory      int64 // 0 is the store's default for the pages, and no bound on the rest
	HostPages   int
	Traps       int // pages in a row with a known content that make their pattern a trap; 0: no traps
	Queue       int // pages in flight
	Concurrency int
	Timeout     time.Duration
	MaxBody     int64

	Bounds      fetch.Reach
	Hosts       map[string][]netip.Addr
	NameServers []netip.AddrPort // nil are the system's

	Header http.Header    // of each request; nil is none
	Jar    http.CookieJar // nil: no cookies

	HostHeader  map[string]http.Header // of requests to a host and its subdomains
	KeepSecrets bool                   // the archive gets their values, and cookies

	Proxy    string          // "" is none
	HTTP1    bool            // no HTTP/2
	Identity *botauth.Signer // of requests; nil is none

	OverrideFile string // "" is none
	Overrides    *stage.Overrides
	Group        func(host string) string // hosts that share a delay; nil is each its own
	Shared       []netip.Prefix           // addresses of many unrelated hosts, which have no delay
}

// NoArchive is the value of Config.Archive for no archive.
const NoArchive = "none"

// DemoDelay makes the built-in crawl worth watching: its web has no owner to annoy.
const (
	DemoDelay      = 500 * time.Millisecond
	DemoCrawlDelay = time.Second
)

// The directories that crawls use if -out does not say otherwise.
const (
	DefaultOut = "crawl"
	DemoOut    = "crawl-demo"
)

// defaultDelay is the delay between requests to a host unless a flag or robots.txt says otherwise,
// and leastDelay the shortest one for hosts other than this machine.
const (
	defaultDelay = 5 * time.Second
	leastDelay   = time.Second
)

// usage is the first part of the short help, with a place for the names of the commands.
const usage = `fullcrawler crawls websites politely and stores the pages as WARC files.

  fullcrawler                                     crawl a small web that it serves itself
  fullcrawler [flags] URL ...                     crawl real sites, such as:
  fullcrawler -contact https://you.example/bot https://www.example.org/
  fullcrawler COMMAND                             one of these:
    %s

The same command resumes a crawl. -h all explains all flags, -h NAME one flag or group,
and COMMAND -h the flags of a command.
`

// about is the first part of the long help.
const about = `fullcrawler obeys robots.txt, and reads the sitemaps named there. It sends one request at a time to a
host. The delay between two requests to a host or an address is the longest of -delay, the site's
Crawl-delay, and five times the latency of the last response.

After Ctrl-C, a limit, a full disk or a power failure, the same command resumes the crawl. Pages are
visited again when they are likely to have changed: in a later run or, with -forever, in the same one.
`

// A commandLine has the values of the flags before they are checked.
type commandLine struct {
	Config
	identity, identityForm string
	configFile             string
	private, own           bool
	given                  map[string]bool // flags, by name
	flags                  *flag.FlagSet

	policy      string // its name
	price       float64
	least, most time.Duration
}

// ParseFlags reads the command line. Lines of a seed file that are not URLs are reported on log.
// The error is flag.ErrHelp if help is requested: see [Help].
func ParseFlags(args []string, log io.Writer) (Config, error) {
	fs := flag.NewFlagSet("fullcrawler", flag.ContinueOnError)
	l := commandLine{flags: fs}
	l.Filter.Deny = new(urlfilter.List)
	fs.SetOutput(io.Discard) // a wrong flag gets one line, not the whole help
	for _, group := range flagGroups {
		group.define(&l, fs)
	}
	rest, err := parseArgs(fs, args)
	if errors.Is(err, flag.ErrHelp) {
		return l.Config, err
	}
	if err != nil { // perhaps the flags of a misspelt command
		if !strings.HasPrefix(args[0], "-") {
			err = cmp.Or(checkWords(args[:1], nil), err)
		}
		return l.Config, err
	}
	c := &l.Config
	steps := []func() error{
		func() error {
			return inFlag("-config", ReadFile(l.configFile, func(f io.Reader) error {
				return readFlags(fs, f, l.configFile)
			}))
		},
		func() error { l.given = givenFlags(fs); return nil },
		func() (err error) { c.Policy, err = ParsePolicy(l.policy, l.price, l.least, l.most); return err },
		func() error { return inFlag("-deny", c.ReadDeny()) },
		func() error { return CheckListen(c.Listen) },
		func() error { return inFlag("-overrides", c.ReadOverrides()) },
		func() error { return c.readIdentity(l.identity, l.identityForm) },
		func() error { return checkWords(rest, c.Hosts) },
		func() error { return inFlag("-seeds", c.readSeeds(rest, log)) },
		l.checkNumbers,
		l.check,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return *c, err
		}
	}
	if 0 < c.Memory && c.Memory < leastMemory {
		return *c, fmt.Errorf("-memory %s is too little: at least %s, or 0 for no limit", Size(c.Memory), Size(leastMemory))
	}
	if most := c.Memory / bodyShare / 4; c.Memory > 0 && l.given["max-body"] && c.MaxBody > most {
		return *c, fmt.Errorf("-max-body %s is more than a sixteenth of -memory, %s, at which pages are cut: give it more memory",
			Size(c.MaxBody), Size(most))
	}
	if c.Memory > 0 && !l.given["queue"] {
		c.Queue = int(min(int64(c.Queue), max(c.Memory/queueShare/queuedPage, leastQueue)))
	}
	return *c, nil
}

// inFlag adds the name of the flag to an error about its file.
func inFlag(name string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Without -queue, the queue takes a fifth of the memory. A queued page takes 1,060 bytes, measured.
// A shorter queue than leastQueue would leave hosts without a page when it is their turn.
const queueShare, queuedPage, leastQueue = 5, 1060, 1000

// leastMemory is the smallest -memory with which a crawl can work at all.
const leastMemory = 1e6

// listed returns the words of a list with commas.
func listed(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

func (c *Config) readRespect(list string) error {
	c.Respect = listed(list)
	for _, use := range c.Respect {
		if !slices.Contains(stage.Uses, use) {
			return fmt.Errorf("%q is none of %s", use, strings.Join(stage.Uses, ", "))
		}
	}
	return nil
}

func (c *Config) readOrder(order string) error {
	c.ByRank = order == "rank"
	if order != "rank" && order != "found" {
		return errors.New("want found or rank")
	}
	return nil
}

// ReadDeny reads the list of URLs never to fetch. It also works while a crawl runs.
func (c *Config) ReadDeny() error {
	return ReadFile(c.DenyFile, func(f io.Reader) error {
		text, err := io.ReadAll(f)
		if err != nil {
			return err
		}
		if err := c.Filter.Deny.Reload(bytes.NewReader(text), c.DenyFile); err != nil {
			return err
		}
		c.denyLines = ruleLines(text)
		return nil
	})
}

func (c *Config) readHosts(name string) error {
	return ReadFile(name, func(f io.Reader) (err error) {
		if c.Hosts, err = resolve.ParseHosts(f); err != nil {
			err = fmt.Errorf("hosts file %s: %w", name, err)
		}
		return err
	})
}

// readSeeds takes seeds from the command line and from a file. Invalid URLs are reported on log and
// counted; the others are still crawled.
func (c *Config) readSeeds(args []string, log io.Writer) error {
	name := c.SeedFile
	reject := func(where string, err error) {
		c.BadSeeds++
		fmt.Fprintf(log, "%s: skipped: %v\n", where, err)
	}
	for _, arg := range args {
		url, err := urlfilter.Seed(arg)
		if err != nil {
			reject("command line", err)
			continue
		}
		c.Seeds = append(c.Seeds, url)
	}
	c.Demo = len(args) == 0 && name == ""
	return ReadFile(name, func(f io.Reader) error {
		urls, err := urlfilter.Seeds(f, name)
		c.Seeds = append(c.Seeds, urls...)
		return SkipLines(err, func(err *urlfilter.SyntaxError) {
			reject(fmt.Sprintf("%s:%d", name, err.Line), fmt.Errorf("%s: %.200q", err.Reason, err.Entry))
		})
	})
}

// SkipLines reports errors about single lines, and returns any other error.
func SkipLines(err error, skip func(*urlfilter.SyntaxError)) (fatal error) {
	all, joined := err.(interface{ Unwrap() []error })
	if !joined {
		return err
	}
	for _, err := range all.Unwrap() {
		var line *urlfilter.SyntaxError
		if errors.As(err, &line) {
			skip(line)
		} else {
			fatal = err
		}
	}
	return fatal
}

// ReadFile passes a file to read, without a byte-order mark. "" means no file, and - standard
// input.
func ReadFile(name string, read func(io.Reader) error) error {
	if name == "" {
		return nil
	}
	f := os.Stdin
	if name != "-" {
		var err error
		if f, err = os.Open(name); err != nil {
			return err
		}
		defer f.Close()
	}
	const mark = "\ufeff"
	r := bufio.NewReader(f)
	if start, _ := r.Peek(len(mark)); string(start) == mark {
		_, _ = r.Discard(len(mark)) // they have been read
	}
	return read(r)
}

// checkWords refuses seeds that are more likely misspelt commands. hosts are the names of a hosts
// file, which may be single words.
func checkWords(words []string, hosts map[string][]netip.Addr) error {
	commands := slices.Sorted(maps.Keys(Subcommands()))
	for _, word := range words {
		_, known := hosts[word]
		switch {
		case known || word == "localhost" || strings.ContainsAny(word, ".:/"):
		case strings.HasPrefix(word, "-"):
			return fmt.Errorf("%q is not a URL (flags may stand anywhere before --)", word)
		case slices.Contains(commands, word):
			return fmt.Errorf("%s is a command, and takes only its own flags: see fullcrawler %[1]s -h", word)
		default:
			hint := "commands: " + strings.Join(commands, ", ")
			if near := nearest(word, commands); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			return fmt.Errorf("%q is neither a URL nor a command; a host is http://%[1]s/ (%s)",
				word, hint)
		}
	}
	return nil
}

// checkNumbers refuses invalid values. On the command line 0 never means the default.
func (l *commandLine) checkNumbers() error {
	for _, limit := range []struct {
		name string
		bad  bool
		want string
	}{
		{"level", l.given["level"] && l.Level < 1, "at least 1"},
		{"pages", l.Pages < 0, "0 or more"},
		{"host-pages", l.HostPages < 0, "0 or more"},
		{"traps", l.Traps < 0, "0 or more"},
		{"queue", l.Queue < 1, "at least 1"},
		{"concurrency", l.Concurrency < 1, "at least 1"},
		{"timeout", l.Timeout <= 0, "more than 0"},
		{"max-body", l.MaxBody <= 0, "more than 0"},
		{"price", l.given["price"] && !(l.price > 0), "more than 0"},
		{"least", l.least <= 0, "more than 0"},
		{"most", l.most < l.least, "at least -least, " + spell(l.least)},
		{"pace", !(l.Pace > 0 && l.Pace <= stage.MaxPace), fmt.Sprintf("more than 0, and at most %g", float64(stage.MaxPace))},
	} {
		if limit.bad {
			return fmt.Errorf("-%s %v: want %s", limit.name, l.flags.Lookup(limit.name).Value, limit.want)
		}
	}
	return nil
}

func validContact(c *Config) bool {
	_, err := fetch.New(fetch.Options{UserAgent: c.UserAgent()})
	return !errors.Is(err, fetch.NoContact)
}

// agentForm is the form of names that sites can address in robots.txt.
var agentForm = regexp.MustCompile(`^[\w.-]+(/\S*)?( ?\(.*\))?$`)

// check handles settings that depend on several flags.
func (l *commandLine) check() error {
	c := &l.Config
	if c.Demo && !l.given["delay"] {
		c.Delay = DemoDelay
	}
	if c.Out == "" {
		c.Out = DefaultOut
		if c.Demo {
			c.Out = DemoOut
		}
	}
	local := c.Demo || c.loopbackOnly() && !l.private // with -private, links may lead anywhere
	switch {
	case len(c.Seeds) == 0 && !c.Demo:
		return errors.New("none of the seeds is a URL")
	case !agentForm.MatchString(c.Agent):
		return fmt.Errorf("-agent %q: want a name that sites can write into robots.txt, such as examplebot", c.Agent)
	case l.given["level"] && c.Archive == "gzip" && c.Level > 9, c.Archive == "zstd" && c.Level > 4:
		return fmt.Errorf("-level %d: want at most 9 for gzip and 4 for zstd", c.Level)
	case c.Archive != "gzip" && c.Archive != "zstd" && c.Archive != NoArchive:
		return fmt.Errorf("-archive %q: want gzip, zstd or none", c.Archive)
	case !local && c.Contact == "":
		return errors.New("-contact is missing: give a URL or an e-mail address where the owners of " +
			"the sites can reach you (not needed when every seed is a loopback address, without -private)")
	case !local && !validContact(c):
		return fmt.Errorf("-contact %q: want a URL or an e-mail address, such as https://you.example/bot",
			c.Contact)
	case !local && !l.own && c.Delay < leastDelay:
		return fmt.Errorf("-delay %s is too short for hosts of others: at least %s, or -own if they are "+
			"your own", spell(c.Delay), spell(leastDelay))
	case !local && c.Pace != 1:
		return errors.New("-pace is for the built-in web and for hosts on loopback")
	case l.private && !c.Demo:
		c.Bounds = fetch.Anywhere
	case local:
		c.Bounds = fetch.Loopback
	}
	c.Filter.Format.AnySuffix = c.Bounds != fetch.Public
	c.inheritFields()
	header := http.Header{}
	maps.Copy(header, c.Header)
	for _, fields := range c.HostHeader {
		maps.Copy(header, fields)
	}
	_, err := fetch.New(fetch.Options{
		UserAgent: c.UserAgent(), Reach: c.Bounds, Header: header, Proxy: c.Proxy,
	})
	return err
}

// loopbackOnly reports whether every seed is known to be on this machine.
func (c *Config) loopbackOnly() bool {
	for _, seed := range c.Seeds {
		host := weburl.Host(seed)
		addr, ok := stage.Literal(host)
		if !ok {
			var addrs []netip.Addr
			if addrs, ok = c.Hosts[host]; ok {
				addr = addrs[0]
			}
		}
		if host != "localhost" && !(ok && addr.IsLoopback()) {
			return false
		}
	}
	return len(c.Seeds) > 0
}
