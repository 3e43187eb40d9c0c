package main

import (
	"errors"
	"io"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// saveCaches saves what a crawl would otherwise have to learn again.
func (c *crawler) saveCaches() error {
	rules, err := c.Robots.Append(nil)
	if err == nil {
		err = stage.ReplaceFile(c.file(cockpit.RulesName), rules)
	}
	return errors.Join(c.Resolver.Save(), err, c.Rhythms.Hosts.Save())
}

// savePoliteness saves the state of the scheduler.
func (c *crawler) savePoliteness() error {
	c.given.Store(c.Polite.Queue.Stats().Given)
	state, err := c.Polite.Append(nil)
	if err != nil {
		return err
	}
	return stage.ReplaceFile(c.file(cockpit.StateName), state)
}

// savePolitenessIfUsed calls savePoliteness if there was a visit since the last save.
func (c *crawler) savePolitenessIfUsed() error {
	if c.Polite.Queue.Stats().Given == c.given.Load() {
		return nil
	}
	return c.savePoliteness()
}

// saveState saves everything that was opened, at the end of a crawl.
func (c *crawler) saveState() error {
	if !c.opened {
		return nil
	}
	return errors.Join(c.savePoliteness(), c.saveCaches(), c.saveOrder())
}

// saveOrder saves the scores, if there are any.
func (c *crawler) saveOrder() error {
	if c.Order == nil {
		return nil
	}
	return stage.ReplaceWith(c.file(cockpit.OrderName), func(w io.Writer) error {
		_, err := c.Order.WriteTo(w)
		return err
	})
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
