//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spinneret-go/spinneret/satstore"
)

// satEngine is our own.
type satEngine struct {
	dir string
	o   satstore.Options
	s   *satstore.Store
	w   *workload
}

func openSAT(c config, w *workload) (engine, error) {
	o := satstore.Options{
		Unit: time.Duration(w.hours) * time.Hour, Horizon: w.horizon, Start: firstSlot,
		Buffer: c.Buffer, Page: c.Page, Commit: c.Commit, Radix: c.Radix,
	}
	switch c.Engine {
	case "sat-paper": // with the paper's flush, and a bucket for each slot
		o.Flush, o.Radix = satstore.FlushLarge, -1
	case "basic":
		o.Mode, o.NoLog, o.NoSync = satstore.Basic, true, true
	case "basic-paper":
		o.Mode, o.NoLog, o.NoSync = satstore.Basic, true, true
		o.Flush, o.Radix = satstore.FlushLarge, -1
	case "naive":
		o.Mode, o.Radix = satstore.Naive, -1
	case "sat-s2":
		o.Compression = satstore.S2
	case "sat-zstd":
		o.Compression = satstore.Zstd
	}
	s, err := satstore.Open(c.Dir, o)
	return &satEngine{c.Dir, o, s, w}, err
}

func (e *satEngine) load() error {
	const batch = 20_000
	var items []satstore.Item
	for i := range e.w.records {
		interval, first := e.w.plan(i)
		items = append(items, satstore.Item{
			ID: string(e.w.url(nil, i)), Slot: firstSlot + first, Data: e.w.data(nil, i, interval),
		})
		if len(items) == batch || i+1 == e.w.records {
			n, err := e.s.AddBatch(items)
			if err == nil && n != len(items) {
				err = fmt.Errorf("%d of %d URLs were new", n, len(items))
			}
			if err != nil {
				return err
			}
			items = items[:0]
		}
	}
	// What loading left to be done is no cost of the slots, as with the others.
	if err := e.s.Close(); err != nil {
		return err
	}
	var err error
	e.s, err = satstore.Open(e.dir, e.o)
	return err
}

func (e *satEngine) unit(slot int64, _ []int32) (records int, err error) {
	if err := e.s.Advance(); err != nil {
		return 0, err
	}
	for r, err := range e.s.Due(context.Background()) {
		if err != nil {
			return records, err
		}
		if err := r.Reschedule(visit(r.Data, slot), r.Data); err != nil {
			return records, err
		}
		records++
	}
	return records, nil
}

func (e *satEngine) close() error { return e.s.Close() }
