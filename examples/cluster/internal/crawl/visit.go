package crawl

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/revisit"
	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/spinneret-go/spinneret/scheduler/schedulerhttp"
)

// errAbandoned means that a visit had no result, because this process no longer owns the partition.
var errAbandoned = errors.New("crawl: visit abandoned")

// A visited is the result of a task.
type visited struct {
	fate      stage.Fate
	outcome   scheduler.Outcome
	items     []sending        // that follow from it
	skipped   map[string]int64 // links that are not followed, and other counts
	requeue   bool             // do it later, in this process
	notBefore time.Time        // for requeue
	err       error
}

// skip counts a link that is not followed.
func (v *visited) skip(why stage.Reason) {
	if v.skipped == nil {
		v.skipped = map[string]int64{}
	}
	v.skipped[string(why)]++
}

// rechecked is a page that goes back to hosts, because it has waited until its robots.txt expired.
const rechecked stage.Fate = "checked again by robots.txt"

// visit performs the task of an item.
func (f *fetcher) visit(ctx context.Context, it message.Item) visited {
	settings := f.settings.Load()
	if v, done := f.unwanted(it, settings.filter); done {
		return v
	}
	if it.Kind != message.Rules && !it.Until.IsZero() && time.Now().After(it.Until) {
		it.Again, it.Addr = true, netip.Addr{} // and Until, which tells hosts that it comes back
		return visited{fate: rechecked, outcome: skipped, items: []sending{f.toHosts(it, it.URL)}}
	}
	start := time.Now()
	state := stateOf(it)
	resp, err := f.get(ctx, it.URL, it.Addr, state.Validators)
	// Without the ownership, the error does not tell why a request failed: the guard of the
	// connection refuses like a broken network. The next owner repeats the request.
	if ctx.Err() != nil || f.claim.Guard() != nil {
		if err == nil {
			f.client.Release(resp)
		}
		return visited{err: errAbandoned}
	}
	if err != nil {
		return f.failed(ctx, it, state, start, err)
	}
	defer f.client.Release(resp)
	o := outcome(start, resp)
	_, err = f.store.Append(stage.Capture(resp))
	switch {
	case errors.Is(err, archive.ErrInvalid): // a response that no record can hold
		return f.over(it, state, stage.Unstored, o)
	case err != nil:
		return visited{outcome: o, err: fmt.Errorf("crawl: store %s: %w", it.URL, err)}
	}
	// From here on a page may be fetched and stored twice, but its links are not lost: it is
	// finished only when they are committed, too.
	f.visits.Add(1)
	if it.Kind == message.Rules {
		return visited{fate: stage.Classify(resp, nil), outcome: o, items: f.answer(it, answerOf(resp))}
	}
	return f.follow(it, state, resp, o)
}

// skipped is the outcome of a lease without a request.
var skipped = scheduler.Outcome{Skipped: true}

// unwanted ends an item without a request if the operator does not want it.
func (f *fetcher) unwanted(it message.Item, wanted *stage.Filter) (v visited, done bool) {
	fate := stage.Unwanted
	switch denied := wanted.Bars(it.URL) != ""; {
	case it.Kind == message.Rules:
		answer := f.answer(it, message.Item{Status: statusDenied})
		return visited{fate: refused, outcome: skipped, items: answer}, denied
	case denied:
		fate = refused
	case wanted.Check(knownOf(it)) == urlfilter.Fine:
		return v, false
	}
	return f.over(it, stateOf(it), fate, skipped), true
}

// failed handles a request without a response.
func (f *fetcher) failed(
	ctx context.Context, it message.Item, state stage.State, start time.Time, err error,
) visited {
	f.opts.Log.Debug("request failed", "url", it.URL, "err", err)
	v := visited{fate: stage.Classify(nil, err), outcome: failure(start, err)}
	if f.uplink.Ours(ctx, err, it.Addr, start) {
		v.fate = stage.Interrupted
		if !v.outcome.Skipped { // nothing counts against the host, but the request may have been sent
			v.outcome = scheduler.Outcome{Start: time.Now(), Unknown: true}
		}
		if it.Kind == message.Rules {
			v.requeue, v.notBefore = true, time.Now().Add(ownFault)
			return v
		}
	}
	if it.Kind == message.Rules {
		v.items = f.answer(it, message.Item{})
		return v
	}
	return f.over(it, state, v.fate, v.outcome)
}

// over ends a page without links.
func (f *fetcher) over(
	it message.Item, state stage.State, fate stage.Fate, o scheduler.Outcome,
) visited {
	v := visited{fate: fate, outcome: o}
	f.report(&v, it, state)
	return v
}

// report tells the page's partition of dedupe the fate of a page that is to be visited again.
func (f *fetcher) report(v *visited, it message.Item, state stage.State) {
	due := f.next(v.fate, &state, time.Now(), v.outcome.RetryAfter)
	if due.IsZero() && mayPass[v.fate] {
		v.skip(urlfilter.Reason(gaveUp))
	}
	if r, ok := report(it, state, due); ok {
		v.items = append(v.items, f.toDedupe(r))
	}
}

