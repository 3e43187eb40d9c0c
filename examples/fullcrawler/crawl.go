package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/dedupe/exact"
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

// A crawler is one crawl: the rooms, and what flows between them.
//
// An item goes round like this: sight (canonical form, filter) → settle (duplicates, and into the
// pages) → feed (what is due, out of the pages) → route (robots.txt) → enqueue (scheduler) → visit
// (fetch, archive, links) → sight the links, end (its fate, and when to come back), settle.
//
// An item whose server's robots.txt is not known waits in the robots table while an item of its own
// fetches the file, through the same queue: so that request keeps the host's and the address's delay
// like any other. The sitemaps that the file names are items like pages, and what they list are
// links.
//
// The pages are files. All else may be lost at any time, and the same command goes on.
type crawler struct {
	cfg      config
	dir      *directory
	clock    stage.Clock
	pages    *stage.Pages
	hosts    *stage.HostBook
	robots   *stage.Robots
	order    *stage.Order // nil if items are taken in the order in which they are found
	ports    stage.Ports
	uplink   *stage.Uplink
	resolver *resolve.Resolver
	queue    *scheduler.Scheduler[stage.Item]
	client   *fetch.Client
	archived *fetch.Client    // answers from the archive
	store    *archive.Archive // nil if nothing is kept
	ledger   *ledger
	filter   stage.Filter
	tally    *tally
	rhythms  *stage.Rhythms
	log      *slog.Logger
	say      func(string) // to whoever watches the terminal
	warnings []string     // to be said when there is somebody to hear them
	servers  []*http.Server

	room    chan struct{} // has an element for each page in hand
	settled chan struct{} // something may be due that was not
	changed chan struct{} // something was sighted or given back
	early   stage.Underway
	retries stage.Retries

	quota   stage.Quota
	delays  stage.CrawlDelays
	ending  context.Context // ends when the crawl has to; its cause says why
	stop    context.CancelCauseFunc
	broken  atomic.Pointer[error] // the first one, also if the crawl was told to end before it
	manners manners
	known   satstore.Stats // when the crawl ended
}

// Why a crawl ends before its queue is empty.
var (
	errPageLimit   = errors.New("page limit reached")
	errByteLimit   = errors.New("byte limit reached")
	errTimeLimit   = errors.New("time limit reached")
	errDiskLimit   = errors.New("disk nearly full")
	errMemoryLimit = errors.New("memory nearly full")
	errStopped     = errors.New("interrupted")

	// errReopen is wrapped where the same command has to begin anew at once.
	errReopen = errors.New("the pages are opened again")
)

// paused says whether a crawl ended because it was told to.
func paused(err error) bool {
	for _, limit := range []error{
		errPageLimit, errByteLimit, errTimeLimit, errDiskLimit, errMemoryLimit, errStopped, errReopen,
	} {
		if errors.Is(err, limit) {
			return true
		}
	}
	return false
}

// A network is where requests go. The zero network is the machine's own.
type network struct {
	resolve resolve.Lookup
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)
}

// newCrawler locks a directory and puts the rooms together in it.
func newCrawler(cfg config, web network) (*crawler, error) {
	dir, err := claim(cfg)
	if err != nil {
		return nil, err
	}
	return dir.newCrawler(cfg, web)
}

// claim locks the directory of a crawl, and forgets its pages if that is asked for.
func claim(cfg config) (*directory, error) {
	dir, err := openDirectory(cfg.out, "crawl")
	if err == nil && cfg.fresh {
		if err = dir.forget(); err != nil {
			err = errors.Join(err, dir.close())
		}
	}
	return dir, err
}

// newCrawler puts the rooms together, and goes on where an earlier crawl into the same directory
// ended. The crawler closes the directory.
func (d *directory) newCrawler(cfg config, web network) (c *crawler, err error) {
	c = &crawler{
		cfg:     cfg,
		dir:     d,
		robots:  stage.NewRobots(cfg.agent),
		filter:  cfg.filter,
		tally:   newTally(),
		log:     slog.New(slog.DiscardHandler),
		say:     func(string) {},
		room:    make(chan struct{}, cfg.queue),
		settled: make(chan struct{}, 1),
		changed: make(chan struct{}, 1),
	}
	c.quota, c.manners.news = stage.NewQuota(cfg.pages), make(chan struct{}, 1)
	ending, end := context.WithCancelCause(context.Background())
	c.ending, c.stop = ending, func(why error) {
		if why != nil && !paused(why) {
			c.broken.CompareAndSwap(nil, &why)
		}
		end(why)
	}
	if c.cfg.policy == nil {
		c.cfg.policy = revisit.Bayes{}
	}
	c.filter.Scope = &urlfilter.Scope{Reach: cfg.reach}
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
		satstore.ErrCorrupt, exact.ErrCorrupt, archive.ErrIndex, stage.ErrLost, stage.ErrRecord, fs.ErrNotExist,
	} {
		if errors.Is(err, damage) {
			return fmt.Errorf("%w: fullcrawler repair -out %s", err, c.cfg.out)
		}
	}
	return err
}

func (c *crawler) openQueue() {
	politeness := scheduler.Options{
		HostDelay: c.cfg.delay,
		Backoff:   c.cfg.backoff,
		MaxQueue:  -1, // the room bounds all open items, those that wait for a robots.txt too

		// Every worker gives its lease back, after an outage of any length. One that counted as lost
		// meanwhile could not be queued again, and its page would never end.
		LeaseTimeout: -1,
	}
	if c.cfg.delay == 0 { // none, where 0 would mean the default
		politeness.HostDelay, politeness.LatencyFactor = -1, -1
	}
	if c.cfg.arrival > 0 {
		politeness.MaxPerAddr = 2 // while the first request is slow, but never two to a host
	}
	c.queue = scheduler.New[stage.Item](politeness)
}

