package main

import (
	"errors"
	"time"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
)

// saveCaches saves what a crawl would otherwise have to learn again, at a cost in proportion to what
// it has learned: a file that has to be written as a whole waits until a good part of it has changed,
// unless the crawl ends.
func (c *crawler) saveCaches(ends bool) error {
	err := c.Robots.Save(c.rules)
	names := c.Resolver.Stats()
	if loads := int64(names.Loads); ends || worthSaving(loads-c.looked, int64(names.Entries)) {
		c.looked = loads
		err = errors.Join(err, c.Resolver.Save())
	}
	if changed, hosts := c.Rhythms.Changed(); ends || worthSaving(changed, hosts) {
		err = errors.Join(err, c.Rhythms.Save())
	}
	return err
}

// rewriteShare bounds the work of saving as a whole: a change costs as much as so many entries.
const rewriteShare = 8

// worthSaving reports whether enough has changed to write all entries of a file.
func worthSaving(changed, entries int64) bool { return changed > 0 && changed*rewriteShare >= entries }

// savePoliteness saves the state of the scheduler.
func (c *crawler) savePoliteness() error {
	c.given.Store(c.Polite.Queue.Stats().Given)
	began := time.Now()
	err := c.Polite.Save(c.politeness)
	c.politeAgain = time.Now().Add(politenessShare * time.Since(began))
	return err
}

// politenessShare bounds the time for looking at all hosts that have a state: one in so many seconds.
const politenessShare = 100

// savePolitenessIfUsed calls savePoliteness if there was a visit since the last save, and the time for
// it has come.
func (c *crawler) savePolitenessIfUsed() error {
	if c.Polite.Queue.Stats().Given == c.given.Load() || time.Now().Before(c.politeAgain) {
		return nil
	}
	return c.savePoliteness()
}

// saveState saves everything that was opened, at the end of a crawl.
func (c *crawler) saveState() error {
	if !c.opened {
		return nil
	}
	return errors.Join(c.savePoliteness(), c.saveCaches(true), c.saveOrder(true))
}

// saveOrder saves the scores, if there are any.
func (c *crawler) saveOrder(ends bool) error {
	if c.Order == nil {
		return nil
	}
	if changed, pages := c.Order.Changed(); ends || worthSaving(changed, pages) {
		return c.Order.Save(c.file(cockpit.OrderName))
	}
	return nil
}

// close closes everything. State that can be rebuilt is saved last: on a full disk, the pages and
// the archive come first.
func (c *crawler) close() (err error) {
	for _, server := range c.Servers {
		err = errors.Join(err, server.Close())
	}
	if c.client != nil {
		c.client.CloseIdleConnections()
	}
	if c.Store != nil {
		err = errors.Join(err, c.Store.Close())
	}
	if c.Pages != nil && c.ledger != nil {
		_, e := c.commit()
		err = errors.Join(err, e)
	}
	if c.Pages != nil {
		err = errors.Join(err, c.Pages.Close())
	}
	if c.ledger != nil {
		err = errors.Join(err, c.ledger.Close())
	}
	return errors.Join(err, c.saveState(), c.dir.Close())
}
