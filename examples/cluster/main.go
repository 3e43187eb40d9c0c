// Command cluster crawls with any number of processes that share the work over NATS JetStream.
//
//	cluster create -contact … SEED … create a crawl with its options and seeds
//	cluster run -dir archive1        run one process of it; start as many as you like, anywhere
//	cluster status                   show progress, and what each process does
//	cluster wait                     wait until nothing is left to fetch
//	cluster pause, drain, deny …     control the crawl while it runs
//
// README.md explains how it works, and OPERATING.md how to run it in production.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/nats-io/nats.go"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
)

func main() {
	log.SetOutput(io.Discard) // of net/http, which servers can fill
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second Ctrl-C kills the program.
	context.AfterFunc(ctx, stop)
	os.Exit(command(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// A verb is one sub-command. It defines its flags and returns the action to run after parsing.
type verb struct {
	name, does string
	set        setter
}

// An action runs a sub-command.
type action func(ctx context.Context, args []string, out, log io.Writer) error

var verbs = []verb{
	{"create", "create a crawl with its seeds", listed(create)},
	{"run", "run one process of a crawl", bare(run)},
	{"status", "show the progress of a crawl", bare(status)},
	{"pause", "make no requests until resume", instruct(0, 0, pause)},
	{"resume", "continue after pause, and let drained processes start again", instruct(0, 0, unpause)},
	{"drain", "let all processes, or the NAMEs, finish requests in flight and exit", instruct(0, anyNumber, drain)},
	{"deny", "stop fetching from a host, or URLs that match a deny list ENTRY", instruct(1, anyNumber, deny)},
	{"allow", "undo deny of each ENTRY", instruct(1, anyNumber, allow)},
	{"delay", "set the minimum delay between requests: HOST 30s", instruct(2, 2, delay)},
	{"add", "add URLs as seeds, which also widen the scope", listed(add)},
	{"revisit", "visit pages again as soon as possible, by URL", listed(revisit)},
	{"scope", "how far to follow links: page, prefix, host, domain or any", instruct(1, 1, scope)},
	{"settings", "show the settings made by pause, deny, delay and so on", bare(settings)},
	{"wait", "wait until nothing is left to fetch", bare(wait)},
	{"plan", "compute what a crawl needs: brokers, disks, memory, partitions", bare(plan)},
	{"merge", "make one view of the archives of many processes", listed(merge)},
}

// A setter sets up the flags of a verb.
type setter func(fs *flag.FlagSet) action

// bare returns the setter of a verb that takes only flags.
func bare(set setter) setter {
	return checked(set, func(arg string) error {
		return fmt.Errorf("%w: unexpected argument %q: only flags are allowed, see -h", errUsage, arg)
	})
}

// listed returns the setter of a verb that takes arguments. A flag among them is an error, as it
// would be taken for a seed or a host.
func listed(set setter) setter {
	return checked(set, func(arg string) error {
		if len(arg) > 1 && arg[0] == '-' {
			return fmt.Errorf("%w: %s follows the arguments: put flags first", errUsage, arg)
		}
		return nil
	})
}

// checked checks each argument before the verb runs.
func checked(set setter, check func(arg string) error) setter {
	return func(fs *flag.FlagSet) action {
		do := set(fs)
		return func(ctx context.Context, args []string, out, log io.Writer) error {
			for _, arg := range args {
				if err := check(arg); err != nil {
					return err
				}
			}
			return do(ctx, args, out, log)
		}
	}
}

// errUsage reports an invalid command line.
var errUsage = errors.New("usage")

// command runs the program and returns its exit status: 1 if it failed, 2 if the command line is
// invalid.
func command(ctx context.Context, args []string, out, log io.Writer) int {
	for _, v := range verbs {
		if len(args) == 0 || args[0] != v.name {
			continue
		}
		fs := flag.NewFlagSet("cluster "+v.name, flag.ContinueOnError)
		fs.SetOutput(log)
		do := v.set(fs)
		switch err := fs.Parse(args[1:]); {
		case errors.Is(err, flag.ErrHelp):
			return 0
		case err != nil:
			return 2
		}
		err := do(ctx, fs.Args(), out, log)
		switch {
		case errors.Is(err, errUsage):
			fmt.Fprintf(log, "cluster %s: %v\n", v.name, err)
			return 2
		case err != nil && ctx.Err() == nil:
			fmt.Fprintf(log, "cluster %s: %v\n", v.name, err)
			return 1
		}
		return 0
	}
	fmt.Fprintln(log, "cluster crawls with any number of processes over NATS JetStream.")
	for _, v := range verbs {
		fmt.Fprintf(log, "  cluster %-8s %s\n", v.name, v.does)
	}
	fmt.Fprintln(log, "Use -h with a command for its flags.")
	return 2
}

// brokerFlags defines the flags of all verbs that connect to a broker.
func brokerFlags(fs *flag.FlagSet) *jet.Options {
	o := &jet.Options{}
	fs.StringVar(&o.URL, "nats", cmp.Or(os.Getenv("CLUSTER_NATS"), nats.DefaultURL),
		"comma-separated `URLs` of the brokers; default: CLUSTER_NATS, or one on this machine")
	fs.StringVar(&o.Crawl, "crawl", "crawl", "`name` of the crawl")
	fs.StringVar(&o.Creds, "creds", "", "`file` with a user's credentials")
	fs.StringVar(&o.CA, "ca", "", "`file` with the CA certificate of the brokers")
	return o
}
