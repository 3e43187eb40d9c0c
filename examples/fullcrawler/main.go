// Command fullcrawler crawls websites politely and stores the responses as WARC files. Without
// arguments it crawls a small virtual web that it serves itself on the loopback interface.
//
// It also shows how the packages of this library fit together. Read this file, then crawl.go,
// open.go, feed.go, route.go, visit.go and revisits.go. They open the packages and call them in the
// order in which a page passes through them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

func main() { os.Exit(program(os.Args[1:])) }

// program runs the command until it finishes or a signal arrives, and returns the exit status.
func program(args []string) (status int) {
	log.SetOutput(io.Discard) // of net/http, which servers can fill
	if cockpit.Crawls(args) { // a SIGHUP while the lists are read must not kill it; it reads them again
		signal.Notify(hangups, syscall.SIGHUP)
	}
	ctx, stop := signalContext(context.Background())
	afterSignal(ctx, stop)
	return command(ctx, args, os.Stdout, os.Stderr)
}

// afterSignal lets a later Ctrl-C kill the program. It is patient at first: timeout, for example, sends a
// signal to the program and another one to its group.
func afterSignal(ctx context.Context, stop func()) {
	context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, stop) })
}

// hangups has a value when the lists are to be read again.
var hangups = make(chan os.Signal, 1)

// machine is the network that requests use. Tests replace it.
var machine stage.Network

// signalContext returns a context that Ctrl-C or a termination signal ends.
func signalContext(parent context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
}

// command runs the program and returns its exit status: 0 also when the user or one of his limits
// ended the crawl, 1 when it failed, 2 when the command line is invalid.
func command(ctx context.Context, args []string, out, log io.Writer) int {
	cfg, isCrawl, status := cockpit.CommandLine(ctx, args, out, log)
	if !isCrawl {
		return status
	}
	return cockpit.Exit(log, crawl(ctx, cfg, out, log))
}

// crawl runs one crawl and reports on it.
func crawl(ctx context.Context, cfg cockpit.Config, out, log io.Writer) (err error) {
	if cfg.Memory > 0 {
		debug.SetMemoryLimit(cfg.Memory) // the buffers that grow with the crawl are shares of it
	}
	var last *crawler
	for {
		last, err = crawlOnce(ctx, cfg, last, hangups, out, log)
		if !errors.Is(err, cockpit.ErrReopen) {
			return err
		}
		fmt.Fprintln(log, err)
		cfg = last.Cfg // with the lists that it has read
		cfg.Fresh = false
	}
}

// crawlOnce runs a crawl until it ends, or until its pages must be reopened. last is the crawl that
// was reopened, or nil.
func crawlOnce(
	ctx context.Context, cfg cockpit.Config, last *crawler, hangups <-chan os.Signal, out, log io.Writer,
) (c *crawler, err error) {
	dir, err := cfg.Claim()
	if err != nil {
		return nil, err
	}
	web := machine
	if cfg.Demo {
		served, err := cfg.ServeDemo(log)
		if err != nil {
			return nil, errors.Join(err, dir.Close())
		}
		defer served.Close()
		web = cockpit.On(served)
	}
	if c, err = openCrawler(dir, cfg, web); err != nil {
		return nil, err
	}
	if last != nil {
		c.goOn(last)
	}
	hide, err := c.Show(dir, log)
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	defer func() { err = errors.Join(err, hide()) }()
	done := c.ShowProgress(log)
	var reloads sync.WaitGroup
	defer reloads.Wait()
	reloads.Go(func() { cockpit.OnHangup(c.ending, hangups, c.reload) }) // later ones are for the next crawl
	c.Log.Info("started", "out", cfg.Out, "seeds", len(cfg.Seeds), "hosts", c.Hosts.Count())
	err = c.run(ctx)
	if err == nil {
		err = c.silence()
	}
	done()
	c.Log.Info("ended", "why", cockpit.Reason(err), "pages", c.Tally.Sum().Pages, "error", fmt.Sprint(err))
	if errors.Is(err, cockpit.ErrReopen) {
		return c, err
	}
	return c, c.Conclude(out, err)
}
