package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/scheduler"
)

// grace is how long requests in flight may continue after the crawl must end.
const grace = 3 * time.Second

// A crawler is one crawl: its parts, and the items that flow between them.
//
// An item goes through these steps:
//
//	discover  canonical form, filters; added to the pages if it is new
//	commit    discoveries and visits become durable
//	feed      takes due items out of the pages
//	route     checks robots.txt
//	enqueue   into the scheduler, which waits for the host and its address
//	visit     fetches and archives the page, and discovers its links
//	end       records the fate and the time of the next visit
//
// If the robots.txt of a server is not known, its items wait in the robots table while a separate
// item fetches the file. That request goes through the same queue, so it obeys the delays of the
// host and the address like any other. The sitemaps that the file names are items like pages, and
// the URLs that they list are links.
//
// The pages are files. Everything else may be lost at any time; the same command still resumes the
// crawl.
type crawler struct {
	cockpit.Crawl

	dir      *cockpit.Directory
	client   *fetch.Client
	archived *stage.Archived
	ledger   *cockpit.Ledger
	revisits *revisits

	committed chan struct{} // pages may have become due
	changed   chan struct{} // a page was discovered or given back
	asked     chan struct{} // a server made a request that a crash must not lose, such as Retry-After
	longest   string        // URL of the page that waits longest, when last all were looked at
	traps     *traps        // nil finds none
	recent    *recentLinks

	foreignRules stage.Counts // requests for the robots.txt of other sites, by day and host
	seeds        seedAnswers

	opened      bool // everything has been restored
	rules       *stage.Journal
	politeness  *stage.Journal
	given       atomic.Int64 // visits started when politeness was last saved
	politeAgain time.Time    // when politeness may be saved again, unless a server asked for something
	looked      int64        // names looked up when the addresses were last saved

	ending context.Context // ends when the crawl has to; its cause says why
	stop   context.CancelCauseFunc
	broken atomic.Pointer[error] // the first failure, even one during the shutdown
}

// goOn makes a crawl that was reopened go on where the last one ended: the limits apply to both.
func (c *crawler) goOn(last *crawler) {
	c.Tally, c.Quota, c.Reopened = last.Tally, last.Quota, true
	c.Tally.Resume()
	if c.Quota.Spent() {
		c.stop(cockpit.ErrPageLimit)
	}
}

// run crawls until nothing is left, a limit is reached, user ends or the archive fails. It returns
// why the crawl ended early, or nil if it did not. When it returns, the archive is complete.
func (c *crawler) run(user context.Context) error {
	ctx := c.ending
	defer c.stop(nil)
	unhook := context.AfterFunc(user, func() { c.stop(cockpit.ErrStopped) })
	defer unhook()
	fetching, abort := context.WithCancel(context.WithoutCancel(user))
	defer abort()
	context.AfterFunc(ctx, func() { time.AfterFunc(grace, abort) })

	feeding := c.Polite.Queue.Producer()
	var visits, keepers sync.WaitGroup
	visits.Go(func() { c.work(ctx, fetching, &visits) })
	watching, done := context.WithCancel(ctx)
	keepers.Go(func() { c.commitLoop(watching) })
	keepers.Go(func() { c.saveLoop(watching) })
	keepers.Go(func() { c.WatchLimits(watching, c.stop) })
	c.Retries.Progress(time.Now())
	c.seed()
	c.feed(ctx)
	feeding()
	visits.Wait()
	c.Finder.Wait()
	done()
	keepers.Wait()
	return c.Remedy(errors.Join(c.ended(), c.close()))
}

// ended returns why the crawl ended. A failure takes precedence over a limit that came before it.
func (c *crawler) ended() error {
	if failure := c.broken.Load(); failure != nil {
		return *failure
	}
	return context.Cause(c.ending)
}

// seed discovers the seeds. A known seed is not visited again for that.
func (c *crawler) seed() {
	for range c.Cfg.BadSeeds {
		c.Tally.Skip(urlfilter.NotURL)
	}
	for _, seed := range c.Cfg.Seeds {
		c.discoverSeed(seed)
	}
}

// discoverSeed widens the scope to a seed and discovers it, once in a run.
func (c *crawler) discoverSeed(url string) {
	if plain, err := stage.Plain(url); err == nil {
		url = plain
	}
	if !c.seeds.given.Add(url) {
		return
	}
	c.Leading.Add(url)
	c.widen(url)
	if known := c.discover(url, stage.Item{}); known != "" {
		c.seeds.given.Add(known)
		c.askAgain(known)
	} else {
		c.seeds.given.Remove(url) // another list may let it pass
	}
}

// widen adds a URL to those that define the scope.
func (c *crawler) widen(seed string) {
	c.Filter.Scope.Add(seed)
	c.recent.forget()
}

// reload reloads the lists. If they let more URLs pass, the crawl starts over.
func (c *crawler) reload() {
	err := c.Reload(c.discoverSeed)
	c.recent.forget()
	c.Polite.Reloaded()
	if err != nil {
		c.stop(err)
	}
}

// work visits what the scheduler hands out until the crawl ends. Visits are taken by goroutines whose
// last one has ended, as the stack of a new one would have to grow first.
func (c *crawler) work(ctx, fetching context.Context, visits *sync.WaitGroup) {
	idle := make(chan *scheduler.Lease[stage.Item])
	defer close(idle)
	for {
		c.Places.Enter()
		lease, err := c.Polite.Queue.Next(ctx)
		if err != nil {
			return
		}
		select {
		case idle <- lease:
		default:
			visits.Go(func() {
				for more := true; more; lease, more = <-idle {
					c.perform(ctx, fetching, lease)
				}
			})
		}
	}
}

// perform visits the page of a lease, and gives the lease and its place back.
func (c *crawler) perform(ctx, fetching context.Context, lease *scheduler.Lease[stage.Item]) {
	defer c.Places.Leave()
	outcome := skipped
	if c.Uplink.Wait(ctx) {
		outcome = c.visit(fetching, lease)
	}
	c.advance() // before the lease ends, or the crawl could look finished
	lease.Done(outcome)
	if outcome.RetryAfter.After(time.Now()) {
		stage.Wake(c.asked)
	}
}

// saveLoop saves until ctx ends: servers' requests immediately, the rest periodically.
func (c *crawler) saveLoop(ctx context.Context) {
	politeness, caches := time.Tick(time.Second), time.Tick(time.Minute)
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-c.asked:
			err = c.savePoliteness()
		case <-politeness:
			err = c.savePolitenessIfUsed()
		case <-caches:
			err = errors.Join(c.saveCaches(false), c.saveOrder(false))
		}
		if err != nil {
			c.stop(err)
			return
		}
	}
}
