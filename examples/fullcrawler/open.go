package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/dedupe"
	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/hostcache"
	"github.com/spinneret-go/spinneret/hostcache/resolve"
	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/revisit"
	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/robots/robotstxt"
	"github.com/spinneret-go/spinneret/satstore"
	"github.com/spinneret-go/spinneret/scheduler"
)

// openCrawler connects the packages, and resumes an earlier crawl in the same directory. The
// crawler closes the directory.
func openCrawler(
	d *cockpit.Directory, cfg cockpit.Config, web stage.Network,
) (c *crawler, err error) {
	signal := func() chan struct{} { return make(chan struct{}, 1) }
	c = &crawler{dir: d, committed: signal(), changed: signal(), asked: signal()}
	c.Crawl = cockpit.Crawl{
		Cfg: cfg, Filter: cfg.Filter, Tally: cockpit.NewTally(),
		Room: make(chan struct{}, cfg.Queue), Places: stage.NewPlaces(cfg.Concurrency),
		Log: slog.New(slog.DiscardHandler), Say: func(string) {}, VisitNow: c.visitNow,
	}
	c.Quota = stage.NewQuota(cfg.Pages)
	ending, end := context.WithCancelCause(context.Background())
	c.ending, c.stop = ending, func(why error) {
		if why != nil && !cockpit.Paused(why) {
			c.broken.CompareAndSwap(nil, &why)
		}
		end(why)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	return c, c.Remedy(c.open(web))
}

// open opens what a page passes, in that order, and restores what an earlier run has saved.
func (c *crawler) open(web stage.Network) error {
	for _, open := range []func() error{
		c.openFilters,
		c.openPages,
		c.openOrder,
		c.openRobots,
		c.openScheduler,
		func() error { return c.openHosts(web) },
		c.openArchive,
		func() error { return c.openClients(web) },
		c.openRevisits,
		c.OpenPauses,
	} {
		if err := open(); err != nil {
			return err
		}
	}
	c.opened = true
	return c.savePoliteness() // which also marks the directory as that of a crawl
}

// openFilters creates what a discovered link passes.
func (c *crawler) openFilters() error {
	c.Filter.Hosts = c.Cfg.Overrides
	c.Filter.Scope = &urlfilter.Scope{Reach: c.Cfg.Reach}
	c.recent = newRecentLinks(dedupe.NewLinkCache(recentSize))
	c.traps = newTraps(c.Cfg.Traps, dedupe.New(dedupe.Options{Capacity: maxContents, Generations: 2}))
	return nil
}

// openPages opens the known pages, by the time of their next visits. If the filters have become wider
// or the clock was wrong, the pages are rewritten first.
func (c *crawler) openPages() (err error) {
	if c.Clock, err = stage.OpenClock(c.file(cockpit.BeganName), c.Cfg.Pace); err != nil {
		return err
	}
	if err := stage.FinishRewrite(c.Cfg.Out); err != nil {
		return err
	}
	for rewritten := true; rewritten; {
		options := cockpit.PagesOptions(c.Cfg, c.Clock)
		store, err := satstore.Open(c.file(stage.PagesDir), options)
		if err != nil {
			return fmt.Errorf("open the pages: %w", err)
		}
		c.Pages = stage.NewPages(store, options)
		if rewritten, err = c.Rewrite(); err != nil {
			return err
		}
	}
	return c.Recall()
}

// openOrder loads the scores that an earlier crawl saved, if pages are ordered by rank. After a
// crash up to an eighth of the pages are missing. A crawl is correct without any scores.
func (c *crawler) openOrder() (err error) {
	if !c.Cfg.ByRank {
		return nil
	}
	if c.Order, err = stage.OpenOrder(c.file(cockpit.OrderName)); c.Order == nil {
		return err
	}
	if err != nil {
		c.Warn("ranks start again: %v", err)
	}
	return nil
}

// An eighth of the memory is for the rules of servers. Those that do not fit are requested again and again.
const rulesShare, leastRules = 8, 64 << 20

// openRobots restores the rules of servers.
func (c *crawler) openRobots() error {
	c.Robots = stage.NewRobots(c.Cfg.Agent, robots.NewCache(robots.Options{
		Agent: c.Cfg.Agent, Patience: -1, MaxBytes: int(max(c.Cfg.Memory/rulesShare, leastRules)),
	}))
	c.rules = stage.NewJournal(c.file(cockpit.RulesName))
	err := c.rules.Restore(func(data []byte) error { return c.Robots.Restore(data, time.Now(), c.asksAgain()) })
	switch {
	case errors.Is(err, durable.ErrVersion): // saving would replace it
		return fmt.Errorf("%s: %w", c.file(cockpit.RulesName), err)
	case err != nil:
		c.Warn("%s: %v: each robots.txt after that is fetched again", c.file(cockpit.RulesName), err)
	}
	return nil
}

// asksAgain returns a function that reports whether a server is asked again for its robots.txt,
// although it was unreachable a short while ago: the operator may have mended that.
func (c *crawler) asksAgain() func(file string) bool {
	seeds := map[string]bool{}
	for _, seed := range c.Cfg.Seeds {
		if file, err := robotstxt.Locate(seed); err == nil {
			seeds[file] = true
		}
	}
	return func(file string) bool { return c.Cfg.Fresh || seeds[file] }
}

// openScheduler restores which servers asked the crawler to retry later, which are in trouble, and
// the Crawl-delays of all known rules. It needs all of these: when one server of a host drops its
// delay, those of the others must stay.
func (c *crawler) openScheduler() error {
	options := c.Cfg.Politeness()
	c.Polite = stage.NewPoliteness(options, scheduler.New[stage.Item](options.Scheduler()))
	c.politeness = stage.NewJournal(c.file(cockpit.StateName))
	err := c.politeness.Restore(c.Polite.Restore)
	if err == nil && c.Pages.Stats().Records > 0 {
		err = c.Polite.Queue.Restore(scheduler.Entry{}, time.Now()) // the file may be lost, but hosts were visited
	}
	switch {
	case errors.Is(err, durable.ErrVersion), errors.As(err, new(*fs.PathError)): // saving would replace it
		return fmt.Errorf("%s: %w", c.file(cockpit.StateName), err)
	case err != nil:
		c.Warn("%s: %v: all other hosts get the usual delay", c.file(cockpit.StateName), err)
	}
	for host, reason := range c.Polite.Queue.Reasons() {
		if wait := time.Until(reason.Until); wait > 0 && reason.Rule == stage.AskedToWait {
			c.Hosts.Visited(host, 0, c.Clock.Now().Add(c.Clock.Shown(wait)))
		}
	}
	for url, delay := range c.Robots.Delays() {
		c.Polite.SetDelay(url, delay)
	}
	return nil
}

// openHosts opens what is known of hosts: their addresses, and when they publish.
func (c *crawler) openHosts(web stage.Network) (err error) {
	// Two queries for each lookup, and some for other callers than the finder. So none has to wait.
	names := resolve.Options{
		Hosts: c.Cfg.Hosts, Servers: c.Cfg.NameServers, MaxQueries: 2*stage.MaxLookups + 16,
	}
	if web.Resolve != nil {
		names.Lookup, names.MinTTL = web.Resolve, -1
	}
	if c.Resolver, err = resolve.Open(c.file(cockpit.HostsName), names); err != nil {
		c.Warn("%v: all hosts are looked up again", err)
		if c.Resolver == nil {
			return err
		}
	}
	c.Finder = stage.NewFinder(c.Resolver.Addr, c.Polite.Queue.Producer, c.Cfg.Queue)
	c.Uplink = stage.NewUplink(c.Resolver.Ping, c.TellTrouble)
	c.Uplink.Timeout = c.Cfg.Timeout
	if c.Cfg.Bounds == fetch.Loopback {
		c.Uplink.Probe = func(context.Context) error { return nil } // there is no network to fail
	}
	rhythms, err := hostcache.Open[stage.Rhythm](c.file(cockpit.RhythmName), hostcache.Options{})
	if rhythms == nil {
		return err
	}
	if err != nil {
		c.Warn("%v: the rhythms of hosts are learned again", err)
	}
	c.Rhythms = &stage.Rhythms{Hosts: rhythms}
	return nil
}

// openClients creates the clients that fetch pages from servers and reread them from the archive.
func (c *crawler) openClients(web stage.Network) (err error) {
	options := c.Cfg.FetchOptions(web)
	if c.client, err = fetch.New(options); err == nil {
		c.archived, err = stage.NewArchived(c.Store, options)
	}
	return err
}

// openArchive opens the archive, and the ledger beside it.
func (c *crawler) openArchive() (err error) {
	if c.Cfg.Archive != cockpit.NoArchive {
		c.Store, err = archive.Open(c.Cfg.Out, archive.Options{
			Compression: map[string]warc.Compression{"gzip": warc.Gzip, "zstd": warc.Zstd}[c.Cfg.Archive],
			Level:       c.Cfg.Level, NoBlockDigest: c.Cfg.NoBlockDigest, Share: true,
			Redact: c.Cfg.Redacts,
			Info: map[string]string{
				"software": "spinneret fullcrawler", "operator": c.Cfg.Contact, "robots": "obey",
			},
		})
	}
	if err != nil {
		return err
	}
	c.ledger, err = cockpit.OpenLedger(c.Cfg.Out, c.Cfg.LedgerSize)
	return err
}

// openRevisits sets how the next visit of a page is chosen.
func (c *crawler) openRevisits() error {
	c.revisits = &revisits{
		Policy: revisit.Bayes{}, Clock: c.Clock, Unit: cockpit.UnitFor(c.Clock.Pace), Order: c.Order,
		Rhythms: c.Rhythms, Hosts: c.Hosts, Retries: &c.Retries,
	}
	if c.Cfg.Policy != nil {
		c.revisits.Policy = c.Cfg.Policy
	}
	return nil
}

// file returns the path of a file of the crawl.
func (c *crawler) file(name string) string { return filepath.Join(c.Cfg.Out, name) }