// get makes one request as soon as the process may have one more in flight.
func (f *fetcher) get(
	ctx context.Context, url string, addr netip.Addr, v fetch.Validators,
) (*fetch.Response, error) {
	if f.slots != nil {
		select {
		case f.slots <- struct{}{}:
			defer func() { <-f.slots }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	resp, err := f.client.Do(ctx, fetch.Request{URL: url, Validators: v, Addr: addr})
	if err == nil {
		f.uplink.Answered()
	}
	return resp, err
}

// answer is the result of a request for a robots.txt, for the partition that waits for it.
func (f *fetcher) answer(it, answer message.Item) []sending {
	answer.Kind, answer.URL, answer.For, answer.Hops = message.Answer, it.URL, it.For, it.Hops
	return []sending{f.toHosts(answer, it.For)}
}

// answerOf converts a response for a robots.txt to an answer.
func answerOf(resp *fetch.Response) message.Item {
	file := stage.RobotsResponse(resp).File()
	if file == nil && resp.Status < 300 {
		return message.Item{} // half a file may lack the half that forbids
	}
	answer := message.Item{Status: uint32(resp.Status), Body: append([]byte(nil), file.String()...)}
	if resp.Location != "" {
		// An invalid URL counts as a redirect that was not followed.
		answer.Location, _ = weburl.Canonical(resp.Location)
	}
	return answer
}

// follow collects the links of a page and when it is due again.
func (f *fetcher) follow(
	it message.Item, state stage.State, resp *fetch.Response, o scheduler.Outcome,
) visited {
	v := visited{fate: stage.Classify(resp, nil), outcome: o}
	if v.fate.Page() || v.fate == stage.Unchanged || v.fate == stage.Redirected {
		modified, _ := http.ParseTime(resp.Header.Get("Last-Modified")) // zero if it is invalid
		visit := revisit.Visit{At: resp.FirstByte, LastModified: modified}
		visit.Changed = state.Compare(resp, false) == stage.RealChange
		state.History = state.History.Observe(visit)
	}
	hops, followed := stage.Item{URL: it.URL, Hops: int(it.Hops)}.NextHop(resp.Location)
	switch {
	case v.fate == stage.Redirected && !followed:
		v.fate = stage.TooManyRedirects
	case v.fate == stage.Redirected:
		f.link(&v, message.Item{Kind: it.Kind, URL: resp.Location, Depth: it.Depth, Hops: uint32(hops),
			For: it.For, Status: it.Status, LastMod: it.LastMod})
	case v.fate.Page() && it.Kind == message.Sitemap:
		f.list(&v, it, resp)
	case v.fate.Page():
		stage.Extract(resp, f.Agent, false, func(url string, why stage.Reason) {
			if why != "" {
				v.skip(why)
				return
			}
			f.link(&v, message.Item{Kind: message.Page, URL: url, Depth: it.Depth + 1})
		})
	}
	f.report(&v, it, state)
	return v
}

// list collects the entries of a sitemap.
func (f *fetcher) list(v *visited, it message.Item, resp *fetch.Response) {
	n := 0
	v.fate = stage.Listed
	broken := stage.List(resp, knownOf(it), func(entry stage.Item, why stage.Reason) {
		if n++; why != "" {
			v.skip(why)
			return
		}
		f.link(v, itemOf(entry))
	})
	if broken != nil && n == 0 {
		v.fate = stage.NoSitemap
	}
}

// link adds a link, unless its target is not crawled.
func (f *fetcher) link(v *visited, it message.Item) {
	url, err := weburl.Canonical(it.URL)
	if err != nil {
		v.skip(urlfilter.Malformed(err))
		return
	}
	it.URL = strings.Clone(url)
	to := f.toDedupe(it)
	why := f.settings.Load().filter.Check(knownOf(it))
	switch {
	case why != "":
		v.skip(why)
	case f.full.Load():
		v.skip(stage.Reason(stage.QueueFull))
	// An entry of a sitemap has news about a page, and a sitemap may have the URL of a page.
	case it.Kind != message.Page || !it.LastMod.IsZero() || f.recent.Add(url):
		v.items = append(v.items, to)
	}
}

// outcome counts the delays from the first byte of the response: by then the request has arrived,
// so no two requests arrive within the delay.
func outcome(start time.Time, resp *fetch.Response) scheduler.Outcome {
	as := &http.Response{StatusCode: resp.Status, Header: resp.Header}
	o := schedulerhttp.Outcome(start, as, nil)
	o.Start, o.Took = resp.FirstByte, resp.Wait()
	if latest := time.Now().Add(scheduler.DefaultMaxRetryAfter); o.RetryAfter.After(latest) {
		o.RetryAfter = latest
	}
	return o
}

// failure counts the delays from now, unless nothing was sent.
func failure(start time.Time, err error) scheduler.Outcome {
	o := schedulerhttp.Outcome(start, nil, err)
	if o.Skipped {
		return skipped
	}
	return o
}
