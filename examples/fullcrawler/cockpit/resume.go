package cockpit

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// Rewrite rewrites the pages of earlier runs if the filters are wider than they were then, or if the
// clock was wrong. It reports whether it did; the pages are closed then.
func (c *Crawl) Rewrite() (rewritten bool, err error) {
	if c.rewritten {
		return false, nil
	}
	filters := c.Cfg.Filters()
	before, known, err := ReadFilters(c.file(FiltersName))
	if err != nil {
		c.Warn("%v; all links are checked again", err)
	}
	if c.Pages.Stats().Records == 0 && !c.Pages.Ahead(c.Clock.Now()) {
		return false, nil
	}
	c.rewritten, err = c.makeDue(filters, before, known)
	return c.rewritten, err
}

// Recall restores what can be derived from the pages.
func (c *Crawl) Recall() error {
	c.Hosts = c.newHosts()
	if _, err := c.recall(); err != nil {
		return err
	}
	return c.Cfg.Filters().Write(c.file(FiltersName)) // last: a refused command leaves no trace
}

// makeDue makes pages due earlier that are due too late, and reports whether there are any.
func (c *Crawl) makeDue(filters, before Filters, known bool) (rewritten bool, err error) {
	now := c.Clock.Now()
	var changes []func(stage.Item, *stage.State) stage.Rewrite
	if c.Pages.Ahead(now) {
		c.Warn("the clock was ahead when this crawl last ran, or is behind now: pages visited after %s are due again", moment(c.Clock.Real(now)))
		changes = append(changes, func(_ stage.Item, s *stage.State) stage.Rewrite { return broughtBack(s, now) })
	}
	switch {
	case c.Pages.Stats().Records == 0:
	case !known || filters.widerBesideLists(before):
		c.Warn("the filters are wider than before: the links of all pages are checked again")
		changes = append(changes, func(_ stage.Item, s *stage.State) stage.Rewrite { return relinked(s, true, true) })
	case filters.Wider(before):
		list := new(urlfilter.List)
		lines := filters.lifted(before)
		if err := list.Reload(strings.NewReader(strings.Join(lines, "\n")), FiltersName); err != nil {
			return false, err
		}
		const most = 20
		named := strings.Join(lines[:min(len(lines), most)], ", ")
		if more := len(lines) - most; more > 0 {
			named += fmt.Sprintf(" and %d more", more)
		}
		c.Warn("no longer denied: %s; the links of the pages that this concerns are checked again", named)
		bits := filters.barred(before)
		changes = append(changes, func(it stage.Item, s *stage.State) stage.Rewrite {
			return relinked(s, s.LeftOut && !list.Match(it.URL).Allowed, s.Barred&bits != 0)
		})
	}
	if len(changes) == 0 {
		return false, nil
	}
	change := func(it stage.Item, s *stage.State) (what stage.Rewrite) {
		for _, change := range changes {
			what = max(what, change(it, s))
		}
		return what
	}
	affected, err := c.affected(change)
	if err != nil || !affected && !c.Pages.Ahead(now) {
		return false, err
	}
	return true, c.rewritePages(change)
}

// relinked makes a page due if it was left out and may no longer be, or if its links are to be checked.
func relinked(s *stage.State, mayPass, mayLink bool) stage.Rewrite {
	switch {
	case s.LeftOut && mayPass: // its history is as true as before
		s.LeftOut, s.Failures, s.Due = false, 0, 0
		s.Relink = !s.History.Last().IsZero()
		return stage.DueNow
	case s.LeftOut, s.History.Last().IsZero(), !mayLink:
		return stage.KeepDue
	}
	s.Relink = true
	return stage.DueNow
}

func (c *Crawl) newHosts() *stage.HostTable {
	horizon := stage.Horizon
	if c.Cfg.ByRank {
		horizon = max(horizon, stage.RankedRoom*c.Cfg.Delay)
	}
	hosts := stage.NewHostTable(
		c.Clock.Shown(c.Cfg.Delay), c.Clock.Shown(horizon), c.Cfg.HostPages, c.Cfg.Queue)
	hosts.Wait, hosts.Overrides = c.Clock.Shown(c.Cfg.Wait), c.Cfg.Overrides
	return hosts
}

