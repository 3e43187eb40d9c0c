// Command webtest serves a virtual web on loopback until it is interrupted.
//
//	webtest -hosts 20 -pages 100 -port 8080
//	http_proxy=127.16.0.1:8080 wget -r http://h00000.vweb.test/
//
// With -static it serves real pages instead: every directory DIR/HOST is a host of that name.
// Foreign programs find the hosts through a proxy setting, as above, or through -hosts-file.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spinneret-go/spinneret/fetch/webtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, out io.Writer) (err error) {
	var o webtest.Options
	flags := flag.NewFlagSet("webtest", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Uint64Var(&o.Seed, "seed", 1, "seed of the generated web")
	flags.IntVar(&o.Hosts, "hosts", 0, "number of generated hosts (0: 100, or none with -static)")
	flags.IntVar(&o.Addrs, "addrs", 0, "addresses that the hosts share (0: one per host, at most 250)")
	flags.IntVar(&o.Pages, "pages", 0, "pages per host (0: 50)")
	flags.IntVar(&o.Size, "size", 0, "median size of a page in bytes (0: 4096)")
	flags.IntVar(&o.Port, "port", 8080, "port to bind on every address")
	flags.StringVar(&o.Static, "static", "", "serve `DIR`/HOST/PATH")
	flags.BoolVar(&o.TLS, "tls", false, "serve https, with untrusted certificates")
	change := flags.Duration("change", 0, "mean time between two changes of a page (0: none)")
	latency := flags.Duration("latency", 0, "median latency; one response in 20 then takes 3s")
	mixed := flags.Bool("mixed", false, "hosts of many kinds: broken robots.txt files, redirects, refused connections")
	logFile := flags.String("log", "", "write a line per request to `FILE`")
	hostsFile := flags.String("hosts-file", "", "write all hosts to `FILE`, as in /etc/hosts")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.Port == 0 {
		return errors.New("webtest: -port must not be 0: crawlers have to know the port")
	}
	o.Traits = traits(*mixed, *change, *latency)
	o.NoLog = true // the file has them; memory must not grow with the crawl
	if *logFile != "" {
		f, err := os.Create(*logFile)
		if err != nil {
			return fmt.Errorf("webtest: create log: %w", err)
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		o.LogTSV = f
	}
	web, err := webtest.Start(o)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w: choose another -port", err)
	case err != nil:
		return err
	}
	defer func() { err = errors.Join(err, web.Close()) }()
	if *hostsFile != "" {
		if err := writeHosts(*hostsFile, web); err != nil {
			return err
		}
	}
	first := announce(out, web)
	fmt.Fprintf(out, "webtest: %s is at %s:%d\n", first.URL(), first.Addr, o.Port)
	<-ctx.Done()
	return nil
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

// announce says how large the web is, and returns its first host.
func announce(out io.Writer, web *webtest.Web) (first webtest.Host) {
	n := 0
	for h := range web.Hosts() {
		if n == 0 {
			first = h
		}
		n++
	}
	fmt.Fprintf(out, "webtest: serving %d hosts\n", n)
	return first
}

// writeHosts includes hosts that refuse: a program that finds no name would report another error.
func writeHosts(name string, web *webtest.Web) error {
	var b []byte
	for h := range web.Hosts() {
		b = fmt.Appendf(b, "%s\t%s\n", h.Addr, h.Name)
	}
	if err := os.WriteFile(name, b, 0o644); err != nil {
		return fmt.Errorf("webtest: write hosts: %w", err)
	}
	return nil
}
