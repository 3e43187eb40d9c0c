package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/crawl"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
)

// An instruction is an operator's command to a running crawl. It changes the settings, and may do
// more once they are stored.
type instruction struct {
	change func(s *crawl.Settings) error
	then   func(ctx context.Context, c *crawl.Crawl) error
}

// instruct returns the setter of a verb that sends a command to the crawl.
func instruct(parse func(args []string) (instruction, error)) setter {
	return listed(func(fs *flag.FlagSet) action {
		at := brokerFlags(fs)
		patience := fs.Duration("patience", 5*time.Second,
			"how long to wait for all processes to follow; 0: not at all")
		return func(ctx context.Context, args []string, out, log io.Writer) error {
			i, err := parse(args)
			if err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			return withCrawl(ctx, at, log, func(ctx context.Context, c *crawl.Crawl) error {
				return i.send(ctx, c, *patience, out)
			})
		}
	})
}

// send sends the instruction to the crawl, and shows which processes follow it.
func (i instruction) send(
	ctx context.Context, c *crawl.Crawl, patience time.Duration, out io.Writer,
) error {
	if i.change != nil {
		revision, err := c.Change(ctx, i.change)
		if err != nil {
			return err
		}
		if err := followed(ctx, c, revision, patience, out); err != nil {
			return err
		}
	}
	if i.then == nil {
		return nil
	}
	return i.then(ctx, c)
}

// followed waits until all processes follow the settings, and lists those that do not yet. A
// process that is suspended or cut off follows them before its next request.
func followed(
	ctx context.Context, c *crawl.Crawl, revision uint64, patience time.Duration, out io.Writer,
) error {
	if patience <= 0 {
		fmt.Fprintln(out, "saved")
		return nil
	}
	attempt, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	follow, lag, err := c.Followers(attempt, revision)
	switch {
	case err != nil:
		return err
	case len(follow)+len(lag) == 0:
		fmt.Fprintln(out, "saved; no process is running, and those that start will follow")
		return nil
	}
	fmt.Fprintf(out, "saved; %d processes follow\n", len(follow))
	if len(lag) > 0 {
		fmt.Fprintf(out, "not yet: %s\n", strings.Join(lag, " "))
	}
	return nil
}

// simply returns the parser of an instruction that changes the settings and takes no arguments.
func simply(change func(s *crawl.Settings)) func([]string) (instruction, error) {
	return func(args []string) (instruction, error) {
		if len(args) > 0 {
			return instruction{}, fmt.Errorf("unexpected argument %q", args[0])
		}
		return instruction{change: func(s *crawl.Settings) error { change(s); return nil }}, nil
	}
}

func parseDrain(names []string) (instruction, error) {
	if len(names) == 0 {
		names = []string{"*"}
	}
	return instruction{change: func(s *crawl.Settings) error {
		s.Drain = union(s.Drain, names)
		return nil
	}}, nil
}

func parseDeny(entries []string) (instruction, error) {
	if len(entries) == 0 {
		return instruction{}, errors.New("want hosts or deny list entries")
	}
	return instruction{change: func(s *crawl.Settings) error {
		s.Deny = union(s.Deny, entries)
		return nil
	}}, nil
}

func parseAllow(entries []string) (instruction, error) {
	if len(entries) == 0 {
		return instruction{}, errors.New("want denied entries; \"cluster settings\" lists them")
	}
	return instruction{change: func(s *crawl.Settings) error {
		for _, entry := range entries {
			if !slices.Contains(s.Deny, entry) {
				return fmt.Errorf("%q was not denied by \"cluster deny\"; \"cluster settings\" lists "+
					"what was; the list of -deny cannot change", entry)
			}
		}
		s.Deny = slices.DeleteFunc(s.Deny, func(e string) bool {
			return slices.Contains(entries, e)
		})
		return nil
	}}, nil
}

func parseDelay(args []string) (instruction, error) {
	if len(args) != 2 {
		return instruction{}, errors.New("want HOST and a duration such as 30s; 0 removes the delay")
	}
	delay, err := time.ParseDuration(args[1])
	if err != nil || delay < 0 {
		return instruction{}, fmt.Errorf("delay %q: want a duration such as 30s", args[1])
	}
	seed, err := urlfilter.Seed(args[0])
	if err != nil {
		return instruction{}, err
	}
	host := weburl.Host(seed)
	return instruction{change: func(s *crawl.Settings) error {
		if delay == 0 {
			delete(s.Delays, host)
			return nil
		}
		if s.Delays == nil {
			s.Delays = map[string]time.Duration{}
		}
		s.Delays[host] = delay
		return nil
	}}, nil
}

func parseScope(args []string) (instruction, error) {
	if len(args) != 1 {
		return instruction{}, errors.New("want page, prefix, host, domain or any")
	}
	var reach urlfilter.Reach
	if err := reach.UnmarshalText([]byte(args[0])); err != nil {
		return instruction{}, err
	}
	return instruction{change: func(s *crawl.Settings) error { s.Scope = args[0]; return nil }}, nil
}

func parseAdd(args []string) (instruction, error) {
	seeds, err := canonical(args)
	return instruction{
		change: func(s *crawl.Settings) error { s.Seeds = union(s.Seeds, seeds); return nil },
		then:   func(ctx context.Context, c *crawl.Crawl) error { return c.Seed(ctx, seeds) },
	}, err
}

func parseRevisit(args []string) (instruction, error) {
	urls, err := canonical(args)
	return instruction{then: func(ctx context.Context, c *crawl.Crawl) error {
		return c.Revisit(ctx, urls)
	}}, err
}

func canonical(args []string) (urls []string, err error) {
	if len(args) == 0 {
		return nil, errors.New("want URLs")
	}
	for _, arg := range args {
		url, err := urlfilter.Seed(arg)
		if err != nil {
			return nil, err
		}
		urls = append(urls, url)
	}
	return urls, nil
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
			if err == nil {
				showSettings(out, c, s, revision)
			}
			return err
		})
	}
}

func showSettings(out io.Writer, c *crawl.Crawl, s crawl.Settings, revision uint64) {
	fmt.Fprintf(out, "revision %d\npaused   %t\n", revision, s.Paused)
	for _, list := range []struct {
		name  string
		items []string
	}{
		{"drain", s.Drain}, {"-deny", c.Deny}, {"deny", s.Deny}, {"seed", s.Seeds},
	} {
		for _, item := range list.items {
			fmt.Fprintf(out, "%-8s %s\n", list.name, item)
		}
	}
	for _, host := range slices.Sorted(maps.Keys(s.Delays)) {
		fmt.Fprintf(out, "delay    %s %s\n", host, s.Delays[host])
	}
	fmt.Fprintf(out, "scope    %s\n", cmp.Or(s.Scope, c.Scope))
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
			"(\"cluster up\" starts three, -nats names others, Ctrl-C ends this)\n", jet.Redacted(o.URL), why)
	}
	return jet.Connect(ctx, *o)
}