// affected reports whether a rewrite changes any page. It also refuses other seeds, which recall would
// do too late.
func (c *Crawl) affected(change func(stage.Item, *stage.State) stage.Rewrite) (affected bool, err error) {
	seeds := c.newSeedCheck()
	for page, err := range c.Pages.All() {
		if err != nil {
			return false, err
		}
		seeds.see(page.Item)
		affected = affected || change(page.Item, &page.State) != stage.KeepDue
	}
	return affected, seeds.verdict(c.Cfg.Out)
}

func (c *Crawl) rewritePages(change func(stage.Item, *stage.State) stage.Rewrite) error {
	if err := c.Pages.Close(); err != nil {
		return err
	}
	c.Pages = nil
	return stage.RewritePages(c.Cfg.Out, PagesOptions(c.Cfg, c.Clock), change)
}

// broughtBack makes a page due that was visited in the future, or has waited for its turn there. Its history stays:
// it is the clock of now that may be wrong, and the next visit corrects the interval.
func broughtBack(s *stage.State, now time.Time) stage.Rewrite {
	const soon = 24 * time.Hour
	if s.History.Last().After(now) || s.Waits() {
		s.Due = min(s.Due, now.Unix())
	}
	if s.Failures > 0 {
		s.Due = min(s.Due, now.Add(soon).Unix())
	}
	return stage.KeepDue
}

// ErrOtherSeeds is wrapped by the error for a directory that holds another crawl.
var ErrOtherSeeds = errors.New("the directory has a crawl of other seeds")

// A stock is what is known about pages when a crawl resumes.
type stock struct{ pages, fresh, due int }

// recall restores what can be derived from the pages, in one pass over them.
func (c *Crawl) recall() (s stock, err error) {
	if c.Filter.MaxDepth >= 0 {
		c.Depths = stage.NewDepths(c.Filter.MaxDepth)
	}
	c.Pages.Found = func(it stage.Item) {
		c.Hosts.Found(it, !c.Robots.Forbids(it.URL, time.Now()))
	}
	c.Pages.Turn = c.Hosts.Turn
	c.Hosts.Advance(c.Clock.Now(), c.Pages.Now())
	seeds := c.newSeedCheck()
	var scope span
	for page, err := range c.Pages.All() {
		if err != nil {
			return s, err
		}
		s.count(page.State, c.Clock.Now())
		if seeds.see(page.Item) {
			scope.see(page)
		}
		c.Depths.Found(page.Item)
		state := page.State
		fetched := !state.History.Last().IsZero()
		c.Hosts.Discovered(page.Item, fetched || state.Failures == 0 || state.LeftOut)
		host, retryAt := weburl.Host(page.Item.URL), int64(0)
		c.Hosts.Await(host, state)
		if state.Waits() {
			retryAt = state.Due
			c.Barred.CompareAndSwap(false, c.Filter.Bars(page.Item.URL) != "")
		}
		if state == (stage.State{}) || state.LeftOut {
			continue
		}
		c.Hosts.Recall(host, fetched, stage.Seconds(state.Interval), retryAt)
		if state.Retries() {
			c.Retries.Expect(state.Due)
		}
	}
	for _, url := range scope.urls() {
		c.Filter.Scope.Add(url)
		c.Leading.Add(url)
	}
	return s, seeds.verdict(c.Cfg.Out)
}

// A span has the seeds, and the pages that seeds have redirected to.
type span struct {
	seeds   []string
	targets map[uint64]spanned // by the hash of a redirect to them
	answers []uint64           // hashes of the seeds' answers
}

// A spanned page is the target of a redirect.
type spanned struct {
	url    string
	answer uint64
}

