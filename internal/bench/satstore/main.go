//go:build linux

// Command satstore compares package satstore with a B+ tree (bbolt), a log-structured tree (pebble)
// and a flat file. All do the same work: they visit the records that are due in a slot and
// reschedule each by its own interval. Changes are on disk at the end of the slot, except that
// satstore may take 10 ms longer.
//
//	go run ./satstore -records 5e6
//	go run ./satstore -records 5e6 -engines sat,sat-detached,pebble-time -units 70 -rounds 5
//	go run ./satstore -records 5e6 -hours 24 -units 6 -engines sat,flat,pebble-time
//	go run ./satstore -records 17.5e6 -engines sat -units 36 -slowest -recover
//
// Each command takes some minutes, mostly to load the stores: 1 to 10 µs per record, and up to 300
// in bbolt. The slots of one run end after -limit. sat-detached detaches each record, like a
// crawler that holds records for a long time.
//
// Each run is a separate process. A control group limits its memory, page cache included, if this
// process may create one (as root; version 1 or 2). Otherwise, files are dropped from the page
// cache after each slot. The output says which applies. GOMEMLIMIT is three quarters of the limit.
// Each round runs all engines; the table shows the medians.
//
// Each run measures the disk's sequential rate after the slots: it writes and syncs a file, drops
// it from the page cache, and reads it. With -recover, a run exits without closing the store, as if
// it had been killed, and another process measures how long it takes to open the store.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"strings"
	"time"
)

// fixedBytes is the size of a record without its URL, bufferBytes that of the buffers or caches.
const fixedBytes, bufferBytes = 100, 64 << 20

// A config describes one run.
type config struct {
	Engine  string
	Records int
	Hours   int64
	Units   int
	Limit   time.Duration // of all slots together
	Memory  int64         // bytes
	Grouped bool          // a control group limits the memory
	Recover bool          // exit without closing the store, and measure how long it takes to open
	Reopen  bool          // only open the store, and close it
	Dir     string
	Slowest bool
}

func main() {
	log.SetFlags(0)
	c := config{}
	engines := flag.String("engines", "sat,bolt,pebble-id,pebble-time",
		"a `list` of "+strings.Join(engineNames(), ", "))
	records := flag.Float64("records", 1e5, "`number` of records")
	flag.Int64Var(&c.Hours, "hours", 1, "length of a slot in `hours`")
	flag.IntVar(&c.Units, "units", 36, "`number` of slots to measure")
	flag.DurationVar(&c.Limit, "limit", time.Minute, "`time` after which no more slots start")
	memory := flag.Float64("memory", 512, "memory limit of a run in `MiB`; 0 means none")
	flag.StringVar(&c.Dir, "dir", os.TempDir(), "`directory` on the disk to measure")
	flag.BoolVar(&c.Recover, "recover", false, "also measure opening after a kill")
	flag.BoolVar(&c.Slowest, "slowest", false, "measure the slowest calls of sat, which slows it down")
	rounds := flag.Int("rounds", 1, "`number` of rounds")
	child := flag.String("child", "", "settings of a child process, as JSON; for internal use")
	flag.Parse()
	if *child != "" {
		check(json.Unmarshal([]byte(*child), &c))
		check(runChild(c))
		return
	}
	c.Memory = int64(*memory * (1 << 20))
	c.Records = int(*records)
	configs := []config{}
	for c.Engine = range strings.SplitSeq(*engines, ",") {
		configs = append(configs, c)
	}
	results, err := runAll(configs, *rounds)
	check(err)
	printTable(os.Stdout, results)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// runAll runs all configs in turn, for the given number of rounds.
func runAll(configs []config, rounds int) ([]result, error) {
	group, err := newGroup(configs[0].Memory)
	if err != nil {
		log.Printf("no control group (%v): files leave the page cache after each slot", err)
	} else {
		log.Printf("memory is limited by the control group %s", group.dir)
		defer group.remove()
	}
	all := make([][]result, len(configs))
	for round := range rounds {
		for i, c := range configs {
			c.Grouped = group != nil
			r, err := runOne(c, group)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.Engine, err)
			}
			log.Printf("round %d: %s", round+1, r)
			all[i] = append(all[i], r)
		}
	}
	medians := make([]result, len(configs))
	for i := range all {
		medians[i] = median(all[i])
	}
	return medians, nil
}

// runOne runs a child, in a directory that is removed afterwards.
func runOne(c config, group *group) (r result, err error) {
	if c.Dir, err = os.MkdirTemp(c.Dir, "satstore-bench-"); err != nil {
		return r, err
	}
	defer os.RemoveAll(c.Dir)
	if r, err = startChild(c, group); err != nil || !c.Recover {
		return r, err
	}
	c.Reopen = true
	again, err := startChild(c, group)
	r.Recovery = again.Recovery
	return r, err
}

func startChild(c config, group *group) (r result, err error) {
	order, err := json.Marshal(c)
	if err != nil {
		return r, err
	}
	cmd := exec.Command(os.Args[0], "-child", string(order))
	cmd.Stderr = os.Stderr
	cmd.Env = os.Environ()
	if c.Memory > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprint("GOMEMLIMIT=", c.Memory*3/4))
	}
	if group != nil {
		group.enter(cmd)
	}
	b, err := cmd.Output()
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(b, &r)
}

// printTable writes Markdown. The last column compares with the first row.
func printTable(to io.Writer, results []result) {
	fmt.Fprintln(to, "| engine | records | fixed B | slot h | buffer MiB "+
		"| µs per record | CPU µs | MB/s | of the disk | read B | written B | load µs "+
		"| disk B per record | recovery s | times the first |")
	fmt.Fprintln(to, "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, r := range results {
		c, recovery := r.Config, "–"
		if c.Recover {
			recovery = fmt.Sprintf("%.2f", r.Recovery)
		}
		fmt.Fprintf(to, "| %s | %d | %d | %d | %d "+
			"| %.3f | %.3f | %.0f | %.2f | %.0f | %.0f | %.2f | %.0f | %s | %.2f |\n",
			c.Engine, c.Records, fixedBytes, c.Hours, bufferBytes>>20,
			r.Micros, r.CPU, r.Rate(), r.Rate()/r.Disk, r.Read, r.Written, r.Load,
			float64(r.Size)/float64(c.Records), recovery, r.Micros/results[0].Micros)
	}
}
