// Command threerooms is a polite crawler of one site, out of three rooms: scheduler says when,
// robots says whether, and fetch gets the page and finds its links. It is to be read, and to be
// taken as a beginning:
//
//	go run ./examples/threerooms -contact https://you.example/bot https://www.example.org/
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/scheduler"
)

func main() {
	contact := flag.String("contact", "", "URL or e-mail address at which site owners reach you")
	turns := flag.Int("turns", 20, "at most this many requests")
	delay := flag.Duration("delay", scheduler.DefaultHostDelay, "pause between two requests")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, flag.Arg(0), *contact, *turns, *delay); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const agent = "threerooms"

func run(ctx context.Context, seed, contact string, turns int, delay time.Duration) error {
	seed, err := weburl.Canonical(seed)
	if err != nil {
		return fmt.Errorf("seed: %w; want one such as https://www.example.org/", err)
	}
	site := weburl.Host(seed)
	client, err := fetch.New(fetch.Options{UserAgent: fmt.Sprintf("%s/1.0 (+%s)", agent, contact)})
	if err != nil {
		return err
	}
	defer client.CloseIdle()
	c := newCrawler(client, site, delay)
	c.add(seed)
	shown := 0
	err = c.run(ctx, turns, func(page *fetch.Response) {
		fmt.Println(page.Status, page.URL, len(page.Body))
		shown++
	})
	switch {
	case !errors.Is(err, scheduler.ErrDrained):
		return err
	case shown == 0:
		return fmt.Errorf("the robots.txt of %s is out of reach, or forbids all", site)
	}
	return nil // that was the whole site
}

func newCrawler(client *fetch.Client, site string, delay time.Duration) *crawler {
	return &crawler{
		client: client,
		rules:  &robots.Pending[string]{Cache: robots.NewCache(robots.Options{Agent: agent})},
		asked:  map[string]robots.Request{},
		queue:  scheduler.New[string](scheduler.Options{HostDelay: delay}),
		seen:   map[string]bool{},
		site:   site,
	}
}
