package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

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
	state, err := os.ReadFile(c.file(stateName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := restorePoliteness(c.queue, state); err != nil {
			c.warn("%s: %v: all other hosts get the usual delay", c.file(stateName), err)
		}
	}
	m.opened = true
	return m.save(c) // also to say that there was a crawl here
}

// restorePoliteness makes a scheduler as polite as the one whose state was saved. If the state is
// damaged, that holds for what comes before the damage, and all other hosts count as just visited.
func restorePoliteness(queue *scheduler.Scheduler[stage.Item], state []byte) error {
	if err := queue.Restore(scheduler.Entry{}, time.Now()); err != nil {
		return err
	}
	for entry, err := range stage.Entries[scheduler.Entry](state) {
		if err == nil {
			err = queue.Restore(entry, time.Now())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// changed says that some server asked for something.
func (m *manners) changed() { wake(m.news) }

// save replaces the file.
func (m *manners) save(c *crawler) error {
	m.given.Store(c.queue.Stats().Given)
	state, err := stage.AppendEntries(nil, c.queue.All(time.Now()))
	if err != nil {
		return err
	}
	return replaceFile(c.file(stateName), state)
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
			if c.queue.Stats().Given != m.given.Load() {
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

// crawlDelays knows the delays that sites ask for. A host may have several servers, by scheme and
// port, each with a robots.txt: the longest delay holds. The zero crawlDelays is empty. Its methods
// are safe for concurrent use.
type crawlDelays struct {
	mu    sync.Mutex
	hosts map[string]map[string]time.Duration // by host and server, without those that ask for none
}

// set notes what a server asks for, and returns the longest delay of its host.
func (d *crawlDelays) set(host, server string, delay time.Duration) (longest time.Duration) {
	d.mu.Lock()
	switch {
	case delay <= 0:
		delete(d.hosts[host], server)
	case d.hosts == nil:
		d.hosts = map[string]map[string]time.Duration{}
		fallthrough
	case d.hosts[host] == nil:
		d.hosts[host] = map[string]time.Duration{}
		fallthrough
	default:
		d.hosts[host][server] = delay
	}
	if len(d.hosts[host]) == 0 {
		delete(d.hosts, host)
	}
	d.mu.Unlock()
	return d.of(host)
}

// setDelay keeps the Crawl-delay of a URL's server, or lifts one that it asks for no longer.
func (c *crawler) setDelay(url string, delay time.Duration) {
	server, err := robotstxt.Locate(url)
	if err != nil {
		return // no server has rules for it
	}
	host := weburl.Host(url)
	longest := c.delays.set(host, server, delay)
	c.queue.SetHost(host, scheduler.Host{Delay: max(longest, 1)}) // of which 1 lifts an earlier one
	if delay > 0 {
		c.manners.changed()
		c.log.Info("Crawl-delay", "host", host, "delay", longest.String())
	}
}

// of returns the longest delay that the servers of a host ask for.
func (d *crawlDelays) of(host string) (longest time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, delay := range d.hosts[host] {
		longest = max(longest, delay)
	}
	return longest
}

// recallDelays takes up the delays of the rules that are known, so that one that is lifted for one
// server of a host leaves those of the others.
func (c *crawler) recallDelays() error {
	for url, delay := range c.robots.Delays() {
		c.setDelay(url, delay)
	}
	return nil
}

// replaceFile writes a file such that there is always the old one or the new one, whole, also after
// a power failure.
func replaceFile(name string, data []byte) error {
	return replaceWith(name, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// replaceWith is replaceFile for what is not in memory.
func replaceWith(name string, write func(io.Writer) error) error {
	temporary := name + ".new"
	f, err := os.Create(temporary)
	if err != nil {
		return err
	}
	err = write(f)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(temporary, name)
}
