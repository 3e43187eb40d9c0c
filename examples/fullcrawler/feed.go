package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/satstore"
)

// feed takes due pages out of the store while there is room, until nothing is left or ctx ends. In
// a crawl without end there is always something left.
func (c *crawler) feed(ctx context.Context) {
	for ctx.Err() == nil {
		taken, err := c.takeDue(ctx)
		if err == nil && taken == 0 {
			var left bool
			if left, err = c.await(ctx); err == nil && !left {
				return
			}
		}
		if err != nil {
			if ctx.Err() == nil {
				c.stop(err)
			}
			return
		}
	}
}

// takeDue takes the pages that are due now.
func (c *crawler) takeDue(ctx context.Context) (taken int, err error) {
	for it, err := range c.Pages.Due(ctx, c.Clock.Now()) {
		if err != nil {
			return taken, err
		}
		taken++
		select {
		case c.Room <- struct{}{}:
			c.Hosts.Advance(c.Clock.Now(), c.Pages.Now())
			c.take(it)
		case <-ctx.Done():
			return taken, ctx.Err()
		}
	}
	return taken, nil
}

// await waits until a page may be due. It returns false if none will be.
func (c *crawler) await(ctx context.Context) (left bool, err error) {
	if !c.Clock.Now().Before(c.Pages.NextSlot()) {
		return true, nil
	}
	if len(c.Room) == 0 {
		found, err := c.commit()
		if found || err != nil {
			return true, err
		}
		left, err := c.left()
		if !left || err != nil {
			return false, err
		}
	}
	slot := time.NewTimer(max(c.Clock.Until(c.Pages.NextSlot()), time.Millisecond))
	defer slot.Stop()
	select {
	case <-c.committed:
	case <-slot.C:
	case <-ctx.Done():
	}
	return true, nil
}

// left reports whether a page will be fetched if the crawl goes on.
func (c *crawler) left() (bool, error) {
	if c.Cfg.Forever || c.Pages.Discovered() > 0 || c.retrySoon() {
		return true, nil
	}
	if waits := c.Hosts.Awaits(c.Clock.Now()); !waits || !c.Barred.Load() {
		return waits, nil
	}
	waits := func(page stage.Known) bool { return page.State.Waits() && c.Filter.Bars(page.Item.URL) == "" }
	if page, err := c.Pages.Find(c.longest); err == nil && waits(page) {
		return true, nil
	}
	// The counts include pages that the lists bar. A pass over all pages is long, so the page that
	// waits longest makes the next one unnecessary for as long as possible.
	latest := int64(-1)
	for page, err := range c.Pages.All() {
		if err != nil {
			return true, err
		}
		if waits(page) && page.State.Due > latest {
			c.longest, latest = page.Item.URL, page.State.Due
		}
	}
	return latest >= 0, nil
}

// take starts processing a due page.
func (c *crawler) take(it stage.Item) {
	host, state := weburl.Host(it.URL), &it.Visit.State
	c.Hosts.Arrived(host, *state)
	due := state.Due
	state.Postponed = false
	it = c.asNear(it)
	if state.Relink && !c.relink(it) {
		state.Due = 0
	}
	if c.Pages.IsEarly(it.URL) { // when it is due will be known when that visit is recorded
		state.Due = c.revisits.Soon().Unix()
		c.giveBack(it)
		return
	}
	if time.Unix(state.Due, 0).After(c.revisits.Soon()) { // it was visited early
		c.giveBack(it)
		return
	}
	if state.Retries() {
		c.Retries.Begin(due)
	}
	if pause := c.revisits.Quiet(it); pause > 0 {
		state.Due = c.Clock.Now().Add(pause).Unix()
		c.giveBack(it)
		return
	}
	why := c.Filter.Check(it) // the lists may have changed since it was discovered
	if why == "" && it.Sitemap != nil && !c.Cfg.Sitemaps {
		why = stage.NoSitemaps // an earlier run has found it
	}
	// What may not be requested takes no turn from the pages that will be.
	if why != "" || c.Robots.Forbids(it.URL, time.Now()) {
		c.Hosts.Hold(host, it.Visit.Addr)
		c.Tally.Open()
		if why != "" {
			c.end(it, stage.Unwanted, string(why))
		} else {
			c.route(it)
		}
		return
	}
	admit := func(f stage.Finding) { c.admit(it, f) }
	if addr, known := c.Resolver.Cached(host); known {
		admit(stage.Finding{Addr: addr})
	} else if !c.Finder.Find(c.ending, host, false, admit) {
		c.postpone(it, c.Clock.Now().Add(c.Clock.Shown(stage.FindAgain)).Unix())
	}
}

