package robots

import (
	"context"
	"time"
)

// Fetch makes one Request. It follows no redirects, sends the validators, and waits as long as the
// host's turn takes. An error means that there was no answer, and is not shown to anybody: the
// [Cache] goes by what RFC 9309 says of a host that is out of reach.
type Fetch func(ctx context.Context, req Request) (Response, error)

// Get returns the rules for a URL, and fetches the robots.txt if it has to. Of many who ask for one
// host at a time one fetches, under its own ctx, and the others wait; if that ctx ends, the next
// takes over. The errors are those of [Locate] and of ctx: a host that is out of reach is none.
// With an error come Rules that forbid everything.
func (c *Cache) Get(ctx context.Context, url string, fetch Fetch) (Rules, error) {
	for {
		answer, h, err := c.lookup(url, time.Now())
		if err != nil {
			return Rules{nothing}, err
		}
		if answer.State == Needed {
			answer, err = c.fly(ctx, answer.Request, fetch)
			if err != nil {
				return Rules{nothing}, err
			}
		}
		if answer.State == Fresh {
			return answer.Rules, nil
		}
		if err := c.wait(ctx, h); err != nil {
			return Rules{nothing}, err
		}
	}
}

// fly makes a request and all to which it leads. However it ends, fetch panicking too, nobody is
// left waiting for it.
func (c *Cache) fly(ctx context.Context, req Request, fetch Fetch) (Answer, error) {
	defer func() { c.Abandon(req) }()
	for {
		resp, err := fetch(ctx, req)
		if err != nil {
			if ctx.Err() != nil {
				return Answer{}, ctx.Err() // which says nothing about the host
			}
			resp = Response{}
		}
		answer, err := c.Store(req, resp, time.Now())
		req = answer.Request // none after the last: what was stored cannot be abandoned
		if err != nil || answer.State != Needed {
			return answer, err
		}
	}
}

// wait returns when the request for a host has been answered, or has taken too long.
func (c *Cache) wait(ctx context.Context, h *host) error {
	landed, left := c.landing(h, time.Now())
	if landed == nil {
		return nil
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-landed:
	case <-timer.C:
	}
	return nil
}

// landing returns what is closed when the flight ends, nil if there is none any more, and how long
// it is worth waiting for.
func (c *Cache) landing(h *host, now time.Time) (landed <-chan struct{}, left time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !h.flying(now, c.options.Patience) {
		return nil, 0
	}
	if h.landed == nil {
		h.landed = make(chan struct{})
	}
	return h.landed, h.began.Add(c.options.Patience).Sub(now)
}
