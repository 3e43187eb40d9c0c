//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spinneret-go/spinneret/satstore"
)

// satEngine uses package satstore.
type satEngine struct {
	dir    string
	o      satstore.Options
	s      *satstore.Store
	w      *workload
	detach bool // records are detached before they are rescheduled

	slowest map[string]*calls // by kind; nil if not measured
}

// begin returns the start of a call, if slowest calls are measured: reading the clock twice per
// record would take a quarter of the time of the record.
func (e *satEngine) begin() (began time.Time) {
	if e.slowest != nil {
		began = time.Now()
	}
	return began
}

// end records the duration of a call.
func (e *satEngine) end(kind string, began time.Time) {
	if e.slowest != nil {
		c := e.slowest[kind]
		if c == nil {
			c = &calls{}
			e.slowest[kind] = c
		}
		took := time.Since(began).Seconds() * 1e3
		if c.N++; took > 50 {
			c.Over50++
		}
		c.Slowest = max(c.Slowest, took)
	}
}

func openSAT(c config, w *workload) (engine, error) {
	e := &satEngine{dir: c.Dir, w: w, detach: c.Engine == "sat-detached"}
	if c.Slowest {
		e.slowest = map[string]*calls{}
	}
	e.o = satstore.Options{
		Unit: time.Duration(w.hours) * time.Hour, Start: e.at(firstSlot), Buffer: bufferBytes,
	}
	var err error
	e.s, err = satstore.Open(c.Dir, e.o)
	return e, err
}

// at returns the start of a slot.
func (e *satEngine) at(slot int64) time.Time {
	return time.Unix(slot*e.w.hours*3600, 0)
}

func (e *satEngine) load() error {
	const batch = 1000
	var items []satstore.Item
	for i := range e.w.records {
		interval, first := e.w.plan(i)
		items = append(items, satstore.Item{
			ID: string(e.w.url(nil, i)), At: e.at(firstSlot + first), Data: e.w.data(nil, i, interval),
		})
		if len(items) == batch || i+1 == e.w.records {
			began := e.begin()
			n, err := e.s.AddBatch(items)
			e.end("AddBatch of 1,000", began)
			if err == nil && n != len(items) {
				err = fmt.Errorf("%d of %d URLs were new", n, len(items))
			}
			if err != nil {
				return err
			}
			items = items[:0]
		}
	}
	// As with the other engines, deferred work of loading must not count for the slots: wait for
	// the checkpoint and the merging of ids, which take some seconds.
	for written := int64(-1); written != e.s.Stats().BytesWritten; time.Sleep(time.Second) {
		written = e.s.Stats().BytesWritten
	}
	began := e.begin()
	if err := e.s.Close(); err != nil {
		return err
	}
	e.end("Close", began)
	began = e.begin()
	defer e.end("Open", began)
	var err error
	e.s, err = satstore.Open(e.dir, e.o)
	return err
}

func (e *satEngine) unit(slot int64, _ []int32) (records int, err error) {
	step := e.begin()
	for r, err := range e.s.Due(context.Background(), e.at(slot)) {
		if err != nil {
			return records, err
		}
		called := e.begin()
		e.end("step of Due", step)
		if e.detach {
			r = r.Detach()
		}
		if err := r.Reschedule(e.at(visit(r.Data, slot)), r.Data); err != nil {
			return records, err
		}
		step = e.begin()
		e.end("Reschedule", called)
		records++
	}
	e.end("step of Due", step)
	return records, nil
}

func (e *satEngine) close() error { return e.s.Close() }
