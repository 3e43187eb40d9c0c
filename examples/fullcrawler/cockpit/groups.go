package cockpit

import (
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter/trap"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch"
)

// A flagGroup is a part of the flags, under a title of its own in the help.
type flagGroup struct {
	title  string
	define func(*commandLine, *flag.FlagSet)
}

// flagGroups are all flags.
var flagGroups = []flagGroup{
	{"Who crawls, and into what", (*commandLine).identityFlags},
	{"What is visited", (*commandLine).scopeFlags},
	{"When pages are visited again", (*commandLine).revisitFlags},
	{"How polite it is", (*commandLine).politenessFlags},
	{"What it may take", (*commandLine).limitFlags},
	{"The network", (*commandLine).networkFlags},
	{"To watch it", (*commandLine).watchFlags},
}

// Help writes how the program is used, and its flags by groups.
func Help(w io.Writer) {
	fmt.Fprint(w, usage)
	for _, group := range flagGroups {
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		group.define(&commandLine{sizes: sizes{minFree: 1 << 30, memory: 512 << 20, ledger: 1 << 30}}, fs)
		fs.SetOutput(w)
		fmt.Fprintf(w, "\n%s:\n", group.title)
		fs.PrintDefaults()
	}
}

// identityFlags say who crawls, and into what.
func (l *commandLine) identityFlags(fs *flag.FlagSet) {
	fs.StringVar(&l.Agent, "agent", "spinneret",
		"`name` of the crawler: in User-Agent, and as robots.txt calls it")
	fs.StringVar(&l.Contact, "contact", "",
		"`URL` or address where site owners reach you; required beyond loopback")
	fs.StringVar(&l.identity, "identity", "", "`file` of an Ed25519 key, in PEM, to sign requests with "+
		"(Web Bot Auth); an https -contact names who publishes it")
	fs.StringVar(&l.Out, "out", "",
		"`directory` for the archive and all else (default crawl, or crawl-demo without seeds)")
	fs.StringVar(&l.Archive, "archive", "gzip", "how to keep what is fetched: gzip, zstd or none")
	fs.IntVar(&l.Level, "level", 0, "effort of the compression: 1 to 9 for gzip (default 6), 1 to 4 for zstd (default 1)")
	fs.BoolVar(&l.NoBlockDigest, "no-block-digest", false, "leave the digests of whole records out of the archive: "+
		"the checksums of gzip and zstd find the same damage, but not what a later recompression does")
	fs.BoolVar(&l.Fresh, "fresh", false, "forget the pages of earlier runs; the archive stays")
	fs.StringVar(&l.configFile, "config", "", "`file` of flags, one a line: a name, a blank and a value")
}

// scopeFlags say what is visited, and in which order.
func (l *commandLine) scopeFlags(fs *flag.FlagSet) {
	fs.StringVar(&l.seedList, "seeds", "",
		"`file` of seed URLs, one a line, or - for standard input; SIGHUP reads a file again")
	fs.StringVar(&l.scope, "scope", "host", "how far to go: page, prefix, host, domain or any")
	fs.IntVar(&l.Filter.MaxDepth, "depth", 20,
		"most links between a seed and a page; negative: any number")
	fs.Var(&l.include, "include", "follow only links that match this `regexp` (repeatable)")
	fs.Var(&l.exclude, "exclude", "follow no links that match this `regexp` (repeatable)")
	fs.StringVar(&l.DenyFile, "deny", "", "`file` of hosts, URL prefixes and /regexps/ never to fetch; "+
		"+ before one takes it out; SIGHUP reads it again")
	fs.BoolVar(&l.Resources, "resources", false, "fetch images, styles and scripts too")
	fs.BoolVar(&l.Sitemaps, "sitemaps", true,
		"read the sitemaps that robots.txt names, and follow what they list")
	fs.IntVar(&l.HostPages, "host-pages", 10_000, "most pages of one host; 0: no limit")
	fs.IntVar(&l.Traps, "traps", trap.DefaultRepeats, "pages in a row whose content is known from another URL "+
		"until URLs that differ from theirs only in numbers, ids and queries are left alone, such as those of a "+
		"calendar; -texts sees through the dates on them; 0: never")
	fs.StringVar(&l.respect, "respect-signals", "", "`uses` such as train-ai,ai-train: what a site does not want "+
		"to be used so, by Content-Usage or Content-Signal, is not fetched or not kept")
	fs.StringVar(&l.order, "order", "found",
		"which page comes first: found, as they are found, or rank, by PageRank so far")
}

