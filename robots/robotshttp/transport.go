// Package robotshttp makes any net/http client obey robots.txt: a RoundTripper around a RoundTripper.
//
//	transport := robotshttp.NewTransport(nil, robots.Options{Agent: "examplebot"})
//	client := &http.Client{Transport: transport}
//	_, err := client.Get("https://example.com/private/page")
//	errors.Is(err, robots.ErrDisallowed) // true, if robots.txt says so
//
// # Promises
//
// A request that robots.txt does not allow is not sent. It fails with a [robots.DisallowedError], which names the
// rule and its line. Dot segments hide no path: the rules must allow every form in which servers resolve them, and
// a URL of more than 1 KiB with dot segments is never sent. For URLs longer than 8 KiB see [robotstxt.Rules.Match].
// Redirects are checked hop by hop, because a client sends each as a request.
//
// While a host's robots.txt cannot be fetched, requests to it fail with a [robots.UnreachableError], which gives
// the reason and the time of the next attempt. 500 KiB of the file are read, so a layer below that limits bodies
// must let that much pass. If the file redirects to another host, that request obeys the other host's rules if
// they are known (RFC 9309, 2.3.1.2). A request with a Host field belongs to that host: robots.txt is requested
// from the same server in the same way, unless a redirect changes the scheme, and applies to all servers that are
// asked under that name.
//
// Requests for robots.txt go through the same base transport, so lower layers count, delay, record and guard them
// like any other. They carry the User-Agent of the request that needs the file if it names the crawler of
// Options.Agent, and otherwise Options.Agent. Make that a whole User-Agent if some requests have another one,
// since some servers refuse unknown agents. Without one, a lower layer sets the same for both. Requests that need
// the same file share one fetch, and each waits until its own context ends. If the fetch fails because of the
// request that started it, or its proxy, the next one tries, at most four times.
//
// The rules are checked in RoundTrip. They may change while a layer below delays the request.
//
// The Crawl-delay travels in the request's context under the key struct{ RobotsCrawlDelay struct{} }{}, as a
// time.Duration, 0 if the host has none. Package schedulerhttp, placed below, obeys it. Requests for robots.txt
// carry no value.
//
// # Cost
//
// A request to a host whose rules are known costs about 0.5 µs and three allocations. The rules are in a
// [robots.Cache], whose options bound the memory, and those for a Host field in a second one with the same bound.
package robotshttp

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spinneret-go/spinneret/internal/httpctx"
	"github.com/spinneret-go/spinneret/internal/httpurl"
	"github.com/spinneret-go/spinneret/internal/neterr"
	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/robots/internal/rep"
	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

// Transport is an http.RoundTripper that sends only what robots.txt allows. Its methods are safe
// for concurrent use.
type Transport struct {
	base  http.RoundTripper
	cache *robots.Cache
	other *robots.Cache // of requests with another Host than that of their URL
	agent string        // of the caches
}

// NewTransport returns a Transport that sends requests with base, or http.DefaultTransport if base
// is nil. It keeps no goroutine running. o.Agent selects the rules, and is not sent for pages. Of
// o.Client only the Timeout is used, for requests for robots.txt; without a Client it is 30 seconds. It
// does not include the time for which package schedulerhttp, placed below, makes such a request wait.
func NewTransport(base http.RoundTripper, o robots.Options) *Transport {
	if base == nil {
		base = http.DefaultTransport
	}
	client := &http.Client{Transport: rulesTransport{base}, Timeout: 30 * time.Second}
	if o.Client != nil {
		client.Timeout = o.Client.Timeout
	}
	o.Client = client
	return &Transport{base, robots.NewCache(o), robots.NewCache(o), o.Agent}
}

// With returns a Transport on top of another base, with the cache of t: what one of them has
// learned need not be fetched by the other. Use it for an archive, a proxy or a login of each
// tenant. A nil base means http.DefaultTransport.
func (t *Transport) With(base http.RoundTripper) *Transport {
	if base == nil {
		base = http.DefaultTransport
	}
	return &Transport{base, t.cache, t.other, t.agent}
}

