// Command fullcrawler crawls websites politely and keeps what it gets as WARC files. Without
// arguments it crawls a small virtual web that it serves itself on the loopback interface.
//
// It is also the example of how the rooms of this library fit together: crawler in crawl.go is the
// whole wiring.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"

	"github.com/spinneret-go/spinneret/examples/internal/stage"

	"github.com/spinneret-go/spinneret/fetch/webtest"
)

func main() { os.Exit(program(os.Args[1:])) }

// program runs until it is through, or until a signal ends it.
func program(args []string) (status int) {
	ctx, stop := signalContext(context.Background())
	// A second Ctrl-C ends the program the hard way.
	context.AfterFunc(ctx, stop)
	return command(ctx, args, os.Stdout, os.Stderr)
}

// machine is where requests go. Tests lead them to a web of their own.
var machine network

// signalContext ends with Ctrl-C and the like.
func signalContext(parent context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
}

// command runs the program and returns its exit status: 0 also when a limit or the user ended the
// crawl, 1 when it failed, 2 when the command line makes no sense. It is that of a crawl, or begins
// with the name of a subcommand.
func command(ctx context.Context, args []string, out, log io.Writer) int {
	if len(args) > 0 {
		if slices.Contains([]string{"version", "-version", "--version"}, args[0]) {
			fmt.Fprintln(out, "fullcrawler", cockpit.Version())
			return 0
		}
		if s, known := cockpit.Subcommands()[args[0]]; known {
			return cockpit.RunSubcommand(ctx, args[0], s, args[1:], out, log)
		}
	}
	cfg, err := cockpit.ParseFlags(args, log)
	switch {
	case errors.Is(err, flag.ErrHelp):
		cockpit.Help(out)
		return 0
	case err != nil:
		fmt.Fprintln(log, "fullcrawler:", err)
		return 2
	}
	run := func() error { return crawl(ctx, cfg, out, log) }
	if cfg.DryRun {
		run = func() error { return dryRun(cfg, out) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(log, "fullcrawler:", err)
		return 1
	}
	return 0
}

// crawl runs one crawl and reports on it.
func crawl(ctx context.Context, cfg cockpit.Config, out, log io.Writer) (err error) {
	if cfg.Memory > 0 {
		debug.SetMemoryLimit(cfg.Memory) // the buffers that grow with the crawl are shares of it
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	for {
		err := crawlOnce(ctx, cfg, hangups, out, log)
		if !errors.Is(err, cockpit.ErrReopen) {
			return err
		}
		fmt.Fprintln(log, err)
		cfg.Fresh = false
		if err := cfg.ReadDeny(); err != nil {
			return err
		}
	}
}

// crawlOnce runs a crawl until it ends, or until its pages have to be opened anew.
func crawlOnce(
	ctx context.Context, cfg cockpit.Config, hangups <-chan os.Signal, out, log io.Writer,
) (err error) {
	dir, err := claim(cfg)
	if err != nil {
		return err
	}
	web := machine
	switch {
	case cfg.Demo:
		served, err := serveDemo(cfg)
		if err != nil {
			return errors.Join(fmt.Errorf("serve the built-in web: %w", err), dir.Close())
		}
		defer served.Close()
		web = on(served)
		for host := range served.Hosts() {
			cfg.Seeds = append(cfg.Seeds, host.URL())
		}
		fmt.Fprintf(log, "No seeds given: crawling a virtual web of %d hosts on %d loopback addresses.\n"+
			"To crawl a real site: fullcrawler -contact https://you.example/bot https://www.example.org/\n\n",
			demoWeb.Hosts, demoWeb.Addrs)
	}
	c, err := openCrawler(dir, cfg, web)
	if err != nil {
		return err
	}
	logger, file, err := openLog(cfg.LogFile)
	if err != nil {
		return errors.Join(err, c.close())
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	c.Log = logger
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go c.reloadOnHangup(watching, hangups)
	if cfg.Listen != "" {
		at, err := c.Listen(cfg.Listen)
		if err == nil {
			err = dir.Announce(at)
		}
		if err != nil {
			return errors.Join(err, c.close())
		}
		fmt.Fprintln(log, "live page:", at)
	}
	for _, warning := range c.warnings {
		fmt.Fprintln(log, "warning:", warning)
		c.Log.Warn(warning)
	}
	done := c.ShowProgress(log)
	c.Log.Info("begun", "out", cfg.Out, "seeds", len(cfg.Seeds), "hosts", c.Hosts.Count())
	err = c.run(ctx)
	done()
	c.Log.Info("ended", "why", cockpit.Reason(err), "pages", c.Tally.Sum().Pages, "error", fmt.Sprint(err))
	if errors.Is(err, cockpit.ErrReopen) {
		return err
	}
	return c.Conclude(out, err)
}

// serveDemo starts the built-in web, whose pages change as fast as they come due: by the clock of
// the crawl.
func serveDemo(cfg cockpit.Config) (*webtest.Web, error) {
	clock, err := stage.OpenClock(filepath.Join(cfg.Out, cockpit.BeganName), cfg.Pace)
	if err != nil {
		return nil, err
	}
	web := demoWeb
	web.Now = clock.Now
	return webtest.Start(web)
}

// on leads all requests to a virtual web.
func on(web *webtest.Web) network {
	return network{
		resolve: func(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
			addrs, err := web.Resolve(ctx, host)
			return addrs, time.Hour, err
		},
		dial:  web.Dial,
		roots: web.Roots(),
	}
}

// demoWeb is a web of some hundred pages with a bit of everything a crawler meets.
var demoWeb = webtest.Options{
	Seed:  2026,
	Hosts: 40,
	Addrs: 25,
	Pages: 10,
	Traits: func(host int) webtest.Traits {
		switch host {
		case 2:
			return webtest.Traits{Sitemap: webtest.Sitemap{Orphans: 5, Index: true}}
		case 3:
			return webtest.Traits{Robots: webtest.Robots{CrawlDelay: cockpit.DemoCrawlDelay}}
		case 5:
			return webtest.Traits{Robots: webtest.Robots{Mode: webtest.RobotsMissing}, Gzip: true}
		case 7:
			return webtest.Traits{Robots: webtest.Robots{Mode: webtest.RobotsError}}
		case 11:
			return webtest.Traits{Traps: webtest.TrapLoop | webtest.TrapBroken | webtest.TrapBomb | webtest.TrapShort}
		case 13:
			return webtest.Traits{Refuse: true}
		}
		return webtest.Traits{
			Gzip: host%2 == 0, Redirects: 0.1, Change: webtest.Change{Mean: 5 * 24 * time.Hour, Sigma: 1},
		}
	},
}
