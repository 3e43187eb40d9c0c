package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http/cookiejar"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
	"golang.org/x/net/publicsuffix"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/dedupe"
	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/brotli"
	"github.com/spinneret-go/spinneret/hostcache/resolve"
	"github.com/spinneret-go/spinneret/revisit"
	"github.com/spinneret-go/spinneret/satstore"
	"github.com/spinneret-go/spinneret/scheduler"
)

// grace is how long requests under way may go on once the crawl was told to end.
const grace = 3 * time.Second

// A crawler is one crawl: its parts, and what flows between them.
//
// An item goes round like this: sight (canonical form, filter) → settle (duplicates, and into the
// pages) → feed (what is due, out of the pages) → route (robots.txt) → enqueue (scheduler) → visit
// (fetch, archive, links) → sight the links, end (its fate, and when to come back), settle.
//
// An item whose server's robots.txt is not known waits in the robots table while an item of its own
// fetches the file, through the same queue: so that request keeps the host's and the address's
// delay like any other. The sitemaps that the file names are items like pages, and what they list
// are links.
//
// The pages are files. All else may be lost at any time, and the same command goes on.
type crawler struct {
	cockpit.Crawl

	dir      *cockpit.Directory
	rhythms  *stage.Rhythms
	ports    stage.Ports
	client   *fetch.Client
	archived *fetch.Client // answers from the archive
	ledger   *cockpit.Ledger
	warnings []string // to be said when there is somebody to hear them

	settled chan struct{} // something may be due that was not
	changed chan struct{} // something was sighted or given back
	early   stage.Underway
	several stage.Several
	quota   stage.Quota
	delays  stage.CrawlDelays
	manners manners
	traps   *traps // nil finds none
	lately  lately

	ending context.Context // ends when the crawl has to; its cause says why
	stop   context.CancelCauseFunc
	broken atomic.Pointer[error] // the first failure, also if the crawl was told to end before it
}

// A network is where requests go. The zero network is the machine's own.
type network struct {
	resolve resolve.Lookup
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	roots   *x509.CertPool
}

// newCrawler locks a directory and puts the rooms together in it.
func newCrawler(cfg cockpit.Config, web network) (*crawler, error) {
	dir, err := claim(cfg)
	if err != nil {
		return nil, err
	}
	return openCrawler(dir, cfg, web)
}

// claim locks the directory of a crawl, and forgets its pages if that is asked for.
func claim(cfg cockpit.Config) (*cockpit.Directory, error) {
	dir, err := cockpit.OpenDirectory(cfg.Out, "crawl")
	if err == nil && cfg.Fresh {
		if err = dir.Forget(); err != nil {
			err = errors.Join(err, dir.Close())
		}
	}
	return dir, err
}

// openCrawler puts the rooms together, and goes on where an earlier crawl into the same directory
// ended. The crawler closes the directory.
func openCrawler(d *cockpit.Directory, cfg cockpit.Config, web network) (c *crawler, err error) {
	c = &crawler{dir: d, settled: make(chan struct{}, 1), changed: make(chan struct{}, 1)}
	c.Crawl = cockpit.Crawl{
		Cfg: cfg, Robots: stage.NewRobots(cfg.Agent), Filter: cfg.Filter, Tally: cockpit.NewTally(),
		Log: slog.New(slog.DiscardHandler), Say: func(string) {}, Room: make(chan struct{}, cfg.Queue),
	}
	c.Shared = stage.NewSharedAddrs(cfg.Shared, cfg.SharedAfter)
	c.quota, c.manners.news = stage.NewQuota(cfg.Pages), make(chan struct{}, 1)
	c.lately.links = dedupe.NewLinkCache(latelyLinks)
	ending, end := context.WithCancelCause(context.Background())
	c.ending, c.stop = ending, func(why error) {
		if why != nil && !cockpit.Paused(why) {
			c.broken.CompareAndSwap(nil, &why)
		}
		end(why)
	}
	if c.Cfg.Policy == nil {
		c.Cfg.Policy = revisit.Bayes{}
	}
	c.Filter.Hosts = cfg.Overrides
	c.Filter.Scope = &urlfilter.Scope{Reach: cfg.Reach}
	c.traps = newTraps(cfg.Traps)
	c.openQueue()
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	for _, open := range []func() error{
		c.openPages,
		c.openOrder,
		func() error { return c.openNetwork(web) },
		c.openArchive,
		c.openRules,
		c.openRhythms,
		func() error { return c.manners.open(c) },
		c.recallDelays,
	} {
		if err := open(); err != nil {
			return c, c.remedy(err)
		}
	}
	return c, nil
}