// Cache returns the cache of rules, for saving, restoring and looking up, but those for a Host field.
func (t *Transport) Cache() *robots.Cache { return t.cache }

// RoundTrip sends a request if robots.txt allows it. Otherwise the error is a
// [robots.DisallowedError], or a [robots.UnreachableError] as long as the file cannot be fetched, or says
// that a long URL has dot segments. Errors of [robots.Cache.Load] and of the base transport are returned as
// well. Schemes without robots.txt are left to the base.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if isNowhere(r.URL) || isRules(r.URL) {
		return t.base.RoundTrip(r)
	}
	site := named(r)
	page := httpurl.Requested(site)
	if isTooLong(page) {
		return refuse(r, errTooLong)
	}
	cache := t.cache
	if site != r.URL { // what one server says under a name is not what the server of that name says
		cache = t.other
	}
	rules, known := cache.Get(page, time.Now())
	var failure error
	if !known {
		// The trace and the crawl delay of a page are not those of the robots.txt.
		host := hostOf(page)
		at := host
		if site != r.URL {
			at = r.URL.Host
		}
		ctx := rulesContext{httpctx.WithoutTrace(r.Context()), t, r.URL.Scheme, host, at, t.agentOf(r), &failure}
		var err error
		if rules, err = t.load(ctx, cache, page); err != nil {
			return refuse(r, err)
		}
	}
	switch verdict := match(rules, page); {
	case verdict.Allowed:
		delay, _ := rules.Delay()
		return t.base.RoundTrip(r.WithContext(context.WithValue(r.Context(), httpctx.CrawlDelay{}, delay)))
	case verdict.Line > 0:
		return refuse(r, &robots.DisallowedError{URL: page, Verdict: verdict})
	}
	entry, _ := cache.Entry(page)
	return refuse(r, &robots.UnreachableError{URL: page, Reason: entry.Reason, Retry: entry.Expires, Err: failure})
}

// agentOf returns the User-Agent of the request for a robots.txt that another request needs.
func (t *Transport) agentOf(r *http.Request) []string {
	agent := r.Header["User-Agent"]
	if own := rep.OwnToken(t.agent); own != "" && len(agent) > 0 && rep.OwnToken(agent[0]) != own && !hasWord(agent[0], own) {
		return []string{t.agent}
	}
	return agent
}

// hasWord reports whether a User-Agent has a token anywhere, as in "Mozilla/5.0 … Safari/605 (examplebot/1.0)".
func hasWord(agent, token string) bool {
	isOther := func(r rune) bool {
		return r != '-' && r != '_' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}
	return slices.Contains(strings.FieldsFunc(strings.ToLower(agent), isOther), token)
}

// maxOthers bounds the requests of others that fail in place of one. Their proxy may be its own as well.
const maxOthers = 3

// load is Load, unless it has failed for another request, whose fields or context may be why, or for
// another Transport with that cache, whose base may be a proxy or a recorder that t does not use.
func (t *Transport) load(ctx rulesContext, cache *robots.Cache, page string) (rules robotstxt.Rules, err error) {
	for others := 0; ; {
		rules, err = cache.Load(ctx, page)
		failed := (*attemptError)(nil)
		if !errors.As(err, &failed) || failed.of == ctx.err || failed.by == t && others == maxOthers {
			return rules, err
		}
		if failed.by == t {
			others++
		}
	}
}

// An attemptError is an error of a request for robots.txt.
type attemptError struct {
	error
	by *Transport
	of *error // rulesContext.err of the request
}

func (e *attemptError) Unwrap() error { return e.error }

// named returns the URL of a request under the name that it gives the server.
func named(r *http.Request) *url.URL {
	if r.Host == "" || r.Host == r.URL.Host || strings.HasPrefix(r.URL.Opaque, "//") {
		return r.URL
	}
	u := *r.URL
	u.Host = r.Host
	return &u
}

