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
	"github.com/spinneret-go/spinneret/examples/cluster/internal/crawl"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
)

// A sentence is an operator's command to a running crawl. It changes the word, and may do more once
// the word is stored.
type sentence struct {
	change func(w *crawl.Word) error
	then   func(ctx context.Context, c *crawl.Crawl) error
}

// say returns the setter of a verb that sends a command to the crawl.
func say(parse func(args []string) (sentence, error)) setter {
	return listed(func(fs *flag.FlagSet) action {
		at := brokerFlags(fs)
		patience := fs.Duration("patience", 5*time.Second,
			"how long to wait for all processes to follow; 0: not at all")
		return func(ctx context.Context, args []string, out, log io.Writer) error {
			s, err := parse(args)
			if err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			return withCrawl(ctx, at, log, func(ctx context.Context, c *crawl.Crawl) error {
				return s.tell(ctx, c, *patience, out)
			})
		}
	})
}

// tell sends the command to the crawl, and shows which processes follow it.
func (s sentence) tell(
	ctx context.Context, c *crawl.Crawl, patience time.Duration, out io.Writer,
) error {
	if s.change != nil {
		revision, err := c.Say(ctx, s.change)
		if err != nil {
			return err
		}
		if err := followed(ctx, c, revision, patience, out); err != nil {
			return err
		}
	}
	if s.then == nil {
		return nil
	}
	return s.then(ctx, c)
}

// followed waits until all processes follow the word, and lists those that do not yet. A process
// that is suspended or cut off follows it before its next request.
func followed(
	ctx context.Context, c *crawl.Crawl, revision uint64, patience time.Duration, out io.Writer,
) error {
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		follow, lag, err := c.Followers(ctx, revision)
		if err != nil {
			return err
		}
		if len(lag) > 0 && time.Now().Before(end) {
			continue
		}
		if len(follow)+len(lag) == 0 {
			fmt.Fprintln(out, "saved; no process is running, and those that start will follow")
			return nil
		}
		fmt.Fprintf(out, "saved; %d processes follow\n", len(follow))
		if len(lag) > 0 {
			fmt.Fprintf(out, "not yet: %s\n", strings.Join(lag, " "))
		}
		return nil
	}
}

// simply returns the parser of a sentence that changes the word and takes no arguments.
func simply(change func(w *crawl.Word)) func([]string) (sentence, error) {
	return func(args []string) (sentence, error) {
		if len(args) > 0 {
			return sentence{}, fmt.Errorf("unexpected argument %q", args[0])
		}
		return sentence{change: func(w *crawl.Word) error { change(w); return nil }}, nil
	}
}

func sayDrain(names []string) (sentence, error) {
	if len(names) == 0 {
		names = []string{"*"}
	}
	return sentence{change: func(w *crawl.Word) error {
		w.Drain = union(w.Drain, names)
		return nil
	}}, nil
}

func sayDeny(entries []string) (sentence, error) {
	if len(entries) == 0 {
		return sentence{}, errors.New("want hosts or deny list entries")
	}
	return sentence{change: func(w *crawl.Word) error {
		w.Deny = union(w.Deny, entries)
		return nil
	}}, nil
}

func sayAllow(entries []string) (sentence, error) {
	if len(entries) == 0 {
		return sentence{}, errors.New("want denied entries; \"cluster word\" lists them")
	}
	return sentence{change: func(w *crawl.Word) error {
		for _, entry := range entries {
			if !slices.Contains(w.Deny, entry) {
				return fmt.Errorf("%q is not denied; \"cluster word\" lists what is", entry)
			}
		}
		w.Deny = slices.DeleteFunc(w.Deny, func(e string) bool {
			return slices.Contains(entries, e)
		})
		return nil
	}}, nil
}

func sayDelay(args []string) (sentence, error) {
	if len(args) != 2 {
		return sentence{}, errors.New("want HOST and a duration such as 30s; 0 removes the delay")
	}
	delay, err := time.ParseDuration(args[1])
	if err != nil || delay < 0 {
		return sentence{}, fmt.Errorf("delay %q: want a duration such as 30s", args[1])
	}
	seed, err := urlfilter.Seed(args[0])
	if err != nil {
		return sentence{}, err
	}
	host := crawl.Host(seed)
	return sentence{change: func(w *crawl.Word) error {
		if delay == 0 {
			delete(w.Delays, host)
			return nil
		}
		if w.Delays == nil {
			w.Delays = map[string]time.Duration{}
		}
		w.Delays[host] = delay
		return nil
	}}, nil
}

func sayScope(args []string) (sentence, error) {
	if len(args) != 1 {
		return sentence{}, errors.New("want page, prefix, host, domain or any")
	}
	var reach urlfilter.Reach
	if err := reach.UnmarshalText([]byte(args[0])); err != nil {
		return sentence{}, err
	}
	return sentence{change: func(w *crawl.Word) error { w.Scope = args[0]; return nil }}, nil
}

func sayAdd(args []string) (sentence, error) {
	seeds, err := canonical(args)
	return sentence{
		change: func(w *crawl.Word) error { w.Seeds = union(w.Seeds, seeds); return nil },
		then:   func(ctx context.Context, c *crawl.Crawl) error { return c.Seed(ctx, seeds) },
	}, err
}

func sayRevisit(args []string) (sentence, error) {
	urls, err := canonical(args)
	return sentence{then: func(ctx context.Context, c *crawl.Crawl) error {
		if err := c.Revisit(ctx, urls); err != nil {
			return err
		}
		if c.Options.Revisit <= 0 {
			return errors.New("the crawl was created without -revisit, so only pages that were " +
				"never fetched are visited")
		}
		return nil
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

// word shows the operator's settings.
func word(fs *flag.FlagSet) action {
	at := brokerFlags(fs)
	return func(ctx context.Context, _ []string, out, log io.Writer) error {
		return withCrawl(ctx, at, log, func(ctx context.Context, c *crawl.Crawl) error {
			w, revision, err := c.Word(ctx)
			if err == nil {
				showWord(out, c, w, revision)
			}
			return err
		})
	}
}

func showWord(out io.Writer, c *crawl.Crawl, w crawl.Word, revision uint64) {
	fmt.Fprintf(out, "revision %d\npaused   %t\n", revision, w.Paused)
	for _, list := range []struct {
		name  string
		items []string
	}{
		{"drain", w.Drain}, {"deny", slices.Concat(c.Deny, w.Deny)}, {"seed", w.Seeds},
	} {
		for _, item := range list.items {
			fmt.Fprintf(out, "%-8s %s\n", list.name, item)
		}
	}
	for _, host := range slices.Sorted(maps.Keys(w.Delays)) {
		fmt.Fprintf(out, "delay    %s %s\n", host, w.Delays[host])
	}
	fmt.Fprintf(out, "scope    %s\n", cmp.Or(w.Scope, c.Scope))
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
