package schedulerhttp

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/internal/httpctx"
	"github.com/spinneret-go/spinneret/internal/weburl"
	"github.com/spinneret-go/spinneret/scheduler"
)

// WaitError is the error of a request that cannot start before its deadline, or within
// Transport.MaxWait. Until says when it could.
type WaitError = scheduler.WaitError

// Transport is an http.RoundTripper that waits until the host may be visited and then calls another
// RoundTripper. Its methods are safe for concurrent use. Its fields must not change during a call.
type Transport struct {
	// MaxWait bounds how long a request waits for its host and its address, the time of connecting
	// not included. A request that would wait longer fails with a [WaitError], at once if that is
	// known beforehand. Less than 10 ms counts as that, for which a request that need not wait may be
	// held up by this machine. 0 means that it waits as long as its context allows.
	MaxWait time.Duration

	// Failure reports whether a response counts as a failure, which lengthens the delays of its
	// host and address, in addition to 429 and 503. Some sites slow crawlers down by 403, for
	// example. It must not read the body. nil means no others.
	Failure func(*http.Response) bool

	// Arrival bounds the time from writing a request until it reaches the server. If it is set, the
	// delay counts from then, or from the first byte of the response if that is earlier. With
	// MaxPerAddr of 2, the next request then need not wait for a slow page. Arrival has to include
	// the jitter of the network: if a request takes longer, the next one may come too early by the
	// difference. 0 means unknown: only the first byte counts.
	Arrival time.Duration

	base  http.RoundTripper
	hosts *scheduler.Scheduler[struct{}] // nil if another type of items is queued there
	kept  *memory

	// Methods of that Scheduler, or of one for any type of items.
	wait    func(ctx context.Context, host string) (turn, error)
	setHost func(host string, h scheduler.Host) error
}

// A turn is a scheduler.Lease for any type of items.
type turn interface {
	Held() bool
	Reach(netip.Addr) bool
	Arrived(time.Time)
	Done(scheduler.Outcome)
}

// NewTransport returns a Transport on top of base; nil means http.DefaultTransport. It has no
// goroutines in the background and need not be closed.
func NewTransport(base http.RoundTripper, o scheduler.Options) *Transport {
	hosts := scheduler.New[struct{}](o)
	t := Over(base, hosts)
	t.hosts = hosts
	return t
}

// Over returns a Transport whose requests wait for the hosts of a queue, which are named as in
// [http.Request].URL, in lower case and ASCII, but without a dot at the end, and addresses in their
// shortest form. Use it for what a crawler needs besides the pages that it has queued, such as
// robots.txt. A caller that holds a lease makes its requests with the context of that, see
// [scheduler.Lease.Context]; it would wait for itself otherwise. Call Over once for a queue, and With
// for further Transports: what the servers of a host ask for as a Crawl-delay is not known to another
// Over, which shortens it.
func Over[T any](base http.RoundTripper, s *scheduler.Scheduler[T]) *Transport {
	t := &Transport{kept: newMemory(), setHost: s.SetHost}
	t.wait = func(ctx context.Context, host string) (turn, error) { return s.Wait(ctx, host) }
	return t.With(base)
}

// With returns a Transport on top of another base, with the fields and the hosts of t: requests
// through either of them keep the delays together. Use it for an archive, a proxy or a login of
// each tenant. A nil base means http.DefaultTransport.
func (t *Transport) With(base http.RoundTripper) *Transport {
	if base == nil {
		base = http.DefaultTransport
	}
	again := *t
	again.base = base
	return &again
}

// SetHost sets what is known about a host, whatever the spelling of its name: see
// [scheduler.Scheduler.SetHost]. A host whose address was not set costs that one connection without a
// request, since only then the Transport knows; a TLS handshake that fails is a visit. A CrawlDelay counts as
// one that was restored, see Hosts; a Delay counts whatever servers ask for.
func (t *Transport) SetHost(host string, h scheduler.Host) error {
	return t.setHost(hostOf(host), h)
}

// Hosts returns the scheduler of the requests. Use it to explain why a host waits, or to save and
// restore the state. It knows a host by the name in lower case and ASCII, as [Over] does. A Crawl-delay
// that was restored counts until a server of the host asks for another one, or for an hour or more
// from the first request for which none is asked. Hosts returns nil if the Transport was made by [Over].
func (t *Transport) Hosts() *scheduler.Scheduler[struct{}] { return t.hosts }

// CloseIdleConnections calls the method of that name of the RoundTripper below, if it has one.
func (t *Transport) CloseIdleConnections() {
	(&http.Client{Transport: t.base}).CloseIdleConnections()
}

// RoundTrip sends the request when its host may be visited, and also its address if that is known.
// The host is that of the URL, whatever the field Host says; the base gets a name in ASCII, and an address
// in its usual form. RoundTrip does not change the request. International names that have no form in ASCII
// are refused, and those with two dots at the end. Schemes other than http and https, and URLs without a host, are left
// to the base.
//
// A layer above can limit the time of a request without its waits. Under the key struct{ Pause struct{}
// }{} its context has a func() (resume func()), which RoundTrip calls before each wait, and what that
// returned after it. Package robots/robotshttp does this for requests for robots.txt.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL == nil || r.URL.Scheme != "http" && r.URL.Scheme != "https" || r.URL.Host == "" {
		return t.base.RoundTrip(r)
	}
	host := hostOf(r.URL.Hostname())
	if isForeign(host) || strings.HasSuffix(r.URL.Hostname(), "..") {
		return nil, refuse(r, fmt.Errorf("schedulerhttp: no host has the name %.100q", r.URL.Hostname()))
	}
	if delay, known := r.Context().Value(CrawlDelay{}).(time.Duration); known {
		t.kept.mu.Lock() // until the delay is set, so that the last one set is the longest
		longest := t.kept.longest(host, t.kept.serverOf(r), delay)
		err := t.setHost(host, scheduler.Host{CrawlDelay: longest})
		t.kept.mu.Unlock()
		if err != nil {
			return nil, refuse(r, err)
		}
	}
	return (&request{Request: r, transport: t, host: host}).roundTrip()
}

// CrawlDelay is the key of a time.Duration in the context of a request: what robots.txt asks for.
// Since its type has no name, layers of other modules can use it without importing this package.
type CrawlDelay = httpctx.CrawlDelay

// refuse closes the body of a request that is not sent, as the contract of RoundTripper requires.
func refuse(r *http.Request, err error) error {
	newBody(r.Body).end()
	return err
}

// hostOf returns the one form of a host's name, as it is sent. A foreign name that has none must not be
// sent: net/http may find a server by it nevertheless, for which others wait under another name.
func hostOf(name string) string {
	host, err := weburl.HostName(name)
	if err != nil {
		return strings.ToLower(strings.TrimRight(name, "."))
	}
	return host
}
