package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/dedupe"
	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/brotli"
	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/scheduler"
)

// maxRedirects is how many redirects in a row lead to a page; browsers give up after twenty.
const maxRedirects = 10

// seenURLs is for how many URLs the duplicate check is planned, at 1.8 bytes each. It grows past it.
const seenURLs = 10_000_000

// grace is how long requests under way may go on once the crawl was told to end.
const grace = 3 * time.Second

// A crawler is one crawl: the rooms, and what flows between them.
//
// An item goes round like this: admit (canonical form, filter, duplicates) → route (robots.txt) →
// enqueue (scheduler) → visit (fetch, archive, links) → admit. An item whose server's robots.txt is
// not known waits in the robots table while an item of its own fetches the file, through the same
// queue: so that request keeps the host's and the address's delay like any other. The sitemaps that
// the file names are items like pages, and what they list are links.
type crawler struct {
	cfg      config
	seen     *dedupe.Filter
	robots   *stage.Robots
	order    *stage.Order // nil if items are taken in the order in which they are found
	ports    stage.Ports
	resolver *stage.Resolver
	queue    *scheduler.Scheduler[stage.Item]
	client   *fetch.Client
	store    *archive.Archive
	ledger   *ledger
	filter   stage.Filter
	tally    *tally

	pages atomic.Int64 // page fetches begun, against cfg.pages
	stop  context.CancelCauseFunc
}

// Why a crawl ends before its queue is empty.
var (
	errPageLimit = errors.New("page limit reached")
	errStopped   = errors.New("interrupted")
)

// A network is where requests go. The zero network is the machine's own.
type network struct {
	resolve stage.Lookup
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)
}

// newCrawler puts the rooms together.
func newCrawler(cfg config, web network) (*crawler, error) {
	c := &crawler{
		cfg:    cfg,
		seen:   dedupe.New(dedupe.Options{Capacity: seenURLs}),
		robots: stage.NewRobots(cfg.agent),
		filter: cfg.filter,
		tally:  newTally(),
	}
	if cfg.byRank {
		c.order = stage.NewOrder()
	}
	politeness := scheduler.Options{
		HostDelay: cfg.delay,
		Backoff:   cfg.backoff,
		MaxQueue:  -1, // the tally bounds all open items, those that wait for a robots.txt too
	}
	if cfg.delay < 0 {
		politeness.LatencyFactor, politeness.Backoff = -1, -1
	}
	c.queue = scheduler.New[stage.Item](politeness)
	c.filter.Scope = stage.NewScope(cfg.reach)
	var err error
	if c.resolver, err = stage.NewResolver(web.resolve, c.hostsFile()); err != nil {
		return nil, err
	}
	if err = c.robots.Open(c.rulesFile()); err != nil {
		return nil, err
	}
	c.client, err = fetch.New(fetch.Options{
		UserAgent: cfg.userAgent(),
		Reach:     cfg.bounds,
		Timeout:   cfg.timeout,
		MaxBody:   cfg.maxBody,
		Resolve:   c.resolver.Resolve,
		Dial:      web.dial,
		Decoders:  map[string]func() fetch.Decoder{"br": brotli.New},
	})
	if err != nil {
		return nil, err
	}
	c.store, err = archive.Open(cfg.out, archive.Options{Info: map[string]string{
		"software": "spinneret fullcrawler",
		"operator": cfg.contact,
		"robots":   "obey",
	}})
	if err != nil {
		return nil, err
	}
	c.ledger, err = openLedger(cfg.out)
	return c, err
}

