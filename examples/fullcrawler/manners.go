package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"time"
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
	m.news = make(chan struct{}, 1)
	state, err := os.ReadFile(c.file(stateName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := c.queue.LoadState(state, time.Now()); err != nil {
			return fmt.Errorf("%s: %w (without the file, all hosts get the usual delay)",
				c.file(stateName), err)
		}
	}
	m.opened = true
	return m.save(c) // also to say that there was a crawl here
}

// changed says that some server asked for something.
func (m *manners) changed() { wake(m.news) }

// save replaces the file.
func (m *manners) save(c *crawler) error {
	m.given.Store(c.queue.Stats().Given)
	return replaceFile(c.file(stateName), c.queue.AppendState(nil, time.Now()))
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

// replaceFile writes a file such that there is always the old one or the new one, whole, also after
// a power failure.
func replaceFile(name string, data []byte) error {
	return replaceWith(name, bytes.NewReader(data))
}

// replaceWith is replaceFile for what is not in memory.
func replaceWith(name string, data io.WriterTo) error {
	temporary := name + ".new"
	f, err := os.Create(temporary)
	if err != nil {
		return err
	}
	_, err = data.WriteTo(f)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(temporary, name)
}
