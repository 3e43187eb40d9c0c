package cockpit

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/dedupe/urlfilter/trap"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch"
)

// A flagGroup is a group of flags with a title in the help.
type flagGroup struct {
	title  string
	define func(*commandLine, *flag.FlagSet)
}

// flagGroups are all flags.
var flagGroups = []flagGroup{
	{"Identity and output", (*commandLine).identityFlags},
	{"Scope", (*commandLine).scopeFlags},
	{"Revisits", (*commandLine).revisitFlags},
	{"Politeness", (*commandLine).politenessFlags},
	{"Limits", (*commandLine).limitFlags},
	{"Network", (*commandLine).networkFlags},
	{"Monitoring", (*commandLine).watchFlags},
}

// Help writes the usage of the program: about all flags in groups, one group or flag, or with "" the
// names of all on one screen.
func Help(w io.Writer, word string) error {
	if word == "" {
		fmt.Fprintf(w, usage, strings.Join(slices.Sorted(maps.Keys(Subcommands())), " "))
		for _, group := range flagGroups {
			fmt.Fprintf(w, "\n%s:\n%s", group.title, flagNames(group.flagSet()))
		}
		return nil
	}
	if word == "all" {
		fmt.Fprint(w, about)
	}
	word = strings.TrimLeft(word, "-")
	known := false
	for _, group := range flagGroups {
		fs := group.flagSet()
		fs.SetOutput(w)
		if word == "all" || strings.EqualFold(word, group.title) {
			known = true
			fmt.Fprintf(w, "\n%s:\n", group.title)
			fs.PrintDefaults()
		} else if f := fs.Lookup(word); f != nil {
			known = true
			one := flag.NewFlagSet("", flag.ContinueOnError)
			one.SetOutput(w)
			one.Var(f.Value, f.Name, f.Usage)
			one.PrintDefaults()
		}
	}
	if !known {
		return fmt.Errorf("%w: no flag is called %q: -h lists all", errUsage, word)
	}
	return nil
}

// flagSet returns the flags of a group, for the help.
func (g flagGroup) flagSet() *flag.FlagSet {
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	g.define(new(commandLine), fs)
	return fs
}

// flagNames returns the names of flags, in lines that fit on any terminal.
func flagNames(fs *flag.FlagSet) (lines string) {
	line := " "
	fs.VisitAll(func(f *flag.Flag) {
		if len(line)+len(f.Name)+2 >= columns {
			lines += line + "\n"
			line = " "
		}
		line += " -" + f.Name
	})
	return lines + line + "\n"
}

// identityFlags set who crawls, and where the result goes.
func (l *commandLine) identityFlags(fs *flag.FlagSet) {
	fs.StringVar(&l.Agent, "agent", "spinneret",
		"`name` of the crawler, in User-Agent and in robots.txt")
	fs.StringVar(&l.Contact, "contact", "",
		"`URL` or e-mail address where site owners can reach you; required beyond loopback")
	fs.StringVar(&l.identity, "identity", "", "`file` with an Ed25519 key, in PEM, to sign requests (Web Bot Auth); "+
		"publish its public half on the host of -contact, which must be https")
	fs.StringVar(&l.identityForm, "identity-form", "url", "how signed requests name the place of the public key: "+
		"`url`, origin or string (see docs/web-bot-auth.md)")
	fs.StringVar(&l.Out, "out", "",
		"`directory` for the archive and all other files (default crawl, or crawl-demo without seeds)")
	fs.StringVar(&l.Archive, "archive", "gzip", "compression of the archive: gzip or zstd; none means no archive")
	fs.IntVar(&l.Level, "level", 0, "compression level: 1 to 9 for gzip (default 6), 1 to 4 for zstd (default 1)")
	fs.BoolVar(&l.NoBlockDigest, "no-block-digest", false, "omit the digests of whole records: the checksums of "+
		"gzip and zstd detect the same damage, but not errors of a later recompression")
	fs.BoolVar(&l.Fresh, "fresh", false, "forget the pages of earlier runs, but keep the archive")
	fs.StringVar(&l.configFile, "config", "", "`file` with flags, one per line: a name, a blank and a value")
}