// run crawls until nothing is left, a limit is reached, ctx ends or the archive fails. It returns
// why the crawl ended early, nil if it did not. The archive is complete when it returns.
func (c *crawler) run(ctx context.Context) error {
	user := ctx
	ctx, c.stop = context.WithCancelCause(context.WithoutCancel(user))
	defer c.stop(nil)
	unhook := context.AfterFunc(user, func() { c.stop(errStopped) })
	defer unhook()
	fetching, abort := context.WithCancel(context.WithoutCancel(user))
	defer abort()
	context.AfterFunc(ctx, func() { time.AfterFunc(grace, abort) })

	seeding := c.queue.Producer()
	var workers sync.WaitGroup
	for range c.cfg.concurrency {
		workers.Go(func() { c.work(ctx, fetching) })
	}
	for range c.cfg.badSeeds {
		c.tally.skip(urlfilter.NotURL)
	}
	for _, seed := range c.cfg.seeds {
		c.filter.Scope.Add(seed)
		c.admit(seed, stage.Item{})
	}
	c.advance()
	seeding()
	workers.Wait()
	c.client.CloseIdle()

	return errors.Join(context.Cause(ctx), c.store.Close(), c.ledger.close(),
		c.resolver.Save(c.hostsFile()), c.robots.Save(c.rulesFile()))
}

// hostsFile is where the addresses of hosts are kept for the next crawl into the same directory.
func (c *crawler) hostsFile() string { return filepath.Join(c.cfg.out, "hosts.cache") }

// rulesFile is where the rules of servers are kept likewise.
func (c *crawler) rulesFile() string { return filepath.Join(c.cfg.out, "robots.cache") }

// work visits what the scheduler hands out until the crawl ends.
func (c *crawler) work(ctx, fetching context.Context) {
	for ctx.Err() == nil {
		lease, err := c.queue.Next(ctx)
		if err != nil {
			return
		}
		outcome := c.visit(fetching, lease.Task())
		c.advance() // before the lease ends, lest nothing seems to be left
		lease.Done(outcome)
	}
}

// admit takes in one URL. Every URL that comes past the duplicate check ends with one fate. It
// returns the canonical form, or "" if the URL is none that is crawled.
func (c *crawler) admit(raw string, it stage.Item) (canonical string) {
	var err error
	if it.URL, err = dedupe.Canonical(raw); err != nil {
		c.tally.skip(urlfilter.Malformed(err))
		return ""
	}
	if why := c.filter.Check(it); why != "" {
		c.tally.skip(why)
		return ""
	}
	if !c.seen.Add(it.URL) {
		c.tally.skip(stage.Duplicate)
		return it.URL
	}
	it.URL = strings.Clone(it.URL) // the links of a page are parts of one text
	if fate := c.tally.open(dedupe.Host(it.URL), c.cfg.hostPages, c.cfg.queue); fate != "" {
		c.end(it, fate, "")
		return it.URL
	}
	if c.order != nil {
		c.order.Add(it)
	} else {
		c.route(it)
	}
	return it.URL
}

// advance routes what is next by its rank, as far as there is room for it.
func (c *crawler) advance() {
	for c.order != nil {
		it, ok := c.order.Next()
		if !ok {
			return
		}
		c.route(it)
	}
}

// route sends an item on by what its server's robots.txt says.
func (c *crawler) route(it stage.Item) {
	if c.rule(it) {
		c.enqueue(it)
	}
}

// rule asks the robots table whether the item may be fetched, and sees to it if not.
func (c *crawler) rule(it stage.Item) (allowed bool) {
	ruling := c.robots.Rule(it, time.Now())
	if ruling.News != nil {
		c.learn(it.URL, *ruling.News, it.Depth)
	}
	switch ruling.Step {
	case stage.Stop:
		c.end(it, ruling.Fate, ruling.Why)
	case stage.Ask:
		c.enqueueRobots(ruling.Request)
	}
	return ruling.Step == stage.Go
}

// enqueueRobots makes an item of a request for a robots.txt.
func (c *crawler) enqueueRobots(req robots.Request) {
	url, err := dedupe.Canonical(req.URL)
	if err != nil { // a redirect to what is no URL
		c.silent(req, stage.RobotsUnreachable, err.Error())
		return
	}
	c.enqueue(stage.Item{URL: url, Robots: &req})
}

// enqueue hands an item to the scheduler. A host whose address is not known yet is looked up by
// the worker that gets the item, which then puts it back with the address.
func (c *crawler) enqueue(it stage.Item) {
	host := dedupe.Host(it.URL)
	addr, _ := c.resolver.Cached(host)
	task := scheduler.Task[stage.Item]{Host: host, Addr: addr, Item: it}
	if err := c.queue.Add(task); err != nil {
		c.giveUp(it, stage.QueueFull, err)
	}
}

