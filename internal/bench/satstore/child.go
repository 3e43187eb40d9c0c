//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spinneret-go/spinneret/internal/bench/measure"
)

// An engine keeps the records.
type engine interface {
	load() error
	// unit visits the records of one slot. Engines without slots use due.
	unit(slot int64, due []int32) (records int, err error)
	close() error
}

var engines = map[string]func(config, *workload) (engine, error){
	"sat": openSAT, "sat-detached": openSAT,
	"bolt":      openBolt,
	"pebble-id": openPebbleID, "pebble-time": openPebbleTime,
	"flat": openFlat,
}

func engineNames() []string { return slices.Sorted(maps.Keys(engines)) }

// firstSlot is the current slot when records are loaded.
const firstSlot = 1

// A result has the measurements of a run.
type result struct {
	Config   config
	Load     float64 // µs per record
	Micros   float64 // per record, over all slots
	CPU      float64 // µs per record, of all threads of the process
	Slots    int
	Visits   int     // records in all slots
	Read     float64 // bytes from the disk, per record
	Written  float64
	Disk     float64           // sequential rate in MB/s, written and read
	Size     int64             // bytes on disk
	Bytes    float64           // of a record
	Recovery float64           // seconds to open the store after its process was killed
	Slowest  map[string]*calls // by kind
}

// calls has statistics of the calls of one kind.
type calls struct {
	N       int
	Over50  int     // calls that took more than 50 ms
	Slowest float64 // ms
}

// Rate returns the MB/s at which records were read and written, as in the paper.
func (r result) Rate() float64 { return 2 * r.Bytes / r.Micros }

func (r result) String() string {
	s := fmt.Sprintf("%s, %d records, %d h: %.3f µs, CPU %.3f µs, %.0f MB/s (%.2f of the disk's %.0f), "+
		"read %.0f B, written %.0f B, %d slots, load %.2f µs", r.Config.Engine, r.Config.Records, r.Config.Hours,
		r.Micros, r.CPU, r.Rate(), r.Rate()/r.Disk, r.Disk, r.Read, r.Written, r.Slots, r.Load)
	for _, kind := range slices.Sorted(maps.Keys(r.Slowest)) {
		c := r.Slowest[kind]
		s += fmt.Sprintf("; slowest %s %.1f ms (%d of %d over 50)", kind, c.Slowest, c.Over50, c.N)
	}
	return s
}

// median takes the median of each figure.
func median(all []result) result {
	m := all[len(all)/2]
	of := func(figure func(result) float64) float64 { return measure.MedianOf(all, figure) }
	m.Load = of(func(r result) float64 { return r.Load })
	m.Micros = of(func(r result) float64 { return r.Micros })
	m.CPU = of(func(r result) float64 { return r.CPU })
	m.Read = of(func(r result) float64 { return r.Read })
	m.Written = of(func(r result) float64 { return r.Written })
	m.Recovery = of(func(r result) float64 { return r.Recovery })
	m.Disk = of(func(r result) float64 { return r.Disk })
	return m
}

func runChild(c config) error {
	w := newWorkload(c.Records, c.Hours)
	open := engines[c.Engine]
	if open == nil {
		return fmt.Errorf("unknown engine %q", c.Engine)
	}
	r := result{Config: c, Bytes: w.meanBytes()}
	began := time.Now()
	e, err := open(c, w)
	if err != nil {
		return err
	}
	if c.Reopen {
		r.Recovery = time.Since(began).Seconds()
		return errors.Join(e.close(), json.NewEncoder(os.Stdout).Encode(r))
	}
	began = time.Now()
	if err := e.load(); err != nil {
		return err
	}
	r.Load = micros(time.Since(began), c.Records)
	due := w.dues(c.Units)
	debug.FreeOSMemory()
	if err := measure.DropPages(c.Dir); err != nil {
		return err
	}
	if err := visitAll(&r, e, due); err != nil {
		return err
	}
	if !c.Recover {
		if err := e.close(); err != nil {
			return err
		}
	}
	if sat, ok := e.(*satEngine); ok {
		r.Slowest = sat.slowest
	}
	if r.Size, err = diskUse(c.Dir); err != nil {
		return err
	}
	if r.Disk, err = sequentialRate(filepath.Join(c.Dir, "sequential")); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// visitAll runs the slots.
func visitAll(r *result, e engine, due [][]int32) error {
	var total time.Duration
	before, err := usage()
	computed := measure.CPU()
	if err != nil {
		return err
	}
	for i := 0; i < len(due) && total < r.Config.Limit; i++ {
		began := time.Now()
		n, err := e.unit(int64(firstSlot+1+i), due[i])
		if err != nil {
			return err
		}
		if n != len(due[i]) {
			return fmt.Errorf("slot %d had %d records, want %d", i+1, n, len(due[i]))
		}
		took := time.Since(began)
		total += took
		r.Visits += n
		r.Slots++
		if !r.Config.Grouped && r.Config.Memory > 0 {
			if err := measure.DropPages(r.Config.Dir); err != nil {
				return err
			}
		}
	}
	after, err := usage()
	if err != nil {
		return err
	}
	visits := float64(max(r.Visits, 1))
	r.Micros = micros(total, r.Visits)
	r.CPU = micros(measure.CPU()-computed, r.Visits)
	r.Read = float64(after.read-before.read) / visits
	r.Written = float64(after.written-before.written) / visits
	return nil
}

func micros(d time.Duration, n int) float64 { return float64(d.Nanoseconds()) / 1e3 / float64(n) }
