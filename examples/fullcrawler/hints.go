package main

import (
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/revisit"
)

// hints knows the pages that are being visited because somebody said that they have changed. The
// zero hints is empty. Its methods are safe for concurrent use.
type hints struct {
	mu    sync.Mutex
	under map[string]struct{}
}

// begin reports whether the page is not under way yet, and notes that it is.
func (h *hints) begin(url string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, under := h.under[url]; under {
		return false
	}
	if h.under == nil {
		h.under = map[string]struct{}{}
	}
	h.under[url] = struct{}{}
	return true
}

func (h *hints) end(url string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.under, url)
}

// soon is when a page is due that is not worth a visit before its time: its slot may have begun.
func (c *crawler) soon() time.Time { return c.clock.now().Add(2 * unitFor(c.clock.pace)) }

// hint takes notice that a page is said to have changed. If it is known and not due soon, and the
// word of its host counts for enough, it is visited before its time. A hint is dropped where there
// is no room: the page comes due all the same.
func (c *crawler) hint(url string, modified time.Time) {
	now := c.clock.now()
	it, found, err := c.pages.Early(url, c.soon())
	if err != nil {
		c.stop(err)
		return
	}
	if !found || !modified.After(it.Visit.State.History.Last()) || !c.worthwhile(it, now) ||
		!c.hints.begin(url) {
		return
	}
	select {
	case c.room <- struct{}{}:
		c.hosts.hold(weburl.Host(url), it.Visit.Addr)
		c.tally.open()
		c.route(it)
	default:
		c.hints.end(url)
	}
}

// worthwhile weighs a hint against the price of a visit by how often its host was right.
func (c *crawler) worthwhile(it stage.Item, now time.Time) bool {
	policy, weighs := c.policy.(revisit.Bayes)
	if !weighs {
		return true
	}
	price := policy.Price
	if price == 0 {
		price = revisit.DefaultPrice
	}
	// Between a visit that nobody asked for and one that is certain to find a change.
	h, trust := it.Visit.State.History, c.hosts.trust(weburl.Host(it.URL))
	worth, certain := policy.Worth(h, now.Sub(h.Last())), policy.Worth(h, 100*365*24*time.Hour)
	return worth+trust*(certain-worth) >= price
}
