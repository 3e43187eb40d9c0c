package crawl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/scheduler"
)

// errAbandoned says that a visit came to nothing, because the partition is no longer this
// process's.
var errAbandoned = errors.New("crawl: visit abandoned")

// maxRedirects is how many redirects in a row lead to a page; browsers give up after twenty.
const maxRedirects = 10

// maxRetryAfter is how long a server is believed that sends the crawler away.
const maxRetryAfter = 24 * time.Hour

// visit fetches what an item asks for, keeps the answer, and passes on what follows from it. When
// it returns a fate, all that is with the broker.
func (f *fetcher) visit(
	ctx context.Context, it message.Item,
) (stage.Fate, scheduler.Outcome, error) {
	resp, err := f.get(ctx, it)
	// Why a request failed cannot be told from the error once the right to make it was lost: the
	// guard of the connection refuses like a broken network. The next owner asks again.
	if ctx.Err() != nil || f.claim.Guard() != nil {
		if err == nil {
			f.client.Release(resp)
		}
		return "", scheduler.Outcome{}, errAbandoned
	}
	if err != nil {
		var passed error
		if it.Kind == message.Rules {
			passed = f.answer(ctx, it, message.Item{})
		}
		return stage.Judge(nil, err), failure(err), passed
	}
	defer f.client.Release(resp)
	_, err = f.store.Append(stage.Capture(resp))
	switch {
	case errors.Is(err, archive.ErrInvalid): // one answer that no record can hold
		return stage.Unstored, outcome(resp), nil
	case err != nil:
		return "", outcome(resp), fmt.Errorf("crawl: keep %s: %w", it.URL, err)
	}
	// From here on a page may be fetched and stored twice, but its links are not lost: it is done
	// only when they are with the broker.
	f.visits.Add(1)
	if it.Kind == message.Rules {
		fate := stage.Judge(resp, nil)
		return fate, outcome(resp), f.answer(ctx, it, answerOf(resp))
	}
	fate, err := f.follow(ctx, it, resp)
	return fate, outcome(resp), err
}

// get makes one request, when the process may have one more under way.
func (f *fetcher) get(ctx context.Context, it message.Item) (*fetch.Response, error) {
	if f.slots != nil {
		select {
		case f.slots <- struct{}{}:
			defer func() { <-f.slots }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return f.client.Get(withAddr(ctx, it.Addr), it.URL)
}

// answer sends what came of a request for a robots.txt to the partition that waits for it.
func (f *fetcher) answer(ctx context.Context, it, answer message.Item) error {
	answer.Kind, answer.URL, answer.For, answer.Hops = message.Answer, it.URL, it.For, it.Hops
	to := address{message.Hosts, f.partOfHost(it.For)}
	return f.pass(ctx, map[address]struct{}{to: {}}, func() error {
		return f.out.put(ctx, to, answer)
	})
}

// answerOf turns a response into an answer for a robots.txt.
func answerOf(resp *fetch.Response) message.Item {
	file := stage.RobotsResponse(resp).File()
	if file == nil && resp.Status < 300 {
		return message.Item{} // half a file may lack the half that forbids
	}
	answer := message.Item{Status: uint32(resp.Status), Body: file.String()}
	if resp.Location != "" {
		// What is no URL leads nowhere, and counts as a redirect that was not followed.
		answer.Location, _ = weburl.Canonical(resp.Location)
	}
	return answer
}

// follow passes on where a page leads, and returns the page's fate.
func (f *fetcher) follow(
	ctx context.Context, it message.Item, resp *fetch.Response,
) (stage.Fate, error) {
	fate := stage.Judge(resp, nil)
	touched := map[address]struct{}{}
	err := f.pass(ctx, touched, func() (err error) {
		switch {
		case fate == stage.Redirected && int(it.Hops) >= maxRedirects:
			fate = stage.TooManyRedirects
		case fate == stage.Redirected:
			next := message.Item{URL: resp.Location, Depth: it.Depth, Hops: it.Hops + 1}
			err = f.link(ctx, next, touched)
		case fate.Page():
			stage.Extract(resp, f.Agent, false, func(url string, why stage.Reason) {
				if why != "" {
					f.skip(why)
				} else if err == nil {
					err = f.link(ctx, message.Item{URL: url, Depth: it.Depth + 1}, touched)
				}
			})
		}
		return err
	})
	return fate, err
}

// link passes one link on, unless it leads to what is not crawled.
func (f *fetcher) link(ctx context.Context, it message.Item, touched map[address]struct{}) error {
	url, err := weburl.Canonical(it.URL)
	if err != nil {
		f.skip(urlfilter.Malformed(err))
		return nil
	}
	it.Kind, it.URL = message.Page, strings.Clone(url)
	why := f.filter.Check(stage.Item{URL: url, Depth: int(it.Depth), Hops: int(it.Hops)})
	switch {
	case why != "":
		f.skip(why)
		return nil
	case f.full.Load():
		f.skip(stage.Reason(stage.QueueFull))
		return nil
	}
	to := address{message.Dedupe, f.urlPart(url)}
	touched[to] = struct{}{} // also if another worker has just put it there, and waits for it
	if f.out.sentLately(url) {
		return nil
	}
	return f.out.put(ctx, to, it)
}

// pass lets put gather items, and returns when those and all others for the touched partitions are
// with the broker. That it may not write any more is no fault of the item.
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

// outcome counts the delays from the first byte of the answer: by then the server has seen the
// request, so that no two requests can arrive closer than the delay.
func outcome(resp *fetch.Response) scheduler.Outcome {
	o := scheduler.Outcome{
		Start: resp.FirstByte, Took: resp.FirstByte.Sub(resp.WroteRequest), Status: resp.Status,
	}
	if resp.RetryAfter > 0 {
		o.RetryAfter = resp.FirstByte.Add(min(resp.RetryAfter, maxRetryAfter))
	}
	return o
}

// failure counts them from now, unless nothing was sent.
func failure(err error) scheduler.Outcome {
	for _, unsent := range []fetch.Kind{fetch.Blocked, fetch.BadURL, fetch.Resolve} {
		if errors.Is(err, unsent) {
			return scheduler.Outcome{Skipped: true}
		}
	}
	return scheduler.Outcome{Start: time.Now(), Failed: !errors.Is(err, fetch.Canceled)}
}
