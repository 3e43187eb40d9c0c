// Command webtest serves a virtual web on loopback, and judges crawlers by its log.
//
//	webtest -check 1s -- wget -r -H -l inf {seed}
//
// runs a crawler in any language and says whether it was polite: whether it left a second between
// two requests to a host or an address, obeyed robots.txt, Crawl-delay and Retry-After, also after
// redirects to other hosts, and so on. It prints a table, with the lines of the log that prove each
// failure. The exit status is 0 if nothing failed, 1 if a check failed, and 2 if there was nothing to
// judge: no check was tested, or the crawler ended with an error before it had all pages, or with
// -static alone at any time. The crawler reaches the web through http_proxy. These words in its
// arguments are replaced:
//
//	{seed}      the URL to start from
//	{proxy}     the URL of an HTTP proxy, for crawlers that take it as an option
//	{resolver}  address and port of a DNS server that knows the hosts
//	{hosts}     a file with the hosts, in the form of /etc/hosts
//
// With one of the last two, the crawler connects by itself, which needs -port 80. Without a command,
// -check serves until it is interrupted, and then judges.
//
// Without -check, it only serves:
//
//	webtest -hosts 20 -pages 100 -port 8080
//	http_proxy=127.16.0.1:8080 wget -r http://h00000.vweb.test/
//
// With -static it serves real pages: every directory DIR/HOST is a host of that name. -check does not
// read the robots.txt files there.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spinneret-go/spinneret/fetch/webtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, err)
	if errors.Is(err, errImpolite) {
		os.Exit(1)
	}
	os.Exit(2)
}

// settings are what the flags say.
type settings struct {
	check    // zero without -check
	web      webtest.Options
	logFile  string
	hostFile string
}

// parse reads the command line.
func parse(args []string, out io.Writer) (s settings, err error) {
	o := &s.web
	flags := flag.NewFlagSet("webtest", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.DurationVar(&s.delay, "check", 0, "judge the crawler after -- by this `delay` between two requests")
	flags.StringVar(&s.format, "format", "table", "of the verdicts: table, json or junit")
	flags.BoolVar(&s.complete, "complete", false, "with -check: missing a page is a failure, too")
	flags.DurationVar(&s.limit, "limit", 10*time.Minute, "with -check: the crawler is stopped after this time (0: never)")
	flags.Uint64Var(&o.Seed, "seed", 1, "seed of the generated web")
	flags.IntVar(&o.Hosts, "hosts", 0, "number of generated hosts (0: 12 with -check, none with -static, else 100)")
	flags.IntVar(&o.Addrs, "addrs", 0, "addresses that the hosts share (0: one per host, at most 250)")
	flags.IntVar(&o.Pages, "pages", 0, "pages per host (0: 8 with -check, else 50)")
	flags.IntVar(&o.Size, "size", 0, "median size of a page in bytes (0: 4096)")
	flags.IntVar(&o.Port, "port", 0, "port to bind on every address (0: any with -check, else 8080)")
	flags.StringVar(&o.Static, "static", "", "serve `DIR`/HOST/PATH")
	flags.BoolVar(&o.TLS, "tls", false, "serve https, with untrusted certificates")
	change := flags.Duration("change", 0, "mean time between two changes of a page (0: none)")
	latency := flags.Duration("latency", 0, "median latency; one response in 20 then takes 3s")
	mixed := flags.Bool("mixed", false, "hosts of many kinds: broken robots.txt files, redirects, refused connections")
	flags.StringVar(&s.logFile, "log", "", "write a line per request to `FILE`")
	flags.StringVar(&s.hostFile, "hosts-file", "", "write all hosts to `FILE`, as in /etc/hosts")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	o.Traits = traits(*mixed, *change, *latency)
	s.command = flags.Args()
	separated := len(args) > len(s.command) && args[len(args)-len(s.command)-1] == "--"
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	switch {
	case len(s.command) > 0 && !separated:
		return s, fmt.Errorf("webtest: unexpected word %q; options start with a dash, and a crawler's command follows --",
			s.command[0])
	case len(s.command) > 0 && !given["check"]:
		return s, errors.New("webtest: a command without -check; want webtest -check 1s -- COMMAND")
	case given["check"] && s.delay <= 0:
		return s, fmt.Errorf("webtest: -check %v: the delay must be positive", s.delay)
	case !given["check"] && (given["format"] || given["complete"] || given["limit"]):
		return s, errors.New("webtest: -format, -complete and -limit need -check")
	case writers[s.format] == nil:
		return s, fmt.Errorf("webtest: -format %q: want table, json or junit", s.format)
	case given["port"] && o.Port == 0:
		return s, errors.New("webtest: -port must not be 0: crawlers have to know the port")
	case s.direct() && o.Port == 0:
		return s, errors.New("webtest: {hosts} and {resolver} need -port 80: the URLs of the web have no port")
	case s.delay == 0 && o.Port == 0:
		o.Port = 8080
	}
	return s, nil
}

// run serves until ctx ends, or judges a crawler.
func run(ctx context.Context, args []string, report, out io.Writer) (err error) {
	s, err := parse(args, out)
	if err != nil {
		return err
	}
	s.web.NoLog = s.delay == 0 // the file has them; memory must not grow with the crawl
	if s.logFile != "" {
		f, err := os.Create(s.logFile)
		if err != nil {
			return fmt.Errorf("webtest: create log: %w", err)
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		s.web.LogTSV = f
	}
	if s.delay > 0 {
		return s.judge(ctx, report, out)
	}
	web, err := webtest.Start(s.web)
	if err != nil {
		return explained(err)
	}
	defer func() { err = errors.Join(err, web.Close()) }()
	if err := writeHosts(s.hostFile, web); err != nil {
		return err
	}
	hosts := slices.Collect(web.Hosts())
	fmt.Fprintf(out, "webtest: serving %d hosts\n", len(hosts))
	fmt.Fprintf(out, "webtest: %s is at %s:%d\n", hosts[0].URL(), hosts[0].Addr, s.web.Port)
	<-ctx.Done()
	return nil
}

// explained adds what to do.
func explained(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w: choose another -port", err)
	}
	return err
}

// traits returns those that the flags ask for, or nil if they ask for none.
func traits(mixed bool, change, latency time.Duration) func(int) webtest.Traits {
	if !mixed && change <= 0 && latency <= 0 {
		return nil
	}
	return func(host int) (t webtest.Traits) {
		if mixed {
			t = webtest.Mixed(host)
		}
		t.Change = webtest.Change{Mean: max(change, 0)}
		if latency > 0 {
			t.Latency = webtest.Latency{Median: latency, Sigma: 0.5, Slow: 3 * time.Second, SlowShare: 0.05}
		}
		return t
	}
}

// writeHosts includes hosts that refuse: a program that finds no name would report another error.
func writeHosts(name string, web *webtest.Web) error {
	if name == "" {
		return nil
	}
	var b []byte
	for h := range web.Hosts() {
		b = fmt.Appendf(b, "%s\t%s\n", h.Addr, h.Name)
	}
	if err := os.WriteFile(name, b, 0o644); err != nil {
		return fmt.Errorf("webtest: write hosts: %w", err)
	}
	return nil
}
