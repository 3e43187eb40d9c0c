package clients

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/archivehttp"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/robots/robotshttp"
	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/spinneret-go/spinneret/scheduler/schedulerhttp"
)

// This file is compiled twice: here, and inside the packages whose tests TestSuites runs. It must
// not use anything of this package.

// underlay puts layers under every http.Transport of a program. Its methods are safe for concurrent
// use.
type underlay struct {
	layers  string // one of stacks, or "" for none
	noRules bool   // robots.txt does not exist anywhere
	kept    *archive.Archive
	passed  *os.File // gets a byte for each request

	mu    sync.Mutex
	ready map[transportKey]http.RoundTripper
}

// transportKey is a transport with the URL of its proxy, which may be another one for each request.
type transportKey struct {
	t     *http.Transport
	proxy string
}

// stacks are the values of underlay.layers. "all" is the documented order.
var stacks = []string{"robotshttp", "schedulerhttp", "archivehttp", "fetch", "all"}

// newUnderlay returns an underlay that keeps its archive and the file passed in dir.
func newUnderlay(layers, dir string, noRules bool) (*underlay, error) {
	u := &underlay{layers: layers, noRules: noRules, ready: map[transportKey]http.RoundTripper{}}
	if layers == "" {
		return u, nil
	}
	var err error
	if u.kept, err = archive.Open(filepath.Join(dir, "archive"), archive.Options{}); err != nil {
		return nil, err
	}
	u.passed, err = os.Create(filepath.Join(dir, "passed"))
	return u, err
}

// of returns the layers for a request that somebody sends with t, or nil if it is one that the
// layers send.
func (u *underlay) of(t *http.Transport, r *http.Request) http.RoundTripper {
	if u.layers == "" || r.Context().Value(bottomKey{}) != nil {
		return nil
	}
	_, _ = u.passed.Write([]byte{'.'})
	key := transportKey{t: t}
	if t.Proxy != nil && r.URL != nil {
		if proxy, err := t.Proxy(r); err == nil && proxy != nil {
			key.proxy = proxy.String()
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ready[key] == nil {
		u.ready[key] = top{u.over(t, key.proxy)}
	}
	return u.ready[key]
}

// over returns the layers over t, or, for fetch, over a transport with the settings of t.
func (u *underlay) over(t *http.Transport, proxy string) http.RoundTripper {
	agent := robots.Options{Agent: "examplebot"}
	noDelay := scheduler.Options{HostDelay: -1}
	switch u.layers {
	case "robotshttp":
		return robotshttp.NewTransport(u.rules(bottom{t}), agent)
	case "schedulerhttp":
		return schedulerhttp.NewTransport(bottom{t}, noDelay)
	case "archivehttp":
		return bottom{archivehttp.NewTransport(t, u.kept)}
	}
	guarded, err := fetch.New(fetch.Options{
		Reach: fetch.Loopback, Dial: dialOf(t), TLSConfig: t.TLSClientConfig, Proxy: proxy,
		Wrap: func(base http.RoundTripper) http.RoundTripper { return bottom{base} },
	})
	switch {
	case err != nil:
		panic(err)
	case u.layers == "fetch":
		return guarded.Transport()
	}
	recorded := archivehttp.NewTransport(guarded.Transport(), u.kept)
	return robotshttp.NewTransport(u.rules(schedulerhttp.NewTransport(recorded, noDelay)), agent)
}

// dialOf returns how t connects.
func dialOf(t *http.Transport) func(context.Context, string, string) (net.Conn, error) {
	//lint:ignore SA1019 resty's tests set it
	dial := t.Dial
	if t.DialContext != nil || dial == nil {
		return t.DialContext
	}
	return func(_ context.Context, network, addr string) (net.Conn, error) {
		return dial(network, addr)
	}
}

// top turns panics into errors, so that the tests after one that panics run.
type top struct{ http.RoundTripper }

func (t top) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	defer func() {
		if why := recover(); why != nil {
			resp, err = nil, fmt.Errorf("panic: %v", why)
		}
	}()
	return t.RoundTripper.RoundTrip(r)
}

// bottom marks the requests that the layers send.
type bottom struct{ http.RoundTripper }

type bottomKey struct{}

func (b bottom) RoundTrip(r *http.Request) (*http.Response, error) {
	marked := r.WithContext(context.WithValue(r.Context(), bottomKey{}, true))
	resp, err := b.RoundTripper.RoundTrip(marked)
	if err == nil {
		resp.Request = r
	}
	return resp, err
}

// rules returns base, or if noRules is set, a RoundTripper that has no robots.txt.
func (u *underlay) rules(base http.RoundTripper) http.RoundTripper {
	if u.noRules {
		return withoutRules{base}
	}
	return base
}

type withoutRules struct{ http.RoundTripper }

func (w withoutRules) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path != "/robots.txt" {
		return w.RoundTripper.RoundTrip(r)
	}
	return &http.Response{
		Status: "404 Not Found", StatusCode: http.StatusNotFound,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: http.NoBody, Request: r,
	}, nil
}

// noNames returns a resolver for which no name exists, so that tests do not reach beyond this
// machine. It asks a server, as others do, so that a trace of a look-up is that of a look-up.
func noNames() (*net.Resolver, error) {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		message := make([]byte, 1<<16)
		for {
			n, from, err := server.ReadFrom(message)
			if err != nil {
				return
			}
			message[2] |= 0x80                   // the query becomes a response,
			message[3] = message[3]&^0x0F | 0x03 // and the name does not exist
			_, _ = server.WriteTo(message[:n], from)
		}
	}()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}
	return &net.Resolver{PreferGo: true, Dial: dial}, nil
}