func (s *span) see(page stage.Known) {
	if page.Item.Hops == 0 {
		s.seeds, s.answers = append(s.seeds, page.Item.URL), append(s.answers, page.State.Hash)
		return
	}
	if s.targets == nil {
		s.targets = map[uint64]spanned{}
	}
	s.targets[stage.HashOfRedirect(page.Item.URL)] = spanned{page.Item.URL, page.State.Hash}
}

// urls returns those that span the scope. A page to which no seed leads any more does not.
func (s *span) urls() []string {
	for n := 0; n < len(s.answers); n++ {
		if to, led := s.targets[s.answers[n]]; led {
			delete(s.targets, s.answers[n])
			s.seeds, s.answers = append(s.seeds, to.url), append(s.answers, to.answer)
		}
	}
	return s.seeds
}

// A seedCheck compares the seeds of a directory with those of a command.
type seedCheck struct {
	given   map[string]bool
	same    bool   // the directory has one of them
	example string // a seed of the directory, "" if it has none: where one leads may be all that is left of it
}

func (c *Crawl) newSeedCheck() *seedCheck {
	s := &seedCheck{given: map[string]bool{}}
	for _, seed := range c.Cfg.Seeds {
		if plain, err := stage.Plain(seed); err == nil {
			seed = plain
		}
		s.given[seed] = true
		s.same = s.same || !c.Filter.Erased.Match(seed).Allowed // it was here
	}
	return s
}

// see reports whether a known page is a seed.
func (s *seedCheck) see(it stage.Item) bool {
	if !it.Seeded() {
		return false
	}
	s.same = s.same || s.given[it.URL]
	if it.Hops == 0 {
		s.example = it.URL
	}
	return true
}

func (s *seedCheck) verdict(dir string) error {
	if s.example == "" || len(s.given) == 0 || s.same {
		return nil
	}
	return fmt.Errorf("%s: %w, such as %s: use another directory with -out, add one of those seeds "+
		"to continue both crawls, or forget its pages (not its archive) with -fresh",
		dir, ErrOtherSeeds, s.example)
}

func (s *stock) count(page stage.State, now time.Time) {
	s.pages++
	if !page.Visited() {
		s.fresh++
	}
	if page.Due <= now.Unix() {
		s.due++
	}
}

// DryRun reports what a crawl would start with. It fetches nothing.
func DryRun(cfg Config, out io.Writer) error {
	if err := errors.Join(tryListen(cfg.Listen), tryLog(cfg.LogFile)); err != nil {
		return err
	}
	resumes := HasCrawl(cfg.Out) && !cfg.Fresh
	if resumes { // what opens the pages finishes a rewrite of them, which another process may be at
		d, err := cfg.Claim()
		if err != nil {
			return err
		}
		defer d.Close()
	}
	c, s := &Crawl{}, stock{}
	c.Cfg, c.Filter = cfg, cfg.Filter
	c.Filter.Scope = &urlfilter.Scope{Reach: cfg.Reach}
	c.Hosts = c.newHosts()
	if resumes {
		var err error
		if c.Pages, c.Clock, err = openPages(cfg); err != nil {
			return err
		}
		s, err = c.recall()
		if err := errors.Join(err, c.Pages.Close()); err != nil {
			return err
		}
	}
	for _, seed := range cfg.Seeds {
		if c.Hosts.Known(weburl.Host(seed)) == 0 {
			c.Hosts.Discovered(stage.Item{URL: seed}, true)
		}
	}
	delay := max(cfg.Delay, time.Millisecond)
	fmt.Fprintf(out, "%s, %s known, %d never visited, %d due now\n",
		counted(c.Hosts.Count(), "host"), counted(s.pages, "page"), s.fresh, s.due)
	fmt.Fprintf(out, "%s between two requests to a host, or its Crawl-delay: at most %.0f a day per host\n",
		spell(cfg.Delay), float64(24*time.Hour)/float64(delay))
	most := c.Hosts.Largest()
	fmt.Fprintf(out, "the largest host has %d pages; to fetch each once takes %s\n", most,
		spell((time.Duration(most) * cfg.Delay).Round(time.Second)))
	return nil
}