// remedy adds to an error about damage what to do.
func (c *crawler) remedy(err error) error {
	for _, damage := range []error{
		satstore.ErrCorrupt, archive.ErrIndex, stage.ErrRecord, fs.ErrNotExist,
	} {
		if errors.Is(err, damage) {
			return fmt.Errorf("%w: fullcrawler repair -out %s", err, c.Cfg.Out)
		}
	}
	return err
}

func (c *crawler) openQueue() {
	politeness := scheduler.Options{
		HostDelay: c.Cfg.Delay,
		Backoff:   c.Cfg.Backoff,
		MaxQueue:  -1, // the room bounds all open items, those that wait for a robots.txt too

		// Every worker gives its lease back, after an outage of any length. One that counted as
		// lost meanwhile could not be queued again, and its page would never end.
		LeaseTimeout: -1,
		Exempt:       c.Shared.Has,
	}
	if c.Cfg.Delay == 0 { // none, where 0 would mean the default
		politeness.HostDelay, politeness.LatencyFactor = -1, -1
	}
	if c.Cfg.Arrival > 0 {
		politeness.MaxPerAddr = 2 // while the first request is slow, but never two to a host
	}
	if c.Cfg.OverrideFile != "" { // arriving lets only hosts that may have them have several requests
		politeness.MaxPerHost, politeness.MaxPerAddr = stage.MaxConcurrency, stage.MaxConcurrency
		politeness.MaxPerGroup, politeness.HostDelay = stage.MaxConcurrency, max(c.Cfg.Delay, 1)
	}
	c.Queue = scheduler.New[stage.Item](politeness)
}

// bodyShare is the part of the memory that large pages may take together: a quarter, as for the
// buffers of the pages' store.
const bodyShare = 4

func (c *crawler) openNetwork(web network) (err error) {
	names := resolve.Options{Hosts: c.Cfg.Hosts, Servers: c.Cfg.NameServers}
	if web.resolve != nil {
		names.Lookup, names.MinTTL = web.resolve, -1
	}
	if c.Resolver, err = resolve.Open(c.file(cockpit.HostsName), names); err != nil {
		c.warn("%v: all hosts are looked up again", err)
		if c.Resolver == nil {
			return err
		}
	}
	c.Uplink = stage.NewUplink(c.Resolver.Ping, c.TellTrouble)
	if c.Cfg.Bounds == fetch.Loopback {
		c.Uplink.Probe = func(context.Context) error { return nil } // there is no network to fail
	}
	options := fetch.Options{
		UserAgent: c.Cfg.UserAgent(),
		Reach:     c.Cfg.Bounds,
		Timeout:   c.Cfg.Timeout,
		MaxBody:   c.Cfg.MaxBody,
		MaxMemory: c.Cfg.Memory / bodyShare,
		Resolve:   c.addrOf,
		Dial:      web.dial,
		Brotli:    brotli.New,
		Header:    c.Cfg.Header,
		Proxy:     c.Cfg.Proxy,
		HTTP1:     c.Cfg.HTTP1,
		TLSConfig: &tls.Config{RootCAs: web.roots},
	}
	if c.Cfg.Identity != nil {
		options.Wrap = c.Cfg.Identity.RoundTripper
	}
	if c.Cfg.CookieFile == "" {
		c.client, err = fetch.New(options)
		return err
	}
	cookies, err := os.Open(c.Cfg.CookieFile)
	if err != nil {
		return err
	}
	defer cookies.Close()
	options.Cookies = cookies
	if options.Jar, err = cookiejar.New(&cookiejar.Options{PublicSuffixList: publicsuffix.List}); err != nil {
		return err
	}
	c.client, err = fetch.New(options)
	return err
}

// addrOf is the resolver of package fetch: it connects to the address that the scheduler counts.
func (c *crawler) addrOf(ctx context.Context, host string) ([]netip.Addr, error) {
	addr, err := c.Resolver.Addr(ctx, host)
	return []netip.Addr{addr}, err
}

func (c *crawler) openRules() error {
	saved, err := os.ReadFile(c.file(cockpit.RulesName))
	if err == nil {
		err = c.Robots.Restore(saved, time.Now())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.warn("%s: %v: each robots.txt is fetched again", c.file(cockpit.RulesName), err)
	}
	return nil
}

func (c *crawler) openRhythms() (err error) {
	if c.rhythms, err = stage.OpenRhythms(c.file(cockpit.RhythmName)); c.rhythms == nil {
		return err
	}
	if err != nil {
		c.warn("%v: what hosts are like is learned anew", err)
	}
	return nil
}

