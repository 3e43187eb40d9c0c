package main

import (
	"cmp"
	"time"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/revisit"
)

// policyOf returns the policy for a page. Where pages are ranked, one that matters more costs less.
func (c *crawler) policyOf(url string) revisit.Policy {
	bayes, weighs := c.Cfg.Policy.(revisit.Bayes)
	if !weighs || c.Order == nil {
		return c.Cfg.Policy
	}
	bayes.Price = priceOf(bayes) / c.Order.Weight(url)
	return bayes
}

func priceOf(b revisit.Bayes) float64 { return cmp.Or(b.Price, revisit.DefaultPrice) }

// observe puts a visit into the history of its page, and into what is known of its host.
func (c *crawler) observe(it stage.Item, resp *fetch.Response, modified time.Time, changed bool) {
	state := &it.Visit.State
	at := c.Clock.At(resp.Start)
	if it.Visit.Early() && it.Hinted(state.History, at) {
		modified = time.Unix(it.LastMod, 0) // or the page would look busier than it is
	}
	state.History = c.rhythms.Observe(weburl.Host(it.URL), it, state.History,
		revisit.Visit{At: at, Changed: changed, LastModified: modified})
}

// quiet reports for how long to leave a page alone that is due, because its host has been quiet.
func (c *crawler) quiet(it stage.Item) time.Duration {
	state := &it.Visit.State
	bayes, weighs := c.policyOf(it.URL).(revisit.Bayes)
	if !weighs || !state.Visited() || state.Failures > 0 || state.Relink || it.Sitemap != nil {
		return 0
	}
	pause := c.rhythms.Quiet(weburl.Host(it.URL), it, bayes, state.History, c.Clock.Now())
	if pause > 0 {
		pause = max(pause, 2*cockpit.UnitFor(c.Clock.Pace))
	}
	return pause
}

// mostSiblings is how many links of a changed page are looked up when its host publishes.
const mostSiblings = 20

// publishing reports whether a host's pages change at twice their usual rate.
func (c *crawler) publishing(host string) bool {
	const lately = 48 * time.Hour
	rhythm, now := c.rhythms.Of(host), c.Clock.Now()
	return rhythm.Pulse.Elapsed(now.Add(-lately), now) >= 2*lately
}

// soon is when a page is due that is not worth a visit before its time: its slot may have begun.
func (c *crawler) soon() time.Time { return c.Clock.Now().Add(2 * cockpit.UnitFor(c.Clock.Pace)) }

// reconsider visits a page before it is due, if it is known and now worth a visit: because a
// sitemap says that it was modified, or, with the zero time, because its host publishes. A hint
// that is not worth a visit yet is noted. It is dropped where there is no room: the page comes due
// all the same.
func (c *crawler) reconsider(url string, modified time.Time) {
	now := c.Clock.Now()
	it, found, err := c.Pages.Early(url, c.soon())
	if err != nil {
		c.stop(err)
		return
	}
	last := time.Time{}
	if found {
		last = it.Visit.State.History.Last()
	}
	news := modified.After(last) && !modified.After(now)
	if !found || !modified.IsZero() && !news {
		return
	}
	noted := it.Hinted(it.Visit.State.History, now)
	if news {
		it = it.Hint(modified)
	}
	visit := c.worthwhile(it, now)
	if !visit && (noted || !news) || !c.early.Begin(url) {
		return
	}
	select {
	case c.Room <- struct{}{}:
	default:
		c.early.End(url)
		return
	}
	if !visit {
		c.early.End(url)
		c.giveBack(it)
		return
	}
	c.Hosts.Hold(weburl.Host(url), it.Visit.Addr)
	c.Tally.Open()
	c.route(it)
}

// worthwhile weighs a visit before its time against its price. Policies without a price visit
// whatever is hinted at.
func (c *crawler) worthwhile(it stage.Item, now time.Time) bool {
	h := it.Visit.State.History
	if time.Unix(it.Visit.State.Fresh, 0).After(now) && !it.Hinted(h, now) {
		return false
	}
	bayes, weighs := c.policyOf(it.URL).(revisit.Bayes)
	if !weighs {
		return it.Hinted(h, now)
	}
	if now.Sub(h.Last()) < cmp.Or(bayes.Min, revisit.DefaultMin) {
		return false
	}
	return c.rhythms.Worth(weburl.Host(it.URL), it, bayes, h, now) >= priceOf(bayes)
}