// visit does one task and reports when and how long it occupied the host.
func (c *crawler) visit(ctx context.Context, task scheduler.Task[stage.Item]) scheduler.Outcome {
	skipped := scheduler.Outcome{Skipped: true}
	it := task.Item
	addr, err := c.resolver.Addr(ctx, task.Host)
	if err != nil {
		c.giveUp(it, stage.Judge(nil, err), err)
		return skipped
	}
	if addr != task.Addr {
		c.enqueue(it) // the delay of its address, new or changed, has to be kept as well
		return skipped
	}
	if it.Robots != nil {
		return c.visitRobots(ctx, it)
	}
	if !c.rule(it) { // once more just before the request (paper Q §5.2.4)
		return skipped
	}
	if it.Sitemap == nil && c.cfg.pages > 0 && c.pages.Add(1) > c.cfg.pages {
		c.stop(errPageLimit)
		return skipped
	}
	return c.visitPage(ctx, it)
}

// visitPage fetches a page or a sitemap, keeps it and admits its links.
func (c *crawler) visitPage(ctx context.Context, it stage.Item) scheduler.Outcome {
	resp, err := c.get(ctx, it.URL, fetch.Validators{})
	if err != nil {
		c.giveUp(it, stage.Judge(nil, err), err)
		return c.failure(it.URL, err)
	}
	defer c.client.Release(resp)
	if err := c.keep(resp); err != nil {
		c.end(it, stage.Unstored, err.Error())
		return outcome(resp)
	}
	fate, why := stage.Judge(resp, nil), stage.Detail(resp)
	switch {
	case fate == stage.Redirected && it.Hops >= maxRedirects:
		fate = stage.TooManyRedirects
	case fate == stage.Redirected:
		c.redirect(it, resp.Location)
	case fate.Page() && it.Sitemap != nil:
		fate, why = c.list(it, resp)
	case fate.Page():
		c.extract(it, resp)
	}
	c.end(it, fate, why)
	return outcome(resp)
}

// extract admits what a page links to.
func (c *crawler) extract(it stage.Item, resp *fetch.Response) {
	var links []string
	stage.Extract(resp, c.cfg.agent, c.cfg.resources, func(url string, why stage.Reason) {
		to := c.follow(stage.Item{URL: url, Depth: it.Depth + 1}, why)
		if c.order != nil && to != "" {
			links = append(links, to)
		}
	})
	c.rank(it.URL, links...)
}

// rank tells the order of items, if it asks, where a page leads.
func (c *crawler) rank(url string, links ...string) {
	if c.order != nil {
		c.order.Fetched(url, links)
	}
}

// follow admits what a link leads to, unless there is a reason not to.
func (c *crawler) follow(it stage.Item, why stage.Reason) (canonical string) {
	if why != "" {
		c.tally.skip(why)
		return ""
	}
	return c.admit(it.URL, it)
}

// list admits what a sitemap lists and returns what became of the sitemap.
func (c *crawler) list(it stage.Item, resp *fetch.Response) (stage.Fate, string) {
	entries := 0
	err := stage.List(resp, it, func(entry stage.Item, why stage.Reason) {
		entries++
		c.follow(entry, why)
	})
	switch {
	case err != nil && entries == 0:
		return stage.NoSitemap, err.Error()
	case err != nil:
		return stage.Listed, err.Error()
	}
	return stage.Listed, stage.Detail(resp)
}

// maxSitemaps is how many sitemaps a robots.txt may name. Each may be an index of 50,000.
const maxSitemaps = 100

