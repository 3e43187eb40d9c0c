package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/revisit"
)

// slotUnit is the time within which the order of pages does not matter.
const slotUnit = time.Minute

// unitFor returns the unit of the slots: a tenth of a second goes by before one ends.
func unitFor(pace float64) time.Duration {
	unit := time.Duration(pace * float64(time.Second/10))
	return max(slotUnit, unit.Truncate(time.Second))
}

// openPages opens the pages of a crawl, and the clock that they go by.
func openPages(cfg config) (*stage.Pages, stage.Clock, error) {
	clock, err := stage.OpenClock(filepath.Join(cfg.out, beganName), cfg.pace)
	if err != nil {
		return nil, clock, err
	}
	pages, err := stage.OpenPages(cfg.out, pagesOptions(cfg, clock))
	return pages, clock, err
}

func pagesOptions(cfg config, clock stage.Clock) stage.PagesOptions {
	return stage.PagesOptions{
		Memory: cfg.memory / 4,
		Unit:   unitFor(clock.Pace),
		Start:  clock.Now(),
	}
}

// openPages takes up the pages of an earlier run. If the filters let more pass than they did then,
// or if the clock was wrong, the pages are first rewritten.
func (c *crawler) openPages() (err error) {
	if c.pages, c.clock, err = openPages(c.cfg); err != nil {
		return err
	}
	c.hosts = stage.NewHostBook(c.clock.Shown(c.cfg.delay), unitFor(c.clock.Pace), c.cfg.hostPages, c.cfg.queue)
	stats, _ := c.pages.Stats()
	now, filters := c.clock.Now(), c.cfg.filters()
	before, known, err := readFilters(c.file(filtersName))
	if err != nil {
		c.warn("%v; all links are looked at again", err)
	}
	wider := stats.Records > 0 && (!known || filters.wider(before))
	ahead := c.pages.Ahead(now)
	if wider || ahead {
		if err := c.rewritePages(now, wider, ahead); err != nil {
			return err
		}
	}
	if err := filters.write(c.file(filtersName)); err != nil {
		return err
	}
	return c.recall()
}

// rewritePages brings pages back that are due too late.
func (c *crawler) rewritePages(now time.Time, wider, ahead bool) (err error) {
	if wider {
		c.warn("the filters let more pass than before: the links of all pages are looked at again")
	}
	if ahead {
		c.warn("the clock was ahead when this crawl last ran: pages visited then are due again")
		for _, name := range []string{hostsName, rhythmName} { // they know too much of that time
			if err := os.Remove(c.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	if err := c.pages.Close(); err != nil {
		return err
	}
	c.pages = nil
	change := func(s stage.State) (stage.State, bool) {
		if ahead {
			s = broughtBack(s, now)
		}
		switch {
		case !wider:
			return s, false
		case s.LeftOut:
			return stage.State{}, true
		case s.History.Last().IsZero():
			return s, false
		}
		s.Relink = true
		return s, true
	}
	if err := stage.RewritePages(c.cfg.out, pagesOptions(c.cfg, c.clock), change); err != nil {
		return err
	}
	c.pages, err = stage.OpenPages(c.cfg.out, pagesOptions(c.cfg, c.clock))
	return err
}

// broughtBack makes a page due that was visited in the future. The history of such visits is wrong
// in every interval, so that the page begins a new one.
func broughtBack(s stage.State, now time.Time) stage.State {
	const soon = 24 * time.Hour
	if s.History.Last().After(now) {
		s.History, s.Booked, s.Due = revisit.History{}, 0, now.Unix()
	}
	if s.Failures > 0 {
		s.Due = min(s.Due, now.Add(soon).Unix())
	}
	return s
}

// errOtherSeeds is wrapped by the error for a directory that holds another crawl.
var errOtherSeeds = errors.New("the directory holds a crawl of other seeds")

// recall learns from the pages what else was known, by one walk through them.
func (c *crawler) recall() error {
	c.pages.Found = func(url string) { c.hosts.Sighted(weburl.Host(url)) }
	given := map[string]bool{}
	for _, seed := range c.cfg.seeds {
		given[seed] = true
	}
	seeded, same, example := 0, false, ""
	for page, err := range c.pages.All() {
		if err != nil {
			return err
		}
		s := page.State
		if page.Item.Seeded() {
			c.filter.Scope.Add(page.Item.URL)
			seeded++
			same, example = same || given[page.Item.URL], page.Item.URL
		}
		c.hosts.Sighted(weburl.Host(page.Item.URL))
		if s == (stage.State{}) || s.LeftOut {
			continue
		}
		putOff := int64(0)
		if !s.Visited() {
			putOff = s.Due
		}
		c.hosts.Recall(weburl.Host(page.Item.URL), seconds(s.Booked), putOff)
		if s.Failures > 0 {
			c.retries.Expect(s.Due)
		}
	}
	if seeded > 0 && len(given) > 0 && !same {
		return fmt.Errorf("%s: %w, such as %s: name another directory with -out, or one of those seeds "+
			"too, which goes on with both crawls, or -fresh, which forgets its pages (not its archive)",
			c.cfg.out, errOtherSeeds, example)
	}
	return nil
}

// openOrder takes over the scores that an earlier crawl saved. Those of the minutes before a crash
// are not among them, nor would a crawl be wrong without any.
func (c *crawler) openOrder() error {
	if !c.cfg.byRank {
		return nil
	}
	c.order = stage.NewOrder()
	f, err := os.Open(c.file(orderName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	order, err := stage.ReadOrder(f)
	if err != nil {
		c.warn("%s is damaged, so ranks begin anew: %v", f.Name(), err)
		return nil
	}
	c.order = order
	return nil
}

// saveOrder saves the scores, if there are any.
func (c *crawler) saveOrder() error {
	if c.order == nil {
		return nil
	}
	return stage.ReplaceWith(c.file(orderName), func(w io.Writer) error {
		_, err := c.order.WriteTo(w)
		return err
	})
}

// warn tells of something that costs time and nothing else.
func (c *crawler) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.warnings = append(c.warnings, text)
}
