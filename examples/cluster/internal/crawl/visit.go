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
	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/spinneret-go/spinneret/scheduler/schedulerhttp"
)

// errAbandoned means that a visit had no result, because this process no longer owns the partition.
var errAbandoned = errors.New("crawl: visit abandoned")

// maxRedirects bounds the redirects in a row. Browsers follow twenty.
const maxRedirects = 10

// A visited is the result of a task.
type visited struct {
	fate      stage.Fate
	outcome   scheduler.Outcome
	requeue   bool      // do it later, in this process
	notBefore time.Time // for requeue
	err       error
}

// visit performs the task of an item. If it returns a fate, the broker has all items that follow
// from the visit.
func (f *fetcher) visit(ctx context.Context, it message.Item) visited {
	settings := f.settings.Load()
	if v, done := f.unwanted(ctx, it, settings.filter); done {
		return v
	}
	if it.Kind != message.Rules && !it.Until.IsZero() && time.Now().After(it.Until) {
		if v, done := f.recheck(ctx, it); done {
			return v
		}
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
		err = f.over(ctx, it, state, stage.Unstored, o)
		return visited{fate: stage.Unstored, outcome: o, err: err}
	case err != nil:
		return visited{outcome: o, err: fmt.Errorf("crawl: store %s: %w", it.URL, err)}
	}
	// From here on a page may be fetched and stored twice, but its links are not lost: it is
	// finished only when the broker has them.
	f.visits.Add(1)
	if it.Kind == message.Rules {
		err = f.answer(ctx, it, answerOf(resp))
		return visited{fate: stage.Classify(resp, nil), outcome: o, err: err}
	}
	fate, err := f.follow(ctx, it, &state, resp, o)
	return visited{fate: fate, outcome: o, err: err}
}

// skipped is the outcome of a lease without a request.
var skipped = scheduler.Outcome{Skipped: true}

// unwanted ends an item without a request if the operator does not want it.
func (f *fetcher) unwanted(
	ctx context.Context, it message.Item, wanted *filter,
) (v visited, done bool) {
	v.outcome = skipped
	switch {
	case it.Kind == message.Rules:
		if !wanted.denies(it.URL) {
			return v, false
		}
		v.fate = refused
		v.err = f.answer(ctx, it, message.Item{Status: statusDenied})
		return v, true
	case wanted.denies(it.URL):
		v.fate = refused
	case wanted.check(it) != urlfilter.Fine:
		v.fate = stage.Unwanted
	default:
		return v, false
	}
	v.err = f.over(ctx, it, stateOf(it), v.fate, v.outcome)
	return v, true
}

// failed handles a request without a response.
func (f *fetcher) failed(
	ctx context.Context, it message.Item, state stage.State, start time.Time, err error,
) visited {
	f.opts.Log.Debug("request failed", "url", it.URL, "err", err)
	v := visited{fate: stage.Classify(nil, err), outcome: failure(start, err)}
	if o, ours := f.ours(ctx, it.Addr, start, err); ours {
		v.outcome, v.fate = o, stage.Interrupted
		if it.Kind == message.Rules {
			v.requeue, v.notBefore = true, time.Now().Add(ownFault)
			return v
		}
	}
	if it.Kind == message.Rules {
		v.err = f.answer(ctx, it, message.Item{})
	} else {
		v.err = f.over(ctx, it, state, v.fate, v.outcome)
	}
	return v
}

// ours reports whether a request failed because of this machine, for example without a network, and
// returns the outcome for the delays: nothing is counted against the host, but the request may have
// been sent.
func (f *fetcher) ours(
	ctx context.Context, addr netip.Addr, start time.Time, err error,
) (o scheduler.Outcome, ours bool) {
	if !f.uplink.Ours(ctx, err, addr, start) {
		return o, false
	}
	if failure(start, err).Skipped {
		return skipped, true
	}
	return scheduler.Outcome{Start: time.Now()}, true
}

// over reports a page without links.
func (f *fetcher) over(
	ctx context.Context, it message.Item, state stage.State, fate stage.Fate, o scheduler.Outcome,
) error {
	touched := map[address]struct{}{}
	return f.pass(ctx, touched, func() error { return f.report(ctx, it, state, fate, o, touched) })
}

