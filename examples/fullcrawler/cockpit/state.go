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
	rules, err := os.ReadFile(c.file(RulesName))
	if err == nil {
		err = c.Robots.Restore(rules, time.Now(), c.asksAgain())
	}
	if errors.Is(err, durable.ErrVersion) { // saving would replace it
		return fmt.Errorf("%s: %w", c.file(RulesName), err)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Warn("%s: %v: each robots.txt is fetched again", c.file(RulesName), err)
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

// OpenPauses restores which hosts the operator has paused. A restart is no reason to visit them.
func (c *Crawl) OpenPauses() error {
	saved, err := os.ReadFile(c.file(PausedName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for host, err := range stage.Entries[string](saved) {
		if err != nil {
			return fmt.Errorf("%s: %w: remove it, and pause hosts again", c.file(PausedName), err)
		}
		c.Paused.Add(host)
		c.Warn("%s is still paused: resume it on the live page", host)
	}
	return nil
}

// savePauses requires that c.pausing is held.
func (c *Crawl) savePauses() error {
	hosts, err := stage.AppendEntries(nil, c.Paused.All())
	if err != nil {
		return err
	}
	return stage.ReplaceFile(c.file(PausedName), hosts)
}

// SaveCaches saves the caches that OpenCaches opened.
func (c *Crawl) SaveCaches() error {
	rules, err := c.Robots.Append(nil)
	if err == nil {
		err = stage.ReplaceFile(c.file(RulesName), rules)
	}
	return errors.Join(c.Resolver.Save(), err, c.Rhythms.Save())
}

// OpenPoliteness restores the state of the scheduler: which servers asked the crawler to retry
// later, which are in trouble, and the Crawl-delays of all known rules. It needs all of these: when
// one server of a host drops its delay, those of the others must stay.
func (c *Crawl) OpenPoliteness() error {
	state, err := os.ReadFile(c.file(StateName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		err := c.Polite.Restore(state)
		if errors.Is(err, durable.ErrVersion) {
			return fmt.Errorf("%s: %w", c.file(StateName), err)
		}
		if err != nil {
			c.Warn("%s: %v: all other hosts get the usual delay", c.file(StateName), err)
		}
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
	state, err := c.Polite.Append(nil)
	if err != nil {
		return err
	}
	return stage.ReplaceFile(c.file(StateName), state)
}

// SavePolitenessIfUsed calls SavePoliteness if there was a visit since the last save.
func (c *Crawl) SavePolitenessIfUsed() error {
	if c.Polite.Queue.Stats().Given == c.given.Load() {
		return nil
	}
	return c.SavePoliteness()
}

// SaveState saves everything that was opened, at the end of a crawl.
func (c *Crawl) SaveState() error {
	if !c.opened {
		return nil
	}
	return errors.Join(c.SavePoliteness(), c.SaveCaches(), c.SaveOrder())
}

// OpenOrder loads the scores that an earlier crawl saved, if pages are ordered by rank. After a
// crash those of the last minutes are missing. A crawl is correct without any scores.
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
	if errors.Is(err, durable.ErrVersion) {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	if err != nil {
		c.Warn("%s is damaged, so ranks start again: %v", f.Name(), err)
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
