//go:build linux

// Command satstore compares package satstore with a B+ tree (bbolt), a log-structured tree (pebble)
// and a flat file. All do the same work: they visit the records that are due in a slot and
// reschedule each by its own interval. Changes are on disk at the end of the slot, except that
// satstore may take -commit longer, and bolt-nosync does not sync.
//
//	go run ./satstore -records 1e6,5e6,17.5e6 -engines sat -units 70 -recover -out growth
//	go run ./satstore -records 1e6 -engines sat,sat-detached,flat,bolt,bolt-nosync,pebble-id,pebble-time
//	go run ./satstore -records 5e6 -engines sat,sat-detached,pebble-time -units 70 -rounds 5
//	go run ./satstore -records 17.5e6 -engines sat,flat,bolt-nosync,pebble-id,pebble-time -units 8
//	go run ./satstore -records 1e6,5e6 -hours 24 -units 6 -engines sat,flat,pebble-time -out days
//	go run ./satstore -records 5e6 -fixed 50,100,200,400 -engines sat,pebble-time -out fixed
//	go run ./satstore -records 1e6 -buffer 2,8,32,128 -engines sat -out buffers
//	go run ./satstore -records 17.5e6 -engines sat -units 36 -slowest
//
// Each command takes some minutes, mostly to load the stores: 1 to 10 µs per record, and up to 300
// in bbolt. The slots of one run end after -limit. sat-detached detaches each record, like a
// crawler that holds records for a long time.
//
// Each run is a separate process. A control group limits its memory, page cache included, if this
// process may create one (as root; version 1 or 2). Otherwise, files are dropped from the page
// cache after each slot. The output says which applies. GOMEMLIMIT is three quarters of the limit.
// Each round runs all engines; the table shows the medians. The lists of -records, -fixed and
// -buffer are combined. The plots (time by slot as in the paper's Figure 6, and one for each flag
// with several values as in Figures 5 and 7 to 10) go to the directory -out.
//
// Each run measures the disk's sequential rate after the slots: it writes and syncs a file, drops
// it from the page cache, and reads it. With -recover, a run exits without closing the store, as if
// it had been killed, and another process measures how long it takes to open the store.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A config describes one run.
type config struct {
	Engine  string
	Records int
	Fixed   int // bytes
	Hours   int64
	Units   int
	Buffer  int64 // bytes
	Commit  time.Duration
	Readers int
	Limit   time.Duration // of all slots together
	Memory  int64         // bytes
	Grouped bool          // a control group limits the memory
	Recover bool          // exit without closing the store, and measure how long it takes to open
	Reopen  bool          // only open the store, and close it
	Dir     string
	Profile string
	Slowest bool
}

func main() {
	log.SetFlags(0)
	c := config{}
	flag.StringVar(&c.Engine, "engines", "sat,bolt,pebble-id,pebble-time",
		"a `list` of "+strings.Join(engineNames(), ", "))
	records := flag.String("records", "1e5", "`list` of numbers of records")
	fixed := flag.String("fixed", "100", "`list` of record sizes in bytes, without the URL")
	buffer := flag.String("buffer", "64", "`list` of buffer or cache sizes in MiB")
	flag.Int64Var(&c.Hours, "hours", 1, "length of a slot in `hours`")
	flag.IntVar(&c.Units, "units", 36, "`number` of slots to measure")
	flag.DurationVar(&c.Commit, "commit", 0, "satstore.Options.Commit")
	flag.IntVar(&c.Readers, "readers", 1, "parallel `readers` of bolt and pebble-id")
	flag.DurationVar(&c.Limit, "limit", time.Minute, "`time` after which no more slots start")
	memory := flag.Float64("memory", 512, "memory limit of a run in `MiB`; 0 means none")
	flag.StringVar(&c.Dir, "dir", os.TempDir(), "`directory` on the disk to measure")
	out := flag.String("out", "", "`directory` for plots")
	flag.BoolVar(&c.Recover, "recover", false, "also measure opening after a kill")
	flag.BoolVar(&c.Slowest, "slowest", false, "measure the slowest calls of sat, which slows it down")
	rounds := flag.Int("rounds", 1, "`number` of rounds")
	flag.StringVar(&c.Profile, "cpuprofile", "", "`file` for the profile of one run's slots")
	child := flag.String("child", "", "settings of a child process, as JSON; for internal use")
	flag.Parse()
	if *child != "" {
		check(json.Unmarshal([]byte(*child), &c))
		check(runChild(c))
		return
	}
	c.Memory = int64(*memory * (1 << 20))
	configs, err := combine(c, *records, *fixed, *buffer)
	check(err)
	results, err := runAll(configs, *rounds)
	check(err)
	printTable(os.Stdout, results)
	if *out != "" {
		check(os.MkdirAll(*out, 0o755))
		check(plotAll(*out, results))
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// combine returns a config for each combination of the lists.
func combine(c config, records, fixed, buffer string) (all []config, err error) {
	lists := [][]float64{}
	for _, text := range []string{records, fixed, buffer} {
		var list []float64
		for _, word := range strings.Split(text, ",") {
			x, err := strconv.ParseFloat(word, 64)
			if err != nil {
				return nil, err
			}
			list = append(list, x)
		}
		lists = append(lists, list)
	}
	for _, n := range lists[0] {
		for _, fixed := range lists[1] {
			for _, buffer := range lists[2] {
				for _, engine := range strings.Split(c.Engine, ",") {
					c := c
					c.Engine, c.Records, c.Fixed = engine, int(n), int(fixed)
					c.Buffer = int64(buffer * (1 << 20))
					all = append(all, c)
				}
			}
		}
	}
	return all, nil
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
	if c.Profile != "" {
		if c.Profile, err = filepath.Abs(c.Profile); err != nil {
			return r, err
		}
	}
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