// scopeFlags set which pages are visited, and in which order.
func (l *commandLine) scopeFlags(fs *flag.FlagSet) {
	fs.StringVar(&l.SeedFile, "seeds", "",
		"`file` with seed URLs, one per line, or - for standard input; SIGHUP rereads a file")
	fs.TextVar(&l.Reach, "scope", urlfilter.Host, "how far to follow links: page, prefix, host, domain or any")
	fs.IntVar(&l.Filter.MaxDepth, "depth", 20,
		"maximum number of links from a seed to a page; negative: no limit")
	fs.Func("include", "follow only links that match this `regexp` (repeatable)", patternsIn(&l.Filter.Include))
	fs.Func("exclude", "follow no links that match this `regexp` (repeatable)", patternsIn(&l.Filter.Exclude))
	fs.StringVar(&l.DenyFile, "deny", "", "`file` with hosts, URL prefixes and /regexps/ never to fetch; "+
		"+ before one makes an exception; SIGHUP rereads it")
	fs.BoolVar(&l.Resources, "resources", false, "fetch images, styles and scripts too")
	fs.BoolVar(&l.Sitemaps, "sitemaps", true,
		"read the sitemaps that robots.txt names, and follow their links")
	fs.IntVar(&l.HostPages, "host-pages", 10_000, "maximum number of pages per host; 0: no limit")
	fs.IntVar(&l.Traps, "traps", trap.DefaultRepeats, "after this many pages in a row with known contents, skip "+
		"URLs that differ from theirs only in numbers, ids and queries, such as those of a calendar; with -texts, "+
		"dates in the contents do not count; 0: never")
	fs.Func("respect-signals", "`uses` such as train-ai,ai-train: do not fetch or store pages "+
		"whose site disallows them by Content-Usage or Content-Signal", l.readRespect)
	fs.Func("order", "`order` of pages: found, as they are discovered (the default), or rank, by current PageRank",
		l.readOrder)
}

// revisitFlags set when pages are revisited.
func (l *commandLine) revisitFlags(fs *flag.FlagSet) {
	fs.BoolVar(&l.Forever, "forever", false, "when no page is due, wait for the next one instead of ending")
	fs.StringVar(&l.policy, "revisit", "bayes",
		"revisit policy: bayes, feed (bayes for what changes within the hour), mle, aimd, or an interval such as 24h")
	fs.Float64Var(&l.price, "price", 0, "cost of a visit, for bayes, feed and mle: a higher one means fewer visits "+
		"(default 0.5, and 1 for mle)")
	fs.Var(spanIn(&l.least, time.Hour), "least", "minimum `duration` between two visits of a page, for all policies but an interval")
	fs.Var(spanIn(&l.most, stage.Longest), "most", "maximum `duration` between two visits of a page, likewise; "+
		"its Cache-Control, its failures and too many pages of its host make it longer")
	fs.BoolVar(&l.AsFound, "as-found", false,
		"keep tracking parameters and session ids in links, which are removed otherwise")
	fs.BoolVar(&l.Texts, "texts", false,
		"compare texts only: a new date, a counter or a word or two do not count as a change")
	fs.Float64Var(&l.Pace, "pace", 1, "`factor` by which time passes faster for revisits, to watch months "+
		"in minutes; only for the built-in web and other hosts on loopback")
}

// politenessFlags set the delays.
func (l *commandLine) politenessFlags(fs *flag.FlagSet) {
	fs.Var(spanIn(&l.Delay, defaultDelay), "delay", "minimum `duration` between requests to a host or address; "+
		"0.5s by default without seeds; less than 1s only on loopback or with -own")
	fs.Func("group", "hosts that share a delay: domain, for all hosts of a registrable "+
		"domain, or a `file` with one group per line, of hosts and domains", l.readGroups)
	fs.StringVar(&l.OverrideFile, "overrides", "", "`file` with lines such as \"shop.example delay=30s depth=3 pages=500\" "+
		"or \"old.example off\", for a host and each of its subdomains; SIGHUP rereads it")
	fs.Func("shared", "`file` with address ranges that unrelated hosts share, such as those of "+
		"a CDN, one per line: the addresses have no delays, only the hosts", l.readShared)
	fs.BoolVar(&l.own, "own", false, "the hosts are your own: allow a -delay below one second")
	fs.IntVar(&l.Concurrency, "concurrency", 64,
		"requests in flight, each to a different host")
}

