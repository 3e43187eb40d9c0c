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
	"math"
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
	name, does  string
	least, most int // number of arguments
	set         func(fs *flag.FlagSet) action
}

// anyNumber is more arguments than a command line has.
const anyNumber = math.MaxInt

// An action runs a sub-command.
type action func(ctx context.Context, args []string, out, log io.Writer) error

var verbs = []verb{
	{"create", "create a crawl with its seeds", 0, anyNumber, create},
	{"run", "run one process of a crawl", 0, 0, run},
	{"status", "show the progress of a crawl", 0, 0, status},
	{"pause", "make no requests until resume", 0, 0, instruct(pause)},
	{"resume", "continue after pause, and let drained processes start again", 0, 0, instruct(unpause)},
	{"drain", "let all processes, or the NAMEs, finish requests in flight and exit", 0, anyNumber, instruct(drain)},
	{"deny", "stop fetching from a host, or URLs that match a deny list ENTRY", 1, anyNumber, instruct(deny)},
	{"allow", "undo deny of each ENTRY", 1, anyNumber, instruct(allow)},
	{"delay", "set the minimum delay between requests: HOST 30s", 2, 2, instruct(delay)},
	{"add", "add URLs as seeds, which also widen the scope", 1, anyNumber, add},
	{"revisit", "visit pages again as soon as possible, by URL", 1, anyNumber, revisit},
	{"scope", "how far to follow links: page, prefix, host, domain or any", 1, 1, instruct(scope)},
	{"settings", "show the settings made by pause, deny, delay and so on", 0, 0, settings},
	{"wait", "wait until nothing is left to fetch", 0, 0, wait},
	{"plan", "compute what a crawl needs: brokers, disks, memory, partitions", 0, 0, plan},
	{"merge", "make one view of the archives of the processes in each DIRECTORY", 1, anyNumber, merge},
}

// check checks the arguments. A flag among them would be taken for a seed or a host.
func (v verb) check(args []string) error {
	for _, arg := range args {
		switch {
		case v.most == 0:
			return fmt.Errorf("%w: unexpected argument %q: only flags are allowed, see -h", errUsage, arg)
		case len(arg) > 1 && arg[0] == '-':
			return fmt.Errorf("%w: %s follows the arguments: put flags first", errUsage, arg)
		}
	}
	if len(args) < v.least || len(args) > v.most {
		return fmt.Errorf("%w: %d arguments; \"cluster\" says what each command wants", errUsage, len(args))
	}
	return nil
}

// errUsage reports an invalid command line.
var errUsage = errors.New("usage")

// command runs the program and returns its exit status: 1 if it failed or was interrupted before it was
// done, 2 if the command line is invalid.
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
		err := v.check(fs.Args())
		if err == nil {
			err = do(ctx, fs.Args(), out, log)
		}
		switch {
		case errors.Is(err, errUsage):
			fmt.Fprintf(log, "cluster %s: %v\n", v.name, err)
			return 2
		case ctx.Err() != nil && errors.Is(err, context.Canceled):
			if v.name == "run" || v.name == "status" { // which nothing else ends
				return 0
			}
			err = errors.New("interrupted before it was done")
		}
		if err != nil {
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