// report tells the page's partition of dedupe the fate of a page that is to be visited again.
func (f *fetcher) report(
	ctx context.Context, it message.Item, state stage.State, fate stage.Fate, o scheduler.Outcome,
	touched map[address]struct{},
) error {
	due := f.next(fate, &state, time.Now(), o.RetryAfter)
	if due.IsZero() && mayPass[fate] {
		f.skip(urlfilter.Reason(gaveUp))
	}
	r, ok := report(it, state, due)
	if !ok {
		return nil
	}
	return f.plan(ctx, r, touched)
}

// plan sends a report.
func (f *fetcher) plan(ctx context.Context, r message.Item, touched map[address]struct{}) error {
	to := address{message.Dedupe, f.urlPart(r.URL)}
	touched[to] = struct{}{}
	return f.out.put(ctx, to, r)
}

// recheck checks whether robots.txt still allows a page that has waited until its rules expired. If
// they have to be fetched again, that uses the lease of the page.
func (f *fetcher) recheck(ctx context.Context, it message.Item) (v visited, done bool) {
	v.outcome = skipped
	answer, err := f.rules.Lookup(it.URL, time.Now())
	switch {
	case err != nil || !answer.Known && answer.Request == nil: // another worker fetches them
		v.requeue, v.notBefore = true, time.Now().Add(time.Second)
		return v, true
	case answer.Request != nil:
		return f.askRules(ctx, it, *answer.Request), true
	}
	verdict := answer.Rules.Match(it.URL)
	switch {
	case verdict.Allowed:
		return v, false
	case verdict.Line > 0:
		v.fate = stage.Disallowed
	default:
		v.fate = stage.RobotsUnreachable
		entry, _ := f.rules.Entry(it.URL)
		v.outcome.RetryAfter = entry.Expires
	}
	v.err = f.over(ctx, it, stateOf(it), v.fate, v.outcome)
	v.outcome = skipped
	return v, true
}

// rechecked is a page that went back to hosts, because its robots.txt is now on another host.
const rechecked stage.Fate = "checked again by robots.txt"