// learn takes in what the rules of a URL's server say beside what they forbid: the delay that it
// asks for, and its sitemaps. Those lie where the nearest of the pages lies that need the rules.
func (c *crawler) learn(url string, rules stage.Settled, nearest int) {
	if rules.Delay > 0 {
		c.queue.SetDelay(dedupe.Host(url), rules.Delay)
	}
	if !c.cfg.sitemaps || c.cfg.reach == stage.Page || nearest == math.MaxInt {
		return
	}
	it := stage.Item{Depth: nearest, Sitemap: &stage.Sitemap{Server: stage.Authority(url)}}
	for n, sitemap := range rules.Sitemaps {
		if n < maxSitemaps {
			c.admit(sitemap, it)
		} else {
			c.tally.skip(stage.ManySitemaps)
		}
	}
}

// redirect admits where a redirect leads. What a seed redirects to is a seed too: who asks for
// http://example.org wants https://www.example.org.
func (c *crawler) redirect(it stage.Item, location string) {
	if url, err := dedupe.Canonical(location); err == nil && it.Seeded() {
		c.filter.Scope.Add(url)
	}
	from := it.URL
	it.Hops++
	c.rank(from, c.admit(location, it))
}

// visitRobots fetches a robots.txt and lets go the items that wait for it.
func (c *crawler) visitRobots(ctx context.Context, it stage.Item) scheduler.Outcome {
	req := *it.Robots
	resp, err := c.get(ctx, it.URL, fetch.Validators{ETag: req.ETag, LastModified: req.LastModified})
	if err != nil {
		c.giveUp(it, stage.Judge(nil, err), err)
		return c.failure(it.URL, err)
	}
	defer c.client.Release(resp)
	c.tally.robots()
	_ = c.keep(resp) // an archive that fails has ended the crawl; the rules hold all the same
	answer := robots.Response{Status: resp.Status, Header: resp.Header, Body: resp.Body}
	if resp.Truncated == fetch.CutDisconnect || resp.Truncated == fetch.CutTime || resp.Truncated == fetch.CutSlow {
		answer = robots.Response{} // half a file may lack the half that forbids
	}
	settled := c.robots.Settle(req, answer, time.Now())
	if settled.More {
		c.enqueueRobots(settled.Next)
		return outcome(resp)
	}
	nearest := math.MaxInt
	for _, waiting := range settled.Released {
		nearest = min(nearest, waiting.Depth)
		c.route(waiting)
	}
	c.learn(req.For, settled, nearest)
	return outcome(resp)
}

// get fetches a URL, and notes that its port answers.
func (c *crawler) get(ctx context.Context, url string, v fetch.Validators) (*fetch.Response, error) {
	resp, err := c.client.Get(ctx, url, v)
	if err == nil {
		c.ports.Answered(url)
	}
	return resp, err
}

// giveUp ends an item without an answer. If it was to bring a robots.txt, all that waited for that
// ends with it.
func (c *crawler) giveUp(it stage.Item, fate stage.Fate, why error) {
	if it.Robots == nil {
		c.end(it, fate, why.Error())
		return
	}
	switch fate {
	case stage.TimedOut, stage.NotHTTP, stage.Oversized:
		fate = stage.RobotsUnreachable // the pages themselves were never asked for
	}
	c.silent(*it.Robots, fate, why.Error())
}

// silent ends all items that wait for a robots.txt that cannot be had.
func (c *crawler) silent(req robots.Request, fate stage.Fate, why string) {
	for _, waiting := range c.robots.Silent(req, fate, why, time.Now()) {
		c.end(waiting, fate, why)
	}
}

// end gives an item its fate, in the counts and in the ledger.
func (c *crawler) end(it stage.Item, fate stage.Fate, why string) {
	c.tally.end(fate)
	if c.order != nil {
		c.order.Done(it.URL)
	}
	if err := c.ledger.write(it.URL, fate, why); err != nil {
		c.stop(err)
	}
}

// keep puts a response into the archive. An archive that fails ends the crawl: what cannot be kept
// should not be asked for. One answer that no record can hold does not.
func (c *crawler) keep(resp *fetch.Response) error {
	_, err := c.store.Append(stage.Capture(resp))
	if err != nil {
		if !errors.Is(err, archive.ErrInvalid) {
			c.stop(fmt.Errorf("%w (make room, or name another directory with -out, and start again)", err))
		}
		return err
	}
	c.tally.kept(resp.Addr.Addr(), len(resp.Raw))
	return nil
}
