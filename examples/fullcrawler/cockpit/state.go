package cockpit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/hostcache/resolve"
	"github.com/spinneret-go/spinneret/satstore"
)

// file returns the path of a file of the crawl.
func (c *Crawl) file(name string) string { return filepath.Join(c.Cfg.Out, name) }

// Warn tells of something that costs time and nothing else, when there is somebody to hear it.
func (c *Crawl) Warn(format string, args ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
}

// Remedy adds to an error about damage what to do.
func (c *Crawl) Remedy(err error) error {
	for _, damage := range []error{
		satstore.ErrCorrupt, archive.ErrIndex, stage.ErrRecord, fs.ErrNotExist,
	} {
		if errors.Is(err, damage) {
			return fmt.Errorf("%w: fullcrawler repair -out %s", err, c.Cfg.Out)
		}
	}
	return err
}

// OpenCaches opens what would otherwise have to be learned again: addresses, rules of servers, and
// what hosts are like.
func (c *Crawl) OpenCaches(web stage.Network) (err error) {
	// Two queries for each lookup, and some for what asks beside the finder: no one waits here.
	names := resolve.Options{
		Hosts: c.Cfg.Hosts, Servers: c.Cfg.NameServers, MaxQueries: 2*stage.MaxLookups + 16,
	}
	if web.Resolve != nil {
		names.Lookup, names.MinTTL = web.Resolve, -1
	}
	if c.Resolver, err = resolve.Open(c.file(HostsName), names); err != nil {
		c.Warn("%v: all hosts are looked up again", err)
		if c.Resolver == nil {
			return err
		}
	}
	c.Finder = stage.NewFinder(c.Resolver.Addr, c.Polite.Queue.Producer, c.Cfg.Queue)
	c.Uplink = stage.NewUplink(c.Resolver.Ping, c.TellTrouble)
	if c.Cfg.Bounds == fetch.Loopback {
		c.Uplink.Probe = func(context.Context) error { return nil } // there is no network to fail
	}
	rules, err := os.ReadFile(c.file(RulesName))
	if err == nil {
		err = c.Robots.Restore(rules, time.Now())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Warn("%s: %v: each robots.txt is fetched again", c.file(RulesName), err)
	}
	if c.Rhythms, err = stage.OpenRhythms(c.file(RhythmName)); c.Rhythms == nil {
		return err
	}
	if err != nil {
		c.Warn("%v: what hosts are like is learned anew", err)
	}
	return nil
}

// SaveCaches saves what OpenCaches has opened.
func (c *Crawl) SaveCaches() error {
	rules, err := c.Robots.Append(nil)
	if err == nil {
		err = stage.ReplaceFile(c.file(RulesName), rules)
	}
	return errors.Join(c.Resolver.Save(), err, c.Rhythms.Save())
}

// OpenPoliteness brings the scheduler to what it knew before a crash: which servers asked the
// crawler to come back later, which are in trouble, and the Crawl-delays of all rules that are
// known, or one that a server lifts would lift those of other servers of its host.
func (c *Crawl) OpenPoliteness() error {
	state, err := os.ReadFile(c.file(StateName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := c.Polite.Restore(state); err != nil {
			c.Warn("%s: %v: all other hosts get the usual delay", c.file(StateName), err)
		}
	}
	for url, delay := range c.Robots.Delays() {
		c.Polite.SetDelay(url, delay)
	}
	c.opened = true
	return c.SavePoliteness() // also to say that there was a crawl here
}

// SavePoliteness replaces the file.
func (c *Crawl) SavePoliteness() error {
	c.given.Store(c.Polite.Queue.Stats().Given)
	state, err := c.Polite.Append(nil)
	if err != nil {
		return err
	}
	return stage.ReplaceFile(c.file(StateName), state)
}

// SavePolitenessIfUsed is SavePoliteness if there was a visit since the last one.
func (c *Crawl) SavePolitenessIfUsed() error {
	if c.Polite.Queue.Stats().Given == c.given.Load() {
		return nil
	}
	return c.SavePoliteness()
}

// SaveState saves at the end all that has been opened.
func (c *Crawl) SaveState() error {
	if !c.opened {
		return nil
	}
	return errors.Join(c.SavePoliteness(), c.SaveCaches(), c.SaveOrder())
}

// OpenOrder takes over the scores that an earlier crawl saved, if pages are ordered by rank. Those
// of the minutes before a crash are not among them, nor would a crawl be wrong without any.
func (c *Crawl) OpenOrder() error {
	if !c.Cfg.ByRank {
		return nil
	}
	c.Order = stage.NewOrder()
	f, err := os.Open(c.file(OrderName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	order, err := stage.ReadOrder(f)
	if err != nil {
		c.Warn("%s is damaged, so ranks begin anew: %v", f.Name(), err)
	}
	c.Order = cmp.Or(order, c.Order)
	return nil
}

// SaveOrder saves the scores, if there are any.
func (c *Crawl) SaveOrder() error {
	if c.Order == nil {
		return nil
	}
	return stage.ReplaceWith(c.file(OrderName), func(w io.Writer) error {
		_, err := c.Order.WriteTo(w)
		return err
	})
}