// askRules fetches a robots.txt with the lease of a page of its server, which has the same address.
// A redirect may lead to an address of another partition, so it is left to hosts.
func (f *fetcher) askRules(ctx context.Context, it message.Item, req robots.Request) (v visited) {
	start := time.Now()
	resp, err := f.get(ctx, req.URL, it.Addr, fetch.Validators{})
	if ctx.Err() != nil || f.claim.Guard() != nil {
		f.rules.Abandon(req)
		if err == nil {
			f.client.Release(resp)
		}
		return visited{err: errAbandoned}
	}
	v.requeue = true
	if err != nil {
		v.outcome = failure(start, err)
		if o, ours := f.ours(ctx, it.Addr, start, err); ours {
			f.rules.Abandon(req)
			v.outcome, v.notBefore = o, time.Now().Add(ownFault)
			return v
		}
		_, _ = f.rules.Store(req, robots.Response{}, time.Now()) // the URL was located before
		return v
	}
	defer f.client.Release(resp)
	v.outcome = outcome(start, resp)
	_, err = f.store.Append(stage.Capture(resp))
	if err != nil && !errors.Is(err, archive.ErrInvalid) {
		f.rules.Abandon(req)
		v.err = fmt.Errorf("crawl: store %s: %w", req.URL, err)
		return v
	}
	f.visits.Add(1)
	answer, err := f.rules.Store(req, stage.RobotsResponse(resp), time.Now())
	if err == nil && answer.Request != nil {
		f.rules.Abandon(*answer.Request)
		it.Again, it.Addr, it.Until = true, netip.Addr{}, time.Time{}
		to := address{message.Hosts, f.partOfHost(it.URL)}
		v.requeue, v.fate = false, rechecked
		v.err = f.pass(ctx, map[address]struct{}{to: {}}, func() error {
			return f.out.put(ctx, to, it)
		})
	}
	return v
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

// answer sends the result of a request for a robots.txt to the partition that waits for it.
func (f *fetcher) answer(ctx context.Context, it, answer message.Item) error {
	answer.Kind, answer.URL, answer.For, answer.Hops = message.Answer, it.URL, it.For, it.Hops
	to := address{message.Hosts, f.partOfHost(it.For)}
	return f.pass(ctx, map[address]struct{}{to: {}}, func() error {
		return f.out.put(ctx, to, answer)
	})
}

// answerOf converts a response for a robots.txt to an answer.
func answerOf(resp *fetch.Response) message.Item {
	file := stage.RobotsResponse(resp).File()
	if file == nil && resp.Status < 300 {
		return message.Item{} // half a file may lack the half that forbids
	}
	answer := message.Item{Status: uint32(resp.Status), Body: file.String()}
	if resp.Location != "" {
		// An invalid URL counts as a redirect that was not followed.
		answer.Location, _ = weburl.Canonical(resp.Location)
	}
	return answer
}

// follow sends on the links of a page and when it is due again, and returns the page's fate.
func (f *fetcher) follow(
	ctx context.Context, it message.Item, state *stage.State, resp *fetch.Response,
	o scheduler.Outcome,
) (stage.Fate, error) {
	fate := stage.Classify(resp, nil)
	if fate.Page() || fate == stage.Unchanged || fate == stage.Redirected {
		modified, _ := http.ParseTime(resp.Header.Get("Last-Modified")) // zero if it is invalid
		visit := revisit.Visit{At: resp.FirstByte, LastModified: modified}
		visit.Changed = state.Compare(resp, false) == stage.RealChange
		state.History = state.History.Observe(visit)
	}
	touched := map[address]struct{}{}
	err := f.pass(ctx, touched, func() (err error) {
		switch {
		case fate == stage.Redirected && int(it.Hops) >= maxRedirects:
			fate = stage.TooManyRedirects
		case fate == stage.Redirected:
			next := it
			next.URL, next.Hops = resp.Location, it.Hops+1
			err = f.link(ctx, fresh(next), touched)
		case fate.Page() && it.Kind == message.Sitemap:
			fate, err = f.list(ctx, it, resp, touched)
		case fate.Page():
			stage.Extract(resp, f.Agent, false, func(url string, why stage.Reason) {
				if why != "" {
					f.skip(why)
				} else if err == nil {
					link := message.Item{Kind: message.Page, URL: url, Depth: it.Depth + 1}
					err = f.link(ctx, link, touched)
				}
			})
		}
		if err == nil {
			err = f.report(ctx, it, *state, fate, o, touched)
		}
		return err
	})
	return fate, err
}

// fresh returns an item as a new one.
func fresh(it message.Item) message.Item {
	return message.Item{
		Kind: it.Kind, URL: it.URL, Depth: it.Depth, Hops: it.Hops, For: it.For, Status: it.Status,
		LastMod: it.LastMod,
	}
}

// list sends on the entries of a sitemap.
func (f *fetcher) list(
	ctx context.Context, it message.Item, resp *fetch.Response, touched map[address]struct{},
) (fate stage.Fate, err error) {
	n := 0
	broken := stage.List(resp, knownOf(it), func(entry stage.Item, why stage.Reason) {
		if n++; why != "" {
			f.skip(why)
		} else if err == nil {
			err = f.link(ctx, itemOf(entry), touched)
		}
	})
	if broken != nil && n == 0 {
		return stage.NoSitemap, err
	}
	return stage.Listed, err
}

// link sends one link on, unless its target is not crawled.
func (f *fetcher) link(ctx context.Context, it message.Item, touched map[address]struct{}) error {
	url, err := weburl.Canonical(it.URL)
	if err != nil {
		f.skip(urlfilter.Malformed(err))
		return nil
	}
	it.URL = strings.Clone(url)
	why := f.settings.Load().filter.check(it)
	switch {
	case why != "":
		f.skip(why)
		return nil
	case f.full.Load():
		f.skip(stage.Reason(stage.QueueFull))
		return nil
	}
	to := address{message.Dedupe, f.urlPart(url)}
	touched[to] = struct{}{} // even if another worker has just put it there, and waits for it
	// An entry of a sitemap has news about a page, and a sitemap may have the URL of a page.
	if it.Kind == message.Page && it.LastMod.IsZero() && f.out.sentRecently(url) {
		return nil
	}
	return f.out.put(ctx, to, it)
}

// pass calls put, and returns when the broker has its items and all others for the touched
// partitions. It returns errAbandoned if this process may no longer send.
func (f *fetcher) pass(
	ctx context.Context, touched map[address]struct{}, put func() error,
) error {
	err := put()
	if err == nil && len(touched) > 0 {
		time.Sleep(linger)
		for to := range touched {
			if err = f.out.flush(ctx, to); err != nil {
				break
			}
		}
	}
	if err != nil {
		return errAbandoned
	}
	return nil
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