// revisitFlags say when pages are visited again.
func (l *commandLine) revisitFlags(fs *flag.FlagSet) {
	fs.BoolVar(&l.Forever, "forever", false, "go on when nothing is due, and wait for what will be")
	l.revisiting.flags(fs)
	fs.BoolVar(&l.AsFound, "as-found", false,
		"follow links as they are, with tracking parameters and session ids, which are dropped otherwise")
	fs.BoolVar(&l.Texts, "texts", false,
		"compare texts: a new date, counter or word or two is no change")
	fs.Float64Var(&l.Pace, "pace", 1, "how much `faster` than real time pages come due, to watch months "+
		"in minutes; only for the built-in web and other hosts on loopback")
}

// politenessFlags say how polite the crawl is.
func (l *commandLine) politenessFlags(fs *flag.FlagSet) {
	fs.DurationVar(&l.Delay, "delay", defaultDelay, "least pause between requests to a host or address; "+
		"0.5s by default without seeds; less than 1s only on loopback or with -own")
	fs.DurationVar(&l.Arrival, "arrival", 0, "a request reaches its server within this time: pauses count from "+
		"then, and a slow page holds up its host alone; 0: pauses count from the first byte of the answer")
	fs.StringVar(&l.groups, "group", "", "hosts that share a delay: domain, for all hosts of a registrable "+
		"domain, or a `file` with a line for each group, of hosts and the domains above them")
	fs.StringVar(&l.overrides, "overrides", "", "`file` with lines such as \"shop.example delay=30s depth=3 "+
		"concurrency=2\" or \"old.example off\", for a host and all below it; SIGHUP reads it again")
	fs.StringVar(&l.cdn, "shared", "", "`file` of address ranges that unrelated hosts share, such as those of "+
		"a CDN: only their hosts have delays")
	fs.IntVar(&l.SharedAfter, "shared-after", stage.DefaultSharedAfter, "an address counts as shared when this many "+
		"unrelated domains have answered there, or an eighth of them if their names lead to several addresses, "+
		"until a quarter of its answers are failures; 0: never")
	fs.BoolVar(&l.own, "own", false, "the hosts are your own: allow a -delay of less than a second")
	fs.IntVar(&l.Concurrency, "concurrency", 64,
		"requests in flight, each to a different host")
}

// limitFlags say what the crawl may take, here and elsewhere.
func (l *commandLine) limitFlags(fs *flag.FlagSet) {
	fs.Int64Var(&l.Pages, "pages", 0, "stop after this many pages; 0: no limit")
	fs.Var(&l.sizes.bytes, "bytes", "stop after this many `bytes` of bodies, such as 20GB; 0: no limit")
	fs.DurationVar(&l.Duration, "time", 0, "stop after this time; 0: no limit")
	fs.DurationVar(&l.Wait, "wait", 3*time.Minute,
		"with nothing else to do, wait so long for pages that are to be tried again")
	fs.Var(&l.sizes.minFree, "min-free", "stop when the disk has less than this many `bytes` left")
	fs.Var(&l.sizes.memory, "memory",
		"most `bytes` of memory, roughly: stop when nine tenths are in use; 0: no limit")
	fs.IntVar(&l.Queue, "queue", 100_000, "most pages in flight at one time; others wait in files")
	fs.DurationVar(&l.Timeout, "timeout", fetch.DefaultTimeout, "longest a request may take")
	fs.Int64Var(&l.MaxBody, "max-body", fetch.DefaultMaxBody, "`bytes` after which a page is cut")
}

// networkFlags say how requests go out.
func (l *commandLine) networkFlags(fs *flag.FlagSet) {
	fs.BoolVar(&l.private, "private", false, "allow private and loopback addresses")
	fs.StringVar(&l.hosts, "hosts", "", "`file` in the format of /etc/hosts, asked before DNS")
	fs.StringVar(&l.nameServers, "dns", "", "`addresses` of name servers to ask, with commas, such as "+
		"127.0.0.1:53, instead of the system's")
	fs.StringVar(&l.Proxy, "proxy", "", "`URL` of a proxy; with socks5 it is handed addresses, and -private holds")
	fs.BoolVar(&l.HTTP1, "http1", false, "no HTTP/2")
	fs.Var(&l.headers, "header", "`field` to send with each request, such as \"Accept-Language: de\" (repeatable)")
	fs.StringVar(&l.CookieFile, "cookies", "", "`file` of cookies to send, as curl and browser extensions write it")
}

// watchFlags say how the crawl can be watched.
func (l *commandLine) watchFlags(fs *flag.FlagSet) {
	fs.BoolVar(&l.DryRun, "dry-run", false, "print what would be done, and do nothing")
	fs.StringVar(&l.Listen, "listen", "", "show a live page at this `address`, such as 127.0.0.1:8080")
	fs.StringVar(&l.LogFile, "log", "", "`file` to append a structured log to, as lines of JSON")
	fs.Var(&l.sizes.ledger, "ledger", "begin a new fates.jsonl when it has this many `bytes`; 0: never")
}