// hostOf returns the host of a page as the request for its robots.txt has it.
func hostOf(page string) string {
	origin, err := rep.Origin(page)
	if err != nil {
		return "" // Load says why
	}
	u, err := url.Parse(origin)
	if err != nil {
		return ""
	}
	return u.Host
}

// isRules reports whether a URL is that of a robots.txt.
func isRules(u *url.URL) bool {
	file := u.Path
	if u.Opaque != "" {
		file = strings.TrimPrefix(u.Opaque, "//"+u.Host)
	}
	return file == "/robots.txt" && u.RawQuery == ""
}

// isNowhere reports whether a URL leads to no server that can have a robots.txt. The base says why.
func isNowhere(u *url.URL) bool {
	if u == nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return true
	}
	_, err := strconv.ParseUint(httpurl.Port(u), 10, 16)
	return err != nil
}

// CloseIdleConnections closes the idle connections of the base transport, if it can.
func (t *Transport) CloseIdleConnections() {
	(&http.Client{Transport: t.base}).CloseIdleConnections()
}

// refuse ends a request that is not sent. A RoundTripper must close its body.
func refuse(r *http.Request, err error) (*http.Response, error) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return nil, err
}

// rulesContext is the context of a request for robots.txt: that of the request that needs it, but
// for what layers below do with the latter.
type rulesContext struct {
	context.Context
	by     *Transport // of the request that needs the file
	scheme string     // of that request
	host   string     // likewise
	at     string     // the server that it goes to, under the name of host
	agent  []string   // see agentOf
	err    *error     // set to the error of base, if any; of this request alone
}

// rulesKey is the key under which a rulesContext has itself.
type rulesKey struct{}

// Value implements context.Context.
func (c rulesContext) Value(key any) any {
	if key == (rulesKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// rulesTransport sends the requests for robots.txt.
type rulesTransport struct {
	base http.RoundTripper // for callers of the cache
}

func (t rulesTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	c, ok := r.Context().Value(rulesKey{}).(rulesContext)
	if !ok {
		return t.base.RoundTrip(r)
	}
	delete(r.Header, "User-Agent") // the cache made r for this call
	if c.agent != nil {
		r.Header["User-Agent"] = c.agent // which may be one empty string, to send none
	}
	resp, err := c.roundTrip(r)
	if err != nil {
		err = neterr.Handshake(err)
		*c.err = err
		return nil, &attemptError{err, c.by, c.err}
	}
	*c.err = nil
	return resp, nil
}

// A refusal is why a request was not sent, although no rule forbids the page. Of a redirect from a
// robots.txt it has only the text, since the rule is about another page.
type refusal string

const errTooLong refusal = "robotshttp: the URL has dot segments, and more than 1 KiB"

func (e refusal) Error() string { return string(e) }

// Local says that no server has failed.
func (refusal) Local() bool { return true }

// roundTrip sends a request for a robots.txt, or that of a redirect from there. Another host must not have
// us ask this one for what it forbids.
func (c rulesContext) roundTrip(r *http.Request) (*http.Response, error) {
	page := httpurl.Requested(r.URL)
	if isTooLong(page) {
		return nil, errTooLong
	}
	own := hostOf(page) == c.host && // however a redirect writes it
		(c.at == c.host || r.URL.Scheme == c.scheme) // the server with another scheme is at another port
	if !own && !isRules(r.URL) {
		rules, known := c.by.cache.Get(page, time.Now())
		switch verdict := match(rules, page); {
		case !known || verdict.Allowed:
		case verdict.Line > 0:
			return nil, refusal((&robots.DisallowedError{URL: page, Verdict: verdict}).Error())
		default:
			return nil, refusal("robotshttp: the robots.txt of " + r.URL.Host + ", to which it redirects, cannot be fetched")
		}
	}
	if own && c.at != c.host {
		u := *r.URL
		r.Host, u.Host = c.host, c.at
		r.URL = &u
	}
	return c.by.base.RoundTrip(r)
}