func (c *crawler) openNetwork(web network) (err error) {
	names := resolve.Options{Hosts: c.cfg.hosts, Servers: c.cfg.nameServers}
	if web.resolve != nil {
		names.Lookup, names.MinTTL = web.resolve, -1
	}
	if c.resolver, err = resolve.Open(c.file(hostsName), names); err != nil {
		c.warn("%v: all hosts are looked up again", err)
		if c.resolver == nil {
			return err
		}
	}
	c.uplink = stage.NewUplink(c.resolver.Ping, c.tellTrouble)
	if c.cfg.bounds == fetch.Loopback {
		c.uplink.Probe = func(context.Context) error { return nil } // there is no network to fail
	}
	c.client, err = fetch.New(fetch.Options{
		UserAgent: c.cfg.userAgent(),
		Reach:     c.cfg.bounds,
		Timeout:   c.cfg.timeout,
		MaxBody:   c.cfg.maxBody,
		Resolve:   c.addrOf,
		Dial:      web.dial,
		Brotli:    brotli.New,
	})
	return err
}

// addrOf is the resolver of package fetch: it connects to the address that the scheduler counts.
func (c *crawler) addrOf(ctx context.Context, host string) ([]netip.Addr, error) {
	addr, err := c.resolver.Addr(ctx, host)
	return []netip.Addr{addr}, err
}

func (c *crawler) openRules() error {
	saved, err := os.ReadFile(c.file(rulesName))
	if err == nil {
		err = c.robots.Restore(saved, time.Now())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.warn("%s: %v: each robots.txt is fetched again", c.file(rulesName), err)
	}
	return nil
}

func (c *crawler) openRhythms() (err error) {
	if c.rhythms, err = stage.OpenRhythms(c.file(rhythmName)); c.rhythms == nil {
		return err
	}
	if err != nil {
		c.warn("%v: what hosts are like is learned anew", err)
	}
	return nil
}

func (c *crawler) openArchive() (err error) {
	if c.cfg.archive != noArchive {
		c.store, err = archive.Open(c.cfg.out, archive.Options{
			Compression: compressions[c.cfg.archive],
			Info: map[string]string{
				"software": "spinneret fullcrawler",
				"operator": c.cfg.contact,
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
	c.ledger, err = openLedger(c.cfg.out)
	return err
}

// compressions are those of an archive by name.
var compressions = map[string]warc.Compression{"gzip": warc.Gzip, "zstd": warc.Zstd}

// run crawls until nothing is left, a limit is reached, user ends or the archive fails. It returns
// why the crawl ended early, nil if it did not. The archive is complete when it returns.
func (c *crawler) run(user context.Context) error {
	ctx := c.ending
	defer c.stop(nil)
	unhook := context.AfterFunc(user, func() { c.stop(errStopped) })
	defer unhook()
	fetching, abort := context.WithCancel(context.WithoutCancel(user))
	defer abort()
	context.AfterFunc(ctx, func() { time.AfterFunc(grace, abort) })

	feeding := c.queue.Producer()
	var workers, keepers sync.WaitGroup
	for range c.cfg.concurrency {
		workers.Go(func() { c.work(ctx, fetching) })
	}
	watching, done := context.WithCancel(ctx)
	keepers.Go(func() { c.settleLoop(watching) })
	keepers.Go(func() { c.manners.keep(watching, c) })
	keepers.Go(func() { c.watchLimits(watching) })
	c.retries.Progress(time.Now())
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
	for range c.cfg.badSeeds {
		c.tally.skip(urlfilter.NotURL)
	}
	for _, seed := range c.cfg.seeds {
		c.filter.Scope.Add(seed)
		c.sight(seed, stage.Item{})
	}
}

// close closes what is open. What can be had again is closed last: if the disk is full, then pages
// and archive come first.
func (c *crawler) close() (err error) {
	for _, server := range c.servers {
		err = errors.Join(err, server.Close())
	}
	if c.client != nil {
		c.client.CloseIdle()
	}
	if c.store != nil {
		err = errors.Join(err, c.store.Close())
	}
	if c.pages != nil && c.ledger != nil {
		_, e := c.settle()
		err = errors.Join(err, e)
	}
	if c.pages != nil {
		err = errors.Join(err, c.pages.Close())
		c.known, _ = c.pages.Stats()
	}
	if c.ledger != nil {
		err = errors.Join(err, c.ledger.close())
	}
	if c.manners.opened {
		err = errors.Join(err, c.manners.save(c), c.saveCaches(), c.saveOrder())
	}
	return errors.Join(err, c.dir.close())
}

// The files beside the archive that save work or trouble when the crawl goes on.
const (
	hostsName  = "hosts.cache"  // addresses
	rulesName  = "robots.cache" // rules of servers
	rhythmName = "rhythm.cache" // when hosts publish, and how reliable their sitemaps are
	orderName  = "rank.cache"   // scores and links of pages
	stateName  = "politeness.state"
	beganName  = "began"
)

func (c *crawler) file(name string) string { return filepath.Join(c.cfg.out, name) }

func (c *crawler) saveCaches() error {
	rules, err := c.robots.Append(nil)
	if err == nil {
		err = stage.ReplaceFile(c.file(rulesName), rules)
	}
	return errors.Join(c.resolver.Save(), err, c.rhythms.Save())
}

// work visits what the scheduler hands out until the crawl ends.
func (c *crawler) work(ctx, fetching context.Context) {
	for ctx.Err() == nil {
		lease, err := c.queue.Next(ctx)
		if err != nil {
			return
		}
		if !c.uplink.Wait(ctx) {
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
