package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/robots/robotstxt"
	"github.com/spinneret-go/spinneret/scheduler"
)

// How often it is put on record what servers asked for, and what can be had again.
const (
	mannersEvery = time.Second
	cachesEvery  = time.Minute
	orderEvery   = 10 * time.Minute // it is large: some hundred bytes for each page
)

// manners keeps what the crawler has to know after a crash in order to be polite: who asked it to
// come back later, and who is in trouble. Its methods but open are safe for concurrent use.
type manners struct {
	opened bool
	news   chan struct{}
	given  atomic.Int64 // visits that were begun when the file was written
}

// open brings the scheduler to what it knew. Even if that is nothing, every host counts as visited
// just now: the visits before a crash are not on record.
func (m *manners) open(c *crawler) error {
	state, err := os.ReadFile(c.file(cockpit.StateName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := stage.RestorePoliteness(c.Queue, state); err != nil {
			c.warn("%s: %v: all other hosts get the usual delay", c.file(cockpit.StateName), err)
		}
	}
	m.opened = true
	return m.save(c) // also to say that there was a crawl here
}

// changed says that some server asked for something.
func (m *manners) changed() { stage.Wake(m.news) }

// save replaces the file.
func (m *manners) save(c *crawler) error {
	m.given.Store(c.Queue.Stats().Given)
	state, err := stage.AppendEntries(nil, c.Queue.All(time.Now()))
	if err != nil {
		return err
	}
	return stage.ReplaceFile(c.file(cockpit.StateName), state)
}

// keep saves until ctx ends: at once what a server asked for, and now and then the rest.
func (m *manners) keep(ctx context.Context, c *crawler) {
	ticks := time.NewTicker(mannersEvery)
	defer ticks.Stop()
	caches := time.NewTicker(cachesEvery)
	defer caches.Stop()
	order := time.NewTicker(orderEvery)
	defer order.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-m.news:
			err = m.save(c)
		case <-ticks.C:
			if c.Queue.Stats().Given != m.given.Load() {
				err = m.save(c)
			}
		case <-caches.C:
			err = c.saveCaches()
		case <-order.C:
			err = c.saveOrder()
		}
		if err != nil {
			c.stop(err)
			return
		}
	}
}

// setDelay keeps the Crawl-delay of a URL's server, or lifts one that it asks for no longer.
func (c *crawler) setDelay(url string, delay time.Duration) {
	server, err := robotstxt.Locate(url)
	if err != nil {
		return // no server has rules for it
	}
	host := weburl.Host(url)
	longest := c.delays.Set(host, server, delay)
	longest = max(longest, c.Cfg.Overrides.Of(host).Delay)
	c.Queue.SetHost(host, scheduler.Host{Delay: max(longest, 1)}) // of which 1 lifts an earlier one
	if delay > 0 {
		c.manners.changed()
		c.Log.Info("Crawl-delay", "host", host, "delay", longest.String())
	}
}

// recallDelays takes up the delays of the rules that are known, so that one that is lifted for one
// server of a host leaves those of the others.
func (c *crawler) recallDelays() error {
	for url, delay := range c.Robots.Delays() {
		c.setDelay(url, delay)
	}
	return nil
}
