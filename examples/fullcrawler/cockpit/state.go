package cockpit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/hostcache/resolve"
	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/robots/robotstxt"
	"github.com/spinneret-go/spinneret/satstore"
)

// file returns the path of a file of the crawl.
func (c *Crawl) file(name string) string { return filepath.Join(c.Cfg.Out, name) }

// Warn reports a problem that costs only time. It is printed once the log is open.
func (c *Crawl) Warn(format string, args ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
}

// Remedy adds advice to an error about damage.
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

// OpenCaches opens the caches that a crawl would otherwise have to fill again: addresses, rules of
// servers, and the rhythm of hosts.
func (c *Crawl) OpenCaches(web stage.Network) (err error) {
	// Two queries for each lookup, and some for other callers than the finder. So none has to wait.
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
	c.rules = stage.NewJournal(c.file(RulesName))
	err = c.rules.Restore(func(data []byte) error { return c.Robots.Restore(data, time.Now(), c.asksAgain()) })
	if errors.Is(err, durable.ErrVersion) { // saving would replace it
		return fmt.Errorf("%s: %w", c.file(RulesName), err)
	}
	if err != nil {
		c.Warn("%s: %v: each robots.txt after that is fetched again", c.file(RulesName), err)
	}
	if c.Rhythms, err = stage.OpenRhythms(c.file(RhythmName)); c.Rhythms == nil {
		return err
	}
	if err != nil {
		c.Warn("%v: the rhythms of hosts are learned again", err)
	}
	return nil
}

// asksAgain returns a function that reports whether a server is asked again for its robots.txt,
// although it was unreachable a short while ago: the operator may have mended that.
func (c *Crawl) asksAgain() func(file string) bool {
	seeds := map[string]bool{}
	for _, seed := range c.Cfg.Seeds {
		if file, err := robotstxt.Locate(seed); err == nil {
			seeds[file] = true
		}
	}
	return func(file string) bool { return c.Cfg.Fresh || seeds[file] }
}

// SaveCaches saves what the caches that OpenCaches opened have learned. At a cost in proportion to
// that: a file that has to be written as a whole waits until a good part of it has changed, unless the
// crawl ends.
func (c *Crawl) SaveCaches(ends bool) error {
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

// OpenPoliteness restores the state of the scheduler: which servers asked the crawler to retry
// later, which are in trouble, and the Crawl-delays of all known rules. It needs all of these: when
// one server of a host drops its delay, those of the others must stay.
func (c *Crawl) OpenPoliteness() error {
	c.politeness = stage.NewJournal(c.file(StateName))
	err := c.politeness.Restore(c.Polite.Restore)
	switch {
	case errors.Is(err, durable.ErrVersion), errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: %w", c.file(StateName), err)
	case err != nil:
		c.Warn("%s: %v: all other hosts get the usual delay", c.file(StateName), err)
	}
	for url, delay := range c.Robots.Delays() {
		c.Polite.SetDelay(url, delay)
	}
	c.opened = true
	return c.SavePoliteness() // which also marks the directory as that of a crawl
}

// SavePoliteness saves the state of the scheduler.
func (c *Crawl) SavePoliteness() error {
	c.given.Store(c.Polite.Queue.Stats().Given)
	began := time.Now()
	err := c.Polite.Save(c.politeness)
	c.politeAgain = time.Now().Add(politenessShare * time.Since(began))
	return err
}

// politenessShare bounds the time for looking at all hosts that have a state: one in so many seconds.
const politenessShare = 100

// SavePolitenessIfUsed calls SavePoliteness if there was a visit since the last save, and the time for
// it has come.
func (c *Crawl) SavePolitenessIfUsed() error {
	if c.Polite.Queue.Stats().Given == c.given.Load() || time.Now().Before(c.politeAgain) {
		return nil
	}
	return c.SavePoliteness()
}

// SaveState saves everything that was opened, at the end of a crawl.
func (c *Crawl) SaveState() error {
	if !c.opened {
		return nil
	}
	return errors.Join(c.SavePoliteness(), c.SaveCaches(true), c.SaveOrder(true))
}

// OpenOrder loads the scores that an earlier crawl saved, if pages are ordered by rank. After a
// crash those of the last minutes are missing. A crawl is correct without any scores.
func (c *Crawl) OpenOrder() (err error) {
	if !c.Cfg.ByRank {
		return nil
	}
	if c.Order, err = stage.OpenOrder(c.file(OrderName)); c.Order == nil {
		return err
	}
	if err != nil {
		c.Warn("ranks start again with what precedes the damage: %v", err)
	}
	return c.Order.Save()
}

// SaveOrder saves the scores, if there are any.
func (c *Crawl) SaveOrder(ends bool) error {
	switch {
	case c.Order == nil:
		return nil
	case ends:
		return c.Order.Checkpoint()
	}
	return c.Order.Save()
}
