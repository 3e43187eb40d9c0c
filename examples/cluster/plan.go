package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
)

// The cost of a page, as TestThePlanKnowsWhatAPageCosts measures it. The streams and states of the
// brokers were measured with their overhead on disk, by "messages" in bench_test.go and a crawl of real URLs.
const (
	itemBytes   = 140     // a URL of 70 bytes in a message
	seenBytes   = 8       // of the state of dedupe, for each URL
	seenMemory  = 40      // the same in its owner's memory, in a map that has just grown
	plannedDisk = 245     // of a page that is visited again, in the state
	plannedRAM  = 380     // the same in its owner's memory
	hostBytes   = 3 << 10 // of a host with its robots.txt, on disk and in memory
	rootBytes   = 4 << 10 // stored by a partition at each commit, an assumed worst case
	brokerRate  = 250_000 // messages per second, and their bytes, measured with three brokers and
	brokerBytes = 125e6   // three replicas on one machine: see OPERATING.md's figures
	brokerShare = 0.4     // of that, to leave room for elections and repairs
	rewrites    = 3       // disk used by a state until it is rewritten, as a multiple of its size
)

// A need is the planned size of a crawl.
type need struct {
	pages, links, fresh, hosts float64
	rate                       float64 // pages per second
	machines                   float64
	every                      time.Duration // between commits
	again                      bool
}

// A provision is what such a crawl needs.
type provision struct {
	messages      float64 // per second
	traffic       float64 // bytes per second of messages and of the state stored with each page
	brokers       float64
	frontier      float64 // bytes in the streams, one replica, worst case
	state, memory float64 // bytes of one replica; bytes of all processes together
	partitions    float64 // of each module
	bound         float64 // bytes of the stream
	disk          float64 // bytes that a broker must offer: the bound is reserved
	perMachine    float64 // memory
}

// provide computes what a crawl needs.
func provide(n need) provision {
	urls := n.pages * n.fresh // known in the end, visited or not
	p := provision{
		frontier:   (urls - n.pages) * itemBytes,
		state:      urls*seenBytes + n.hosts*hostBytes,
		memory:     urls*seenMemory + n.hosts*hostBytes,
		partitions: math.Pow(2, math.Ceil(math.Log2(4*n.machines))),
	}
	if n.again {
		p.state += n.pages * plannedDisk
		p.memory += n.pages * plannedRAM
		n.links++ // a report
		n.fresh++ // in this case, one that comes again
	}
	// Each link goes to dedupe unless it was sent recently, and each new URL to hosts and fetch.
	items := 0.0
	for _, perPage := range []float64{n.links, n.fresh, n.fresh} {
		items += n.rate * perPage
		p.messages += messageRate(n.rate*perPage, n.machines, p.partitions, n.every.Seconds())
	}
	commits := 3 * p.partitions / n.every.Seconds()
	p.traffic = items*itemBytes + commits*rootBytes
	load := max((p.messages+commits)/brokerRate, p.traffic/brokerBytes)
	groups := max(1, math.Ceil(load/brokerShare))
	p.brokers = 3 * groups
	p.bound = max(2*p.frontier, jet.DefaultMaxBytes)
	p.disk = (p.bound + rewrites*p.state) / groups
	p.perMachine = p.memory / n.machines
	return p
}

// messageRate returns how many messages per second all processes send to the partitions of a module
// that get that many items per second in all: one for each pair that has items within an interval.
func messageRate(items, processes, partitions, every float64) float64 {
	pairs := processes * partitions
	return pairs / every * (1 - math.Exp(-items*every/pairs))
}

// plan prints what a crawl needs.
func plan(fs *flag.FlagSet) action {
	var n need
	fs.Float64Var(&n.pages, "pages", 1e9, "pages to fetch")
	fs.Float64Var(&n.rate, "rate", 2000, "pages per second, by all machines")
	fs.Float64Var(&n.links, "links", 40,
		"links per page that were not seen recently")
	fs.Float64Var(&n.fresh, "fresh", 3,
		"known URLs at the end, per fetched page")
	fs.Float64Var(&n.hosts, "hosts", 1e7, "hosts")
	fs.Float64Var(&n.machines, "machines", 30, "maximum number of machines with \"cluster run\"")
	fs.DurationVar(&n.every, "commit", 5*time.Second, "as for \"cluster run\"; a shorter time means more messages")
	fs.BoolVar(&n.again, "revisit", false, "pages are visited again")
	return func(_ context.Context, _ []string, out, _ io.Writer) error {
		if n.pages <= 0 || n.rate <= 0 || n.machines < 1 || n.fresh < 1 || n.links < 0 || n.every <= 0 {
			return fmt.Errorf("%w: -pages, -rate and -commit must be positive, -machines and -fresh at least 1",
				errUsage)
		}
		p := provide(n)
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, line := range []struct{ what, much string }{
			{"messages", fmt.Sprintf("%.0f per second, %.2f for a page; with states %s/s",
				p.messages, p.messages/n.rate, bytesOf(p.traffic))},
			{"brokers", fmt.Sprintf("%.0f, in groups of three", p.brokers)},
			{"stream, each replica", bytesOf(p.frontier) + " at worst"},
			{"states, each replica", bytesOf(p.state) + ", " +
				bytesOf(rewrites*p.state) + " while being rewritten"},
			{"partitions of each module", fmt.Sprintf("%.0f", p.partitions)},
			{"bound of the stream", bytesOf(p.bound)},
			{"disk of a broker", bytesOf(p.disk) + ", with what the stream reserves (max_file)"},
			{"memory of a machine", bytesOf(p.perMachine) +
				" of states, without windows and bodies"},
			{"options of create", fmt.Sprintf("-parts %.0f -stream-bytes %.0f",
				p.partitions, p.bound)},
			{"options of run", fmt.Sprintf("-commit %v", n.every)},
		} {
			fmt.Fprintf(w, "%s\t%s\n", line.what, line.much)
		}
		return w.Flush()
	}
}

func bytesOf(n float64) string {
	for _, unit := range []string{"B", "KB", "MB", "GB"} {
		if n < 1000 {
			return fmt.Sprintf("%.3g %s", n, unit)
		}
		n /= 1000
	}
	return fmt.Sprintf("%.3g TB", n)
}