func (c *crawler) openArchive() (err error) {
	if c.Cfg.Archive != cockpit.NoArchive {
		c.Store, err = archive.Open(c.Cfg.Out, archive.Options{
			Compression: compressions[c.Cfg.Archive], Level: c.Cfg.Level,
			Info: map[string]string{
				"software": "spinneret fullcrawler",
				"operator": c.Cfg.Contact,
				"robots":   "obey",
			},
		})
	}
	if err != nil {
		return err
	}
	if err := c.openArchived(); err != nil {
		return err
	}
	c.ledger, err = cockpit.OpenLedger(c.Cfg.Out, c.Cfg.LedgerSize)
	return err
}

// compressions are those of an archive by name.
var compressions = map[string]warc.Compression{"gzip": warc.Gzip, "zstd": warc.Zstd}

// run crawls until nothing is left, a limit is reached, user ends or the archive fails. It returns
// why the crawl ended early, nil if it did not. The archive is complete when it returns.
func (c *crawler) run(user context.Context) error {
	ctx := c.ending
	defer c.stop(nil)
	unhook := context.AfterFunc(user, func() { c.stop(cockpit.ErrStopped) })
	defer unhook()
	fetching, abort := context.WithCancel(context.WithoutCancel(user))
	defer abort()
	context.AfterFunc(ctx, func() { time.AfterFunc(grace, abort) })

	feeding := c.Queue.Producer()
	var workers, keepers sync.WaitGroup
	for range c.Cfg.Concurrency {
		workers.Go(func() { c.work(ctx, fetching) })
	}
	watching, done := context.WithCancel(ctx)
	keepers.Go(func() { c.settleLoop(watching) })
	keepers.Go(func() { c.manners.keep(watching, c) })
	keepers.Go(func() { c.watchLimits(watching) })
	c.Retries.Progress(time.Now())
	c.seed()
	c.feed(ctx)
	feeding()
	workers.Wait()
	done()
	keepers.Wait()
	return c.remedy(errors.Join(c.ended(), c.close()))
}

// ended returns why the crawl ended. A failure outranks a limit that came before it.
func (c *crawler) ended() error {
	if failure := c.broken.Load(); failure != nil {
		return *failure
	}
	return context.Cause(c.ending)
}

// seed sights the seeds. Those that are known change nothing.
func (c *crawler) seed() {
	for range c.Cfg.BadSeeds {
		c.Tally.Skip(urlfilter.NotURL)
	}
	for _, seed := range c.Cfg.Seeds {
		c.widen(seed)
		c.sight(seed, stage.Item{})
	}
}

// close closes what is open. What can be had again is closed last: if the disk is full, then pages
// and archive come first.
func (c *crawler) close() (err error) {
	for _, server := range c.Servers {
		err = errors.Join(err, server.Close())
	}
	if c.client != nil {
		c.client.CloseIdle()
	}
	if c.Store != nil {
		err = errors.Join(err, c.Store.Close())
	}
	if c.Pages != nil && c.ledger != nil {
		_, e := c.settle()
		err = errors.Join(err, e)
	}
	if c.Pages != nil {
		err = errors.Join(err, c.Pages.Close())
	}
	if c.ledger != nil {
		err = errors.Join(err, c.ledger.Close())
	}
	if c.manners.opened {
		err = errors.Join(err, c.manners.save(c), c.saveCaches(), c.saveOrder())
	}
	return errors.Join(err, c.dir.Close())
}

func (c *crawler) file(name string) string { return filepath.Join(c.Cfg.Out, name) }

func (c *crawler) saveCaches() error {
	rules, err := c.Robots.Append(nil)
	if err == nil {
		err = stage.ReplaceFile(c.file(cockpit.RulesName), rules)
	}
	return errors.Join(c.Resolver.Save(), err, c.rhythms.Save())
}

// work visits what the scheduler hands out until the crawl ends.
func (c *crawler) work(ctx, fetching context.Context) {
	for ctx.Err() == nil {
		lease, err := c.Queue.Next(ctx)
		if err != nil {
			return
		}
		if !c.Uplink.Wait(ctx) {
			lease.Done(scheduler.Outcome{Skipped: true})
			return
		}
		outcome := c.visit(fetching, lease)
		c.advance() // before the lease ends, lest nothing seems to be left
		lease.Done(outcome)
		if outcome.RetryAfter.After(time.Now()) {
			c.manners.changed()
		}
	}
}
