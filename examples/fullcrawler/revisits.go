package main

import (
	"cmp"
	"net/http"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/revisit"
)

// revisits decide when pages are visited again: by their own changes, by those of their hosts, and by
// their importance. Its fields must be set first. Its methods are safe for concurrent use.
type revisits struct {
	Policy  revisit.Policy
	Clock   stage.Clock
	Unit    time.Duration // of the slots of pages
	Order   *stage.Order  // nil if all pages matter equally
	Rhythms *stage.Rhythms
	Hosts   *stage.HostTable
	Retries *stage.Retries
}

// PolicyOf returns the policy for a page. If pages are ranked, visits to important ones cost less.
func (r *revisits) PolicyOf(url string) revisit.Policy {
	bayes, weighs := r.Policy.(revisit.Bayes)
	if !weighs || r.Order == nil {
		return r.Policy
	}
	bayes.Price = stage.PriceOf(bayes) / r.Order.Weight(url)
	return bayes
}

// Observe adds a visit to the history of its page, and to the rhythm of its host.
func (r *revisits) Observe(it stage.Item, resp *fetch.Response, changed bool) {
	modified, _ := http.ParseTime(resp.Header.Get("Last-Modified")) // the zero time if invalid
	state := &it.Visit.State
	at := r.Clock.At(resp.Start)
	if it.Visit.Early() && it.Hinted(state.History, at) {
		modified = time.Unix(it.LastMod, 0) // the page would seem too busy
	}
	state.History = r.Rhythms.Observe(weburl.Host(it.URL), it, state.History,
		revisit.Visit{At: at, Changed: changed, LastModified: modified})
	state.Fresh = 0
	if fresh := min(resp.Fresh, stage.Longest); fresh > 0 {
		state.Fresh = r.Clock.Now().Add(fresh).Unix()
	}
}

// Next returns when the page is due again, given its fate.
func (r *revisits) Next(it stage.Item, fate stage.Fate) time.Time {
	s, now, host := &it.Visit.State, r.Clock.Now(), weburl.Host(it.URL)
	before, interval, wait := stage.Seconds(s.Interval), time.Duration(0), time.Duration(0)
	switch after := fate.Retry(); {
	case after == 0:
		interval = r.PolicyOf(it.URL).Next(s.History).Truncate(time.Second)
		s.Interval = int64(interval / time.Second)
		stretched := float64(interval) * r.Hosts.UpdateLoad(host, before, interval)
		wait = time.Duration(min(stretched, float64(stage.Longest))) // more may overflow a Duration
	default:
		wait = after << min(s.Failures, 6)
		if it.Visit.RetryAfter > 0 {
			wait = r.Clock.Shown(it.Visit.RetryAfter)
		}
		s.Failures++
		s.Interval = 0
		r.Hosts.UpdateLoad(host, before, 0)
	}
	next := now.Add(min(max(wait, time.Second), stage.Longest))
	if fresh := time.Unix(s.Fresh, 0); fate.Retry() == 0 && fresh.After(next) {
		next = fresh // by the page's Cache-Control
	}
	if due := time.Unix(s.Due, 0); it.Visit.Early() && due.After(next) {
		next = due // the store does not hand it out before
	}
	s.Due, s.LeftOut = next.Unix(), fate == stage.Unwanted || fate == stage.HostFull
	if s.Retries() {
		r.Retries.Expect(s.Due)
	}
	if fate.Retry() == 0 {
		r.Retries.Progress(time.Now())
	}
	return next
}

// Quiet returns for how long to postpone a due page, because its host has been quiet.
func (r *revisits) Quiet(it stage.Item) time.Duration {
	state := &it.Visit.State
	bayes, weighs := r.PolicyOf(it.URL).(revisit.Bayes)
	if !weighs || !state.Visited() || state.Failures > 0 || state.Relink || it.Sitemap != nil {
		return 0
	}
	pause := r.Rhythms.Quiet(weburl.Host(it.URL), it, bayes, state.History, r.Clock.Now())
	if pause > 0 {
		pause = max(pause, 2*r.Unit)
	}
	return pause
}

// Publishing reports whether a host's pages change at twice their usual rate.
func (r *revisits) Publishing(host string) bool {
	const lately = 48 * time.Hour
	rhythm, now := r.Rhythms.Of(host), r.Clock.Now()
	return rhythm.Pulse.Elapsed(now.Add(-lately), now) >= 2*lately
}

// Soon is when a page is due that is not worth an early visit: its slot may have begun.
func (r *revisits) Soon() time.Time { return r.Clock.Now().Add(2 * r.Unit) }

// Hint applies the report of a sitemap on when a known page was modified, or, with the zero time,
// that its host publishes. It returns the updated page. visit means that an early visit is worth
// it, and note that the hint is worth recording.
func (r *revisits) Hint(it stage.Item, modified time.Time) (hinted stage.Item, visit, note bool) {
	now := r.Clock.Now()
	if it.Visit.State.Failures > 0 { // it is retried in its time
		return it, false, false
	}
	history := it.Visit.State.History
	news := modified.After(history.Last()) && !modified.After(now)
	if !modified.IsZero() && !news {
		return it, false, false
	}
	noted := it.Hinted(history, now)
	if news {
		it = it.Hint(modified)
	}
	return it, r.worthwhile(it, now), news && !noted
}

// worthwhile weighs an early visit against its price. Policies without a price always visit.
func (r *revisits) worthwhile(it stage.Item, now time.Time) bool {
	h := it.Visit.State.History
	if time.Unix(it.Visit.State.Fresh, 0).After(now) && !it.Hinted(h, now) {
		return false
	}
	bayes, weighs := r.PolicyOf(it.URL).(revisit.Bayes)
	if !weighs {
		return it.Hinted(h, now)
	}
	if now.Sub(h.Last()) < cmp.Or(bayes.Min, revisit.DefaultMin) {
		return false
	}
	return r.Rhythms.Worth(weburl.Host(it.URL), it, bayes, h, now) >= stage.PriceOf(bayes)
}