// limitFlags limit what the crawl uses, on this machine and on servers.
func (l *commandLine) limitFlags(fs *flag.FlagSet) {
	fs.Int64Var(&l.Pages, "pages", 0, "stop after this many pages, unchanged ones included; 0: no limit")
	fs.Var(bytesIn(&l.Bytes, 0), "bytes", "stop after this many `bytes` of bodies, such as 20GB; 0: no limit")
	fs.Var(spanIn(&l.Duration, 0), "time", "stop after this `duration`, such as 12h or 30d; 0: no limit")
	fs.Var(spanIn(&l.Wait, 3*time.Minute), "wait",
		"maximum `duration` of waiting for retries if there is nothing else to do")
	fs.Var(bytesIn(&l.MinFree, 1<<30), "min-free", "stop when the disk has fewer than this many `bytes` left")
	fs.Var(bytesIn(&l.Memory, 512<<20), "memory",
		"approximate memory budget in `bytes`: stop when nine tenths are in use; 0: no limit")
	fs.IntVar(&l.Queue, "queue", 100_000, "maximum number of pages in flight; others wait on disk")
	fs.Var(spanIn(&l.Timeout, fetch.DefaultTimeout), "timeout", "maximum `duration` of a request")
	fs.Var(bytesIn(&l.MaxBody, fetch.DefaultMaxBody), "max-body", "cut pages after this many `bytes`; at most a sixteenth of -memory")
}

// networkFlags set how requests are sent.
func (l *commandLine) networkFlags(fs *flag.FlagSet) {
	fs.BoolVar(&l.private, "private", false, "allow private and loopback addresses")
	fs.Func("hosts", "`file` in the format of /etc/hosts, consulted before DNS", l.readHosts)
	fs.Func("dns", "`addresses` of name servers, separated by commas, such as "+
		"127.0.0.1:53; empty: those of the system", l.readNameServers)
	fs.StringVar(&l.Proxy, "proxy", "", "`URL` of a proxy; with socks5 it gets addresses, so private ones are "+
		"still refused without -private")
	fs.BoolVar(&l.HTTP1, "http1", false, "do not use HTTP/2")
	fs.Func("header", "`field` to send with each request, such as \"Accept-Language: de\", or only "+
		"to a host and its subdomains, such as \"www.example.org Authorization: Bearer x\" (repeatable)", l.addHeader)
	fs.BoolVar(&l.KeepSecrets, "keep-secrets", false, "store the values of cookies, Authorization and the fields of "+
		"single hosts in the archive, which has \"redacted\" otherwise")
	fs.Func("cookies", "`file` with cookies to send, as written by curl and browser extensions", l.readCookies)
}

// watchFlags set how the crawl can be monitored.
func (l *commandLine) watchFlags(fs *flag.FlagSet) {
	fs.BoolVar(&l.DryRun, "dry-run", false, "print what a crawl would do, and exit")
	fs.StringVar(&l.Listen, "listen", "", "serve a live page at this `address`, such as 127.0.0.1:8080")
	fs.Func("listen-names", "host `names` by which the live page may be addressed, separated by commas, besides "+
		"addresses and localhost", func(text string) error {
		l.ListenNames = hostNames(text)
		return nil
	})
	fs.BoolVar(&l.Pprof, "pprof", false, "serve profiles of this process on the live page, at /debug/pprof/")
	fs.StringVar(&l.LogFile, "log", "", "`file` to append a structured log to, in lines of JSON; SIGHUP reopens it")
	fs.Var(bytesIn(&l.LedgerSize, 1<<30), "ledger", "start a new fates.jsonl when it has this many `bytes`; 0: never")
}
