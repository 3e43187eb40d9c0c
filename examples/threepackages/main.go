// Command threepackages is a polite crawler for one site, built from three packages: scheduler
// decides when to fetch, robots whether, and fetch gets the page and finds its links. Use it as a
// starting point for your own:
//
//	go run ./examples/threepackages -contact https://you.example/bot https://www.example.org/
//	go run ./examples/threepackages -localhost http://localhost:8080/
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/page"
	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/robots/robotstxt"
	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/spinneret-go/spinneret/scheduler/schedulerhttp"
)

func main() {
	contact := flag.String("contact", "", "URL or e-mail address where site owners can reach you")
	local := flag.Bool("localhost", false, "crawl a site on this machine; needs no -contact")
	pages := flag.Int("pages", 20, "maximum number of pages")
	delay := flag.Duration("delay", scheduler.DefaultHostDelay, "politeness delay: pause between two requests")
	flag.Parse()
	if flag.NArg() != 1 || *pages < 1 || *delay <= 0 {
		fmt.Fprintln(os.Stderr, "usage: threepackages [flags] URL (the flags come first; -pages and -delay are positive)")
		flag.PrintDefaults()
		os.Exit(2)
	}
	log.SetOutput(io.Discard) // of net/http, which servers can fill
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	options := fetch.Options{}
	if *contact != "" || !*local {
		options.UserAgent = fmt.Sprintf("%s/1.0 (+%s)", agent, *contact)
	}
	if *local {
		options.Reach = fetch.Loopback
	}
	err := crawl(ctx, flag.Arg(0), *pages, *delay, options, os.Stdout)
	if ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "threepackages:", err)
		os.Exit(1)
	}
}

const agent = "threepackages"

// crawl prints the status, URL and size of each page of one site.
func crawl(ctx context.Context, seed string, pages int, delay time.Duration, o fetch.Options, out io.Writer) error {
	seed, err := weburl.Canonical(seed)
	if err != nil {
		return fmt.Errorf("%w; want a URL such as https://www.example.org/", err)
	}
	client, err := fetch.New(o)
	if errors.Is(err, fetch.NoContact) {
		return errors.New("set -contact to a URL or an e-mail address, or -localhost for a site on this machine")
	}
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	site := weburl.Host(seed)
	queue := scheduler.New[string](scheduler.Options{HostDelay: delay})
	cache := robots.NewCache(robots.Options{Agent: agent, Client: &http.Client{
		Transport: schedulerhttp.Over(client.Transport(), queue), // robots.txt takes turns, like pages
	}})
	seen := map[string]bool{}
	add := func(link string) { // enqueues new links of the site
		url, err := weburl.Canonical(link)
		if err == nil && weburl.Host(url) == site && !seen[url] {
			seen[url] = queue.Add(scheduler.Task[string]{Host: site, Item: url}) == nil
		}
	}
	add(seed)
	for lease, err := range queue.Leases(ctx) { // waits between requests; ends when the queue is empty
		if err != nil {
			return err
		}
		url := lease.Item()
		rules, err := cache.Load(lease.Context(ctx), url)
		if delay, ok := rules.Delay(); ok {
			queue.SetHost(lease.Host(), scheduler.Host{CrawlDelay: delay})
		}
		if err != nil || !rules.Allowed(url) {
			lease.Done(scheduler.Outcome{Skipped: true})
			if url == seed {
				return whyNot(cache, rules, url, err)
			}
			continue
		}
		if !lease.Held() { // robots.txt was fetched in this turn; the page has to wait for the next one
			lease.Requeue(scheduler.Outcome{}, time.Time{})
			continue
		}
		got, err := client.Get(ctx, url)
		if err != nil { // the scheduler backs off
			lease.Done(scheduler.Outcome{Failed: true})
			fmt.Fprintln(out, err)
			continue
		}
		lease.Done(scheduler.Outcome{Start: got.FirstByte, Took: got.Wait(), Status: got.Status,
			RetryAfter: got.FirstByte.Add(got.RetryAfter)})
		fmt.Fprintln(out, got.Status, url, len(got.Body))
		add(got.Location) // a redirect is a link like any other
		for link, err := range page.Links(got.Body, got.URL, got.Header.Get("Content-Type")) {
			if err == nil && link.Kind == page.Anchor && !link.NoFollow {
				add(link.URL)
			}
		}
		client.Release(got)
		if pages--; pages <= 0 {
			return nil
		}
	}
	return nil
}

// whyNot says why a URL may not be fetched.
func whyNot(cache *robots.Cache, rules robotstxt.Rules, url string, err error) error {
	entry, _ := cache.Entry(url)
	verdict := rules.Match(url)
	switch {
	case errors.Is(err, fetch.Blocked):
		return fmt.Errorf("%w (-localhost is for sites on this machine)", err)
	case err != nil:
		return err
	case entry.Failures > 0:
		return fmt.Errorf("%s is unreachable, so nothing may be fetched: %s", entry.URL, entry.Reason)
	}
	return fmt.Errorf("%s forbids %s: line %d, %s", entry.URL, url, verdict.Line, verdict.Pattern)
}
