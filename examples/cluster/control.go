package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/crawl"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
)

// An order changes the settings by the arguments of a command.
type order func(s *crawl.Settings, args []string) error

// instruct sets up a verb that gives an order.
func instruct(change order) func(fs *flag.FlagSet) action {
	return func(fs *flag.FlagSet) action {
		at := brokerFlags(fs)
		return func(ctx context.Context, args []string, out, log io.Writer) error {
			return withCrawl(ctx, at, log, func(ctx context.Context, c *crawl.Crawl) error {
				revision, err := c.Change(ctx, func(s *crawl.Settings) error { return change(s, args) })
				if err == nil {
					fmt.Fprintf(out, "saved as revision %d, which all processes follow within moments\n", revision)
				}
				return err
			})
		}
	}
}

func pause(s *crawl.Settings, _ []string) error { s.Paused = true; return nil }

func unpause(s *crawl.Settings, _ []string) error { s.Paused, s.Drain = false, nil; return nil }

func drain(s *crawl.Settings, names []string) error {
	if len(names) == 0 {
		names = []string{"*"}
	}
	s.Drain = union(s.Drain, names)
	return nil
}

func deny(s *crawl.Settings, entries []string) error { s.Deny = union(s.Deny, entries); return nil }

func allow(s *crawl.Settings, entries []string) error {
	before := len(s.Deny)
	s.Deny = slices.DeleteFunc(s.Deny, func(e string) bool { return slices.Contains(entries, e) })
	if len(s.Deny) != before-len(entries) {
		return errors.New("not all of these were denied by \"cluster deny\"; \"cluster settings\" lists what was; " +
			"the list of -deny cannot change")
	}
	return nil
}

func delay(s *crawl.Settings, args []string) error {
	delay, err := time.ParseDuration(args[1])
	if err != nil || delay < 0 {
		return fmt.Errorf("%w: delay %q: want a duration such as 30s; 0 removes the delay", errUsage, args[1])
	}
	url, err := urlfilter.Seed(args[0])
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if s.Delays == nil {
		s.Delays = map[string]time.Duration{}
	}
	s.Delays[weburl.Host(url)] = delay
	return nil
}

func scope(s *crawl.Settings, args []string) error { s.Scope = args[0]; return nil }

// add sends seeds to the crawl, which also widen the scope.
func add(fs *flag.FlagSet) action {
	return feed(fs, func(ctx context.Context, c *crawl.Crawl, urls []string) error {
		_, err := c.Change(ctx, func(s *crawl.Settings) error { s.Seeds = union(s.Seeds, urls); return nil })
		if err != nil {
			return err
		}
		return c.Seed(ctx, urls)
	})
}

// revisit lets pages be visited again.
func revisit(fs *flag.FlagSet) action {
	return feed(fs, func(ctx context.Context, c *crawl.Crawl, urls []string) error { return c.Revisit(ctx, urls) })
}

// feed sends URLs to the crawl.
func feed(fs *flag.FlagSet, send func(ctx context.Context, c *crawl.Crawl, urls []string) error) action {
	at := brokerFlags(fs)
	return func(ctx context.Context, args []string, _, log io.Writer) error {
		urls, err := readSeeds(args, "", log)
		if err != nil {
			return err
		}
		return withCrawl(ctx, at, log, func(ctx context.Context, c *crawl.Crawl) error { return send(ctx, c, urls) })
	}
}

func union(old, more []string) []string {
	for _, s := range more {
		if !slices.Contains(old, s) {
			old = append(old, s)
		}
	}
	return old
}

// settings shows what the operator has set.
func settings(fs *flag.FlagSet) action {
	at := brokerFlags(fs)
	return func(ctx context.Context, _ []string, out, log io.Writer) error {
		return withCrawl(ctx, at, log, func(ctx context.Context, c *crawl.Crawl) error {
			s, revision, err := c.Settings(ctx)
			if err != nil {
				return err
			}
			text, err := json.MarshalIndent(s, "", "  ")
			fmt.Fprintf(out, "revision %d\n%s\n", revision, text)
			return err
		})
	}
}

// withCrawl connects to the brokers, opens the crawl and calls do.
func withCrawl(
	ctx context.Context, at *jet.Options, log io.Writer,
	do func(ctx context.Context, c *crawl.Crawl) error,
) error {
	return withBrokers(ctx, at, log, func(ctx context.Context, bus *jet.Bus) error {
		c, err := crawl.Open(ctx, bus)
		switch {
		case err == nil:
			err = do(ctx, c)
		case errors.Is(err, crawl.ErrNone):
			err = fmt.Errorf("%w: the brokers have no crawl %q; create it with \"cluster create\", or "+
				"name another with -crawl", err, at.Crawl)
		}
		return err
	})
}

// withBrokers connects to the brokers and calls do. If the brokers refuse this process, the context
// of do ends, and the refusal is the error.
func withBrokers(
	ctx context.Context, at *jet.Options, log io.Writer,
	do func(ctx context.Context, bus *jet.Bus) error,
) error {
	bus, err := connectTo(ctx, at, log)
	if err != nil {
		return err
	}
	defer bus.Close()
	ctx, cancel := bus.Bound(ctx)
	defer cancel()
	err = do(ctx, bus)
	return cmp.Or(bus.Refused(), err)
}

// connectTo connects to the brokers. While they do not answer, it reports on log what it waits for.
func connectTo(ctx context.Context, o *jet.Options, log io.Writer) (*jet.Bus, error) {
	o.Waiting = func(why error) {
		if why == nil {
			fmt.Fprintln(log, "cluster: the brokers answer")
			return
		}
		fmt.Fprintf(log, "cluster: no answer from %s: %v; waiting until a broker is there "+
			"(\"nats-server -js\" starts one, -nats names others, Ctrl-C ends this)\n", jet.Redacted(o.URL), why)
	}
	return jet.Connect(ctx, *o)
}