// admit routes a page if its host and address have room. Otherwise it postpones or ends the page.
func (c *crawler) admit(it stage.Item, found stage.Finding) {
	host, state := weburl.Host(it.URL), it.Visit.State
	addr := found.Addr
	if found.Err != nil {
		addr = c.Hosts.LastAddr(host)
	}
	it.Visit.Addr = c.Polite.Shared.Counted(addr)
	first := it.Visit.Before.IsZero() || state.LeftOut
	a := c.Hosts.Take(host, it.Visit.Addr, first)
	if a.RetryAt > 0 {
		c.postpone(it, a.RetryAt)
		return
	}
	it.Visit.First = first && !a.Full
	c.Tally.Open()
	switch {
	case a.Full:
		c.end(it, stage.HostFull, "")
	case found.Err != nil:
		c.giveUp(c.ending, it, found.Err, netip.Addr{}, found.Began)
	case c.Order != nil && !state.Visited() && c.Order.Add(it):
		c.advance()
	default:
		c.route(it)
	}
}

// postpone returns a page to the store until the given Unix time, or as it was if it is visited early.
func (c *crawler) postpone(it stage.Item, until int64) {
	state := &it.Visit.State
	if it.Visit.Early() {
		until = state.Due // as the store has it
	} else {
		state.Due, state.Postponed = until, state.Visited()
		c.Hosts.Await(weburl.Host(it.URL), *state)
	}
	c.settle(it, stage.Interrupted)
	if state.Retries() {
		c.Retries.Expect(until)
	}
	c.giveBack(it)
}

// giveBack returns a page to the store. The next commit frees its room.
func (c *crawler) giveBack(it stage.Item) {
	c.Pages.GiveBack(it.Visit)
	stage.Wake(c.changed)
}

// end records the fate of an item, in the counts and in the ledger, and when to revisit it. After
// the crawl has failed, links may be lost and pages not stored, so each visit that ends then counts
// as interrupted.
func (c *crawler) end(it stage.Item, fate stage.Fate, why string) {
	if failure := c.broken.Load(); failure != nil && fate != stage.Interrupted {
		fate, why = stage.Interrupted, (*failure).Error()
	}
	c.Tally.End(it.URL, fate, why)
	c.seeds.note(it, fate)
	if fate.Failed() {
		c.Log.Warn("no page", "url", it.URL, "fate", string(fate), "why", why)
	}
	c.settle(it, fate)
	host := weburl.Host(it.URL)
	if c.Order != nil {
		c.Order.Done(it.URL)
	}
	c.Hosts.Leave(host, it.Visit.Addr)
	next := time.Time{}
	if fate != stage.Interrupted { // when the crawl resumes, such a page is due as before
		next = c.revisits.Next(it, fate)
	}
	if err := c.ledger.Write(it.URL, fate, why, it.Visit.Signals, next); err != nil {
		c.stop(err)
	}
	if next.IsZero() {
		c.Pages.Forgo(it.Visit)
		<-c.Room
		stage.Wake(c.changed)
		return
	}
	c.giveBack(it)
}

// settle decides whether a new page takes a place of its host's page limit: not if it was not
// fetched.
func (c *crawler) settle(it stage.Item, fate stage.Fate) {
	if it.Visit.First {
		it.Visit.First = false
		c.Hosts.Settle(weburl.Host(it.URL), fate.Retry() == 0 && fate != stage.Interrupted, fate.Requested() && !it.Strange)
	}
}

// commitEvery is the shortest time between two commits. After a crash, about as much work is
// repeated.
const commitEvery = 50 * time.Millisecond

// maxPause bounds the pause between two commits: pages that wait for a commit occupy room.
const maxPause = 2 * time.Second

// commit makes discoveries and visits durable, after the lines of the ledger, and frees the room of
// these visits. It reports whether there are new pages.
func (c *crawler) commit() (found bool, err error) {
	done, err := c.Pages.Commit(c.ledger.Flush)
	if err != nil {
		return false, fmt.Errorf("commit pages: %w", err)
	}
	c.Hosts.Committed()
	for range done.Visits {
		<-c.Room
	}
	if done != (stage.Recorded{}) {
		stage.Wake(c.committed)
	}
	return done.New > 0, nil
}

// commitLoop commits repeatedly until ctx ends.
func (c *crawler) commitLoop(ctx context.Context) {
	pause := time.Duration(commitEvery)
	for {
		select {
		case <-c.changed:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		start := time.Now()
		if _, err := c.commit(); err != nil {
			c.stop(err)
			return
		}
		// A commit takes longer as more is known. It may take only a part of the time.
		pause = min(max(commitEvery, 4*time.Since(start)), maxPause)
	}
}

// retrySoon reports whether a retry is worth waiting for: it is due before the crawl has made no
// progress for as long as -wait.
func (c *crawler) retrySoon() bool {
	now := c.Clock.Now()
	n, first, progress := c.Retries.Expected(now.Add(c.Clock.Shown(c.Cfg.Wait)))
	if n == 0 {
		return false
	}
	return !time.Now().Add(c.Clock.Until(first)).After(progress.Add(c.Cfg.Wait))
}

// asSeed makes a known page a seed if it was named as one. If it was visited before, as a page that is further
// away, its links are checked again.
func (c *crawler) asSeed(it stage.Item) stage.Item {
	if it.Depth == 0 || it.Sitemap != nil || !c.seeds.given.Has(it.URL) {
		return it
	}
	it.Depth, it.Hops, it.Strange = 0, 0, false
	it.Visit.Is(it)
	it.Visit.State.Relink = it.Visit.State.Relink || it.Visit.State.Visited()
	return it
}

// asNear gives a page the depth that it has by now. If it was visited as one that is further away, its links
// are checked again.
func (c *crawler) asNear(it stage.Item) stage.Item {
	it, nearer := c.Depths.Latest(it)
	it.Visit.State.Relink = it.Visit.State.Relink || nearer && it.Visit.State.Visited()
	return c.asSeed(it)
}

// early returns a page that was visited and is not due soon, for an early visit.
func (c *crawler) early(url string) (it stage.Item, found bool) {
	it, found, err := c.Pages.Early(url, c.revisits.Soon())
	if err != nil {
		c.stop(err)
	}
	return it, found && err == nil
}

// bringNearer checks the links of a page again that was visited when only other sites were known to link to
// it, from further away. A page that is due has its new depth then.
func (c *crawler) bringNearer(url string) {
	it, found := c.early(url)
	if !found {
		return
	}
	due := it.Visit.State.Relink
	c.recheck(c.asNear(it), due)
}

// recheck checks the links of a page again if it is nearer than it was. due says that it is handed out for that
// anyway, whenever its next visit would be.
func (c *crawler) recheck(it stage.Item, due bool) {
	switch {
	case due || !it.Visit.State.Relink:
		c.Pages.Forgo(it.Visit)
	case c.relink(it):
		c.record(it)
	default:
		c.visitEarly(it)
	}
}

// relink checks the links of a page again, in the archive. If it cannot, as when the last visit failed, Relink
// stays, and only a visit can tell.
func (c *crawler) relink(it stage.Item) (done bool) {
	c.archived.With(c.ending, it.URL, func(resp *fetch.Response) {
		if done = stage.FateOf(resp).Retry() == 0; done {
			c.links(it, resp)
		}
	})
	it.Visit.State.Relink = !done
	return done
}

// askAgain visits a known page that is named as a seed before it is due, if its last visits failed: whoever
// names it again may have mended what was wrong. If it was further away until now, what it links to is
// nearer, too.
func (c *crawler) askAgain(seed string) {
	it, found := c.early(seed)
	if !found { // it is new, or is due soon
		return
	}
	due := it.Visit.State.Relink
	if it = c.asSeed(it); it.Visit.State.Failures > 0 {
		c.visitEarly(it)
	} else {
		c.recheck(it, due)
	}
}

// record keeps what has become known of a page that is not due. Without room it does not.
func (c *crawler) record(it stage.Item) {
	if c.takeRoom(it) {
		c.giveBack(it)
	}
}

// takeRoom takes room for a page that is not due, or ends its early visit if there is none.
func (c *crawler) takeRoom(it stage.Item) bool {
	select {
	case c.Room <- struct{}{}:
		return true
	default:
		c.Pages.Forgo(it.Visit)
		return false
	}
}

// visitNow visits a page before it is due, as the operator asks. One that is not known becomes a seed.
func (c *crawler) visitNow(url string) (says string) {
	if why := c.Filter.Bars(url); why != "" { // it must not widen the scope either
		return "no: " + string(why)
	}
	if it, early := c.early(url); early {
		if c.visitEarly(it) {
			return "when its host has its next turn"
		}
		return "not now: no page more fits into the queue, or its server asks to wait for long"
	}
	if _, err := c.Pages.Find(url); !errors.Is(err, satstore.ErrUnknown) {
		return "as planned: it is due or on its way, or it may not be visited"
	}
	if c.Hosts.IsCrowded(url) {
		return "no: " + string(stage.CrowdedHost)
	}
	c.discoverSeed(url)
	if why := c.Filter.Check(stage.Item{URL: url}); why != "" {
		return "no: " + string(why)
	}
	return "as a new seed"
}

// visitEarly visits a page before it is due, if there is room and its server does not ask to wait for long.
func (c *crawler) visitEarly(it stage.Item) (ok bool) {
	if c.isAway(weburl.Host(it.URL)) {
		c.Pages.Forgo(it.Visit)
		return false
	}
	if !c.takeRoom(it) {
		return false
	}
	if it.Visit.State.Retries() {
		c.Retries.Begin(it.Visit.State.Due)
	}
	c.Hosts.Hold(weburl.Host(it.URL), it.Visit.Addr)
	c.Tally.Open()
	c.route(it)
	return true
}

// mostSiblings is how many links of a changed page are looked up when its host publishes.
const mostSiblings = 20

// reconsider visits a known page before it is due if that is worthwhile now: because a sitemap says
// that it was modified, or, with the zero time, because its host publishes. A hint that is not yet
// worth a visit, or for which its domain has no room, is recorded. If it cannot be, the page will be due anyway.
func (c *crawler) reconsider(url string, modified time.Time) {
	it, found := c.early(url)
	if !found {
		return
	}
	it, visit, note := c.revisits.Hint(it, modified)
	switch {
	case visit && c.Hosts.HasRoom(weburl.Host(url)):
		c.visitEarly(it)
	case note:
		c.record(it)
	default:
		c.Pages.Forgo(it.Visit)
	}
}
