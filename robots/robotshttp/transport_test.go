package robotshttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/robots/robotshttp"
	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

// A web answers requests by their URL, and notes them with what they carry.
type web struct {
	mu    sync.Mutex
	log   []string
	pages map[string]string // a body, or where a redirect leads
	took  time.Duration
	fails error
}

func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	note := r.URL.String()
	if delay, known := r.Context().Value(struct{ RobotsCrawlDelay struct{} }{}).(time.Duration); known {
		note += fmt.Sprint(" ", delay)
	}
	if agent := r.Header.Get("User-Agent"); agent != "" {
		note += " by " + agent
	}
	w.mu.Lock()
	w.log = append(w.log, note)
	w.mu.Unlock()
	select {
	case <-time.After(w.took):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	if w.fails != nil {
		return nil, w.fails
	}
	page, found := w.pages[r.URL.String()]
	recorder := httptest.NewRecorder()
	switch {
	case strings.HasPrefix(page, "http"):
		http.Redirect(recorder, r, page, http.StatusFound)
	case !found:
		recorder.WriteHeader(http.StatusNotFound)
	default:
		fmt.Fprint(recorder, page)
	}
	resp := recorder.Result()
	resp.Request = r
	return resp, nil
}

func newWeb() *web {
	return &web{pages: map[string]string{
		"http://a.test/robots.txt":  "user-agent: foo\ncrawl-delay: 2.5\ndisallow: /private/\n",
		"http://a.test/":            "welcome",
		"http://a.test/out":         "http://b.test/in",
		"http://a.test/hidden":      "http://a.test/private/x",
		"http://b.test/robots.txt":  "http://c.test/robots.txt",
		"http://c.test/robots.txt":  "user-agent: *\ndisallow: /in\n",
		"http://free.test/anything": "x",
	}}
}

func (w *web) client(o robots.Options) (*http.Client, *robotshttp.Transport) {
	transport := robotshttp.NewTransport(w, o)
	return &http.Client{Transport: transport}, transport
}

func TestWhatIsDisallowedIsNotSent(t *testing.T) {
	w := newWeb()
	client, transport := w.client(robots.Options{Agent: "foo"})
	resp, err := client.Get("http://a.test/")
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "welcome", string(text))

	_, err = client.Get("http://me:secret@a.test/private/x")
	require.NotContains(t, err.Error(), "secret")
	_, err = client.Get("http://a.test/private/x")
	require.ErrorIs(t, err, robots.ErrDisallowed)
	var denied *robots.DisallowedError
	require.ErrorAs(t, err, &denied)
	require.Equal(t, 3, denied.Line)
	require.Equal(t, "/private/", denied.Pattern)
	require.Equal(t, "http://a.test/private/x", denied.URL)
	_, err = client.Get("http://free.test/anything")
	require.NoError(t, err)
	require.Equal(t, []string{
		"http://a.test/robots.txt", "http://a.test/ 2.5s",
		"http://free.test/robots.txt", "http://free.test/anything 0s",
	}, w.log)
	require.Equal(t, 2, transport.Cache().Stats().Hosts)
}

// A scheme without robots.txt is a matter of the base.
func TestOtherSchemes(t *testing.T) {
	_, err := (&http.Client{Transport: robotshttp.NewTransport(nil, robots.Options{})}).Get("gopher://a.test/")
	require.ErrorContains(t, err, "unsupported protocol scheme")
	_, err = robotshttp.NewTransport(nil, robots.Options{}).RoundTrip(new(http.Request))
	require.ErrorContains(t, err, "nil Request.URL")
}

// A client that sends the exact bytes of a path has it in Opaque, as package fetch does.
func TestAnOpaqueURLIsChecked(t *testing.T) {
	transport := robotshttp.NewTransport(newWeb(), robots.Options{Agent: "foo"})
	get := func(u url.URL) error {
		u.Scheme, u.Host = "http", "a.test"
		r := (&http.Request{Method: http.MethodGet, URL: &u}).WithContext(t.Context())
		_, err := transport.RoundTrip(r)
		return err
	}
	for _, disallowed := range []url.URL{
		{Opaque: "/private/x"}, {Opaque: "/private/%zz", RawQuery: "q"}, {Opaque: "//a.test/private/x"},
		{Opaque: "/private/x", Path: "/robots.txt"},
	} {
		var denied *robots.DisallowedError
		require.ErrorAs(t, get(disallowed), &denied, "%v", disallowed)
		require.Equal(t, 3, denied.Line)
	}
	for _, allowed := range []url.URL{
		{Opaque: "/"}, {Opaque: "/x?/private/"}, {Opaque: "//a.test/"}, {Opaque: "/robots.txt"},
		{Opaque: "//a.test/robots.txt"},
	} {
		require.NoError(t, get(allowed), "%v", allowed)
	}
	require.ErrorIs(t, get(url.URL{Opaque: ".evil.test/"}), robotstxt.ErrLocate)
}

// TestDotsLeadNowhereElse: servers resolve dot segments, which net/http sends as they are.
func TestDotsLeadNowhereElse(t *testing.T) {
	client, _ := newWeb().client(robots.Options{Agent: "foo"})
	for _, disallowed := range []string{
		"/x/../private/", "/x/%2e%2E/private/x", "/./private/x?a", "/.%2e/private/./", "/x%2f..%2Fprivate/y",
		"/private/../", "/robots.txt/../private/x", "/%zz/../private/.", "//..//private//x",
	} {
		r := &http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "http", Host: "a.test", Opaque: "//a.test" + disallowed}}
		_, err := client.Transport.RoundTrip(r)
		require.ErrorIs(t, err, robots.ErrDisallowed, disallowed)
	}
	for _, allowed := range []string{
		"", "?/../private/", "/x?/../private/", "/x/../private", "/.private/", "/.../private/", "/x/..private/", "/%252e%252e/",
	} {
		resp, err := client.Get("http://a.test" + allowed)
		require.NoError(t, err, allowed)
		require.NoError(t, resp.Body.Close())
	}
}

// TestServersResolveDotsDifferently: the strictest reading of a path counts.
func TestServersResolveDotsDifferently(t *testing.T) {
	w := newWeb()
	w.pages["http://d.test/robots.txt"] = "user-agent: *\ndisallow: /private\ndisallow: /z/secret\ndisallow: /deep/x/y\n" +
		"disallow: /shop;id\ndisallow: /shop%3bq\n"
	client, _ := w.client(robots.Options{Agent: "foo"})
	send := func(target string) error {
		r := &http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "http", Host: "d.test", Opaque: "//d.test" + target}}
		resp, err := client.Transport.RoundTrip(r)
		if err == nil {
			return resp.Body.Close()
		}
		return err
	}
	for _, disallowed := range []string{
		"/y/../private/page", "/y%2fz/../private/page", "/y%2Fz/%2e%2E/private/page", // an escaped slash is not one
		"/y%2fz/../../private/page", "/y%2f..%2fprivate", // or is one
		"/z//../secret/page", "/z//%2e%2e/secret/page", // slashes are not merged
		"/y//../private/page", "/y//z/../../private/page", // or are merged before,
		"/z//a/../secret", "/deep//y/../x//y", // or after
		`/x\..\private`, "/x%5c..%5Cprivate", `/x\y/../private`, `/x/y\..\..\private`, `/x%2f..\private`,
		"/x/..//private", "/x/../private?/../a",
		"/y/..%2fprivate/x", "/a;q%2Fp/..%2Fprivate/x", `/a;\b/..\private/x`, `/a;%5Cb/..%5Cprivate/x`, // params go first
		"/x/..;/private/y", "/x/..;a=b/private", "/.;/private", "/x/%2e%2e;/private", "/x/..%3b/private/y", "/x;a/..;b/private;c/y",
		"/x/..;/shop;id=1", "/x/%2e%2E;y/shop;id", "/x/..%3b/shop%3Bq=1", "/x/..;%2fshop;id", // or stay, as in rules
	} {
		require.ErrorIs(t, send(disallowed), robots.ErrDisallowed, disallowed)
	}
	for _, allowed := range []string{
		"/y%2fz/../public", "/z//../public", `/x\..\public`, "/z/../secret", "/y%2f..private", `/x\private`,
		"/x/..;/public", "/x/.;/private", "/x;/private", "/..;a.private",
		"/y%2fprivate/..", "/x?/../private", "//private", "/x//private",
	} {
		require.NoError(t, send(allowed), allowed)
	}
	r, err := http.NewRequest(http.MethodGet, `http://d.test/x\..\private`, nil)
	require.NoError(t, err)
	_, err = client.Transport.RoundTrip(r)
	require.ErrorIs(t, err, robots.ErrDisallowed)
}

// TestLongURLsWithDots: a server can redirect to a URL of megabytes, of which all readings would be, and each
// is matched with up to 50,000 patterns.
func TestLongURLsWithDots(t *testing.T) {
	w := newWeb()
	client, _ := w.client(robots.Options{Agent: "foo"})
	long := strings.Repeat("a/", 512)
	for _, dotted := range []string{long + "../b", long + "%2e%2fb", long + "..;c/b", "../" + long} {
		_, err := client.Get("http://free.test/" + dotted)
		require.ErrorContains(t, err, "dot segments")
		require.ErrorAs(t, err, new(interface{ Local() bool }))
	}
	require.Empty(t, w.log)
	for _, sent := range []string{long + "b", long + "b?/../", strings.Repeat("a/", 490) + "../b"} {
		resp, err := client.Get("http://free.test/" + sent)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
}

// TestALongURLTakesLittleMemory: a server can redirect to megabytes of slashes, which are as many segments.
func TestALongURLTakesLittleMemory(t *testing.T) {
	client, _ := newWeb().client(robots.Options{Agent: "foo"})
	path := "/;" + strings.Repeat("/", 1<<20)
	r := &http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "http", Host: "free.test", Opaque: path}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := client.Transport.RoundTrip(r)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(20*len(path)))
}

// TestAFailureOfAnotherTenant: a Transport does not fail because the base of another one with the
// same cache has failed in its place.
func TestAFailureOfAnotherTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		_, good := w.client(robots.Options{})
		bad := good.With(roundTrip(func(*http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return nil, errors.New("the disk is full")
		}))
		var group sync.WaitGroup
		for range 10 {
			for _, transport := range []http.RoundTripper{bad, good} {
				group.Go(func() {
					resp, err := (&http.Client{Transport: transport}).Get("http://a.test/page")
					if transport == bad {
						assert.ErrorContains(t, err, "the disk is full")
					} else if assert.NoError(t, err) {
						resp.Body.Close()
					}
				})
			}
		}
		group.Wait()
	})
}

// TestAFailureOfAnotherRequest: a request does not fail because one cannot be sent that was to fetch the
// robots.txt for both. If all fail, none waits for more than a few.
func TestAFailureOfAnotherRequest(t *testing.T) {
	for _, all := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWeb()
			base := roundTrip(func(r *http.Request) (*http.Response, error) {
				if !all && r.Header.Get("User-Agent") != "foo/2" {
					return w.RoundTrip(r)
				}
				time.Sleep(time.Second)
				return nil, errors.New("the proxy is down")
			})
			client := &http.Client{Transport: robotshttp.NewTransport(base, robots.Options{Agent: "foo"})}
			get := func(agent string) error {
				r, err := http.NewRequest(http.MethodGet, "http://a.test/page", nil)
				require.NoError(t, err)
				r.Header.Set("User-Agent", agent)
				resp, err := client.Do(r)
				if err == nil {
					resp.Body.Close()
				}
				return err
			}
			start := time.Now()
			var group sync.WaitGroup
			group.Go(func() { assert.ErrorContains(t, get("foo/2"), "the proxy is down") })
			synctest.Wait()
			for range 20 {
				group.Go(func() {
					if err := get("foo/1"); all {
						assert.ErrorContains(t, err, "the proxy is down")
					} else {
						assert.NoError(t, err)
					}
				})
			}
			group.Wait()
			require.LessOrEqual(t, time.Since(start), 5*time.Second)
		})
	}
}

// TestAnotherAgent: a server that refuses a User-Agent has not said what the crawler may do.
func TestAnotherAgent(t *testing.T) {
	for agent, want := range map[string]string{
		"curl/8": "foo/1.0 (+https://foo.test)", "": "foo/1.0 (+https://foo.test)",
		"Foo/2 (beta)": "Foo/2 (beta)", "Mozilla/5.0 (compatible; foo)": "Mozilla/5.0 (compatible; foo)",
	} {
		w := newWeb()
		client, _ := w.client(robots.Options{Agent: "foo/1.0 (+https://foo.test)"})
		r, err := http.NewRequest(http.MethodGet, "http://a.test/", nil)
		require.NoError(t, err)
		r.Header.Set("User-Agent", agent)
		_, err = client.Do(r)
		require.NoError(t, err)
		require.Equal(t, "http://a.test/robots.txt by "+want, w.log[0])
	}
}

// Each hop is a separate request, and so is each request for a robots.txt.
func TestRedirectsAreCheckedHopByHop(t *testing.T) {
	w := newWeb()
	client, _ := w.client(robots.Options{Agent: "foo"})
	_, err := client.Get("http://a.test/out")
	require.ErrorIs(t, err, robots.ErrDisallowed)
	require.ErrorContains(t, err, "http://b.test/in is disallowed by line 2")
	_, err = client.Get("http://a.test/hidden")
	require.ErrorContains(t, err, "http://a.test/private/x is disallowed by line 3")
	require.Equal(t, []string{
		"http://a.test/robots.txt", "http://a.test/out 2.5s",
		"http://b.test/robots.txt", "http://c.test/robots.txt", "http://a.test/hidden 2.5s",
	}, w.log)
}

// A robots.txt is asked for by the User-Agent of the request that needs it, if that is the crawler's.
func TestRobotsHasTheAgentOfThePage(t *testing.T) {
	w := newWeb()
	client, _ := w.client(robots.Options{Agent: "foo"})
	r, err := http.NewRequest(http.MethodGet, "http://a.test/", nil)
	require.NoError(t, err)
	r.Header.Set("User-Agent", "Foo/1.0 (+https://foo.test)")
	_, err = client.Do(r)
	require.NoError(t, err)
	require.Equal(t, []string{"http://a.test/robots.txt by Foo/1.0 (+https://foo.test)",
		"http://a.test/ 2.5s by Foo/1.0 (+https://foo.test)"}, w.log)
}

// A robots.txt redirects to a page that another host forbids: it is out of reach, and no rule forbids the
// page that needs it.
func TestAForbiddenRedirect(t *testing.T) {
	var asked []string
	base := roundTrip(func(r *http.Request) (*http.Response, error) {
		asked = append(asked, r.URL.String())
		resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}
		switch {
		case r.URL.Path != "/robots.txt":
		case r.URL.Host == "b.test":
			resp.Body = io.NopCloser(strings.NewReader("User-agent: *\nDisallow: /private"))
		default:
			resp.StatusCode = http.StatusFound
			resp.Header.Set("Location", "http://b.test/private")
		}
		return resp, nil
	})
	client := &http.Client{Transport: robotshttp.NewTransport(base, robots.Options{Agent: "foo"})}
	_, err := client.Get("http://b.test/")
	require.NoError(t, err)
	for range 2 {
		_, err = client.Get("http://a.test/page")
		require.ErrorIs(t, err, robots.ErrUnreachable)
		require.NotErrorIs(t, err, robots.ErrDisallowed)
		require.False(t, errors.As(err, new(*robots.DisallowedError)))
	}
	require.Equal(t, []string{"http://b.test/robots.txt", "http://b.test/", "http://a.test/robots.txt"}, asked)
}

// A robots.txt redirects to a long URL with dot segments, of its own host or another one, or to a host that is
// out of reach, which no rule forbids.
func TestRedirectsThatAreNotFollowed(t *testing.T) {
	long := strings.Repeat("a/", 512) + "..;y/x" // plain ones are resolved
	w := newWeb()
	w.pages["http://own.test/robots.txt"] = "http://own.test/" + long
	w.pages["http://other.test/robots.txt"] = "http://free.test/" + long
	w.pages["http://lost.test/robots.txt"] = "http://down.test/x"
	base := roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Host == "down.test" {
			return nil, io.ErrUnexpectedEOF
		}
		return w.RoundTrip(r)
	})
	client := &http.Client{Transport: robotshttp.NewTransport(base, robots.Options{Agent: "foo"})}
	_, err := client.Get("http://down.test/")
	require.ErrorIs(t, err, robots.ErrUnreachable)
	for host, want := range map[string]string{
		"own": "dot segments", "other": "dot segments", "lost": "robots.txt of down.test, to which it redirects, cannot be fetched",
	} {
		_, err := client.Get("http://" + host + ".test/page")
		require.ErrorIs(t, err, robots.ErrUnreachable)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "line 0")
	}
	require.Len(t, w.log, 3)
}

// A caller that requests a robots.txt gets it, without another request before it.
func TestTheFileItself(t *testing.T) {
	w := newWeb()
	client, _ := w.client(robots.Options{Agent: "foo"})
	resp, err := client.Get("http://c.test/robots.txt")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, []string{"http://c.test/robots.txt"}, w.log)
}

func TestAHostOutOfReach(t *testing.T) {
	w := newWeb()
	w.fails = io.ErrUnexpectedEOF
	client, transport := w.client(robots.Options{})
	for n := range 3 {
		_, err := client.Get("http://a.test/")
		require.ErrorIs(t, err, robots.ErrUnreachable)
		require.NotErrorIs(t, err, robots.ErrDisallowed, "nobody has forbidden it")
		require.Equal(t, n == 0, errors.Is(err, io.ErrUnexpectedEOF), "the cause, for the request that tried")
		require.ErrorContains(t, err, "until its robots.txt can be: unexpected EOF; next attempt at ")
		var denied *robots.UnreachableError
		require.ErrorAs(t, err, &denied)
		entry, _ := transport.Cache().Entry("http://a.test/")
		require.Equal(t, entry.Expires, denied.Retry)
	}
	require.Len(t, w.log, 1, "it is left alone for a while")

	closed := errors.New("the layer below is closed")
	w = newWeb()
	w.fails = closed
	client, transport = w.client(robots.Options{})
	_, err := client.Get("http://a.test/")
	require.ErrorIs(t, err, closed)
	require.Zero(t, transport.Cache().Stats().InFlight)
	w.fails = nil
	_, err = client.Get("http://a.test/")
	require.NoError(t, err, "that was not the host's failure")
}

func TestManyRequestsNeedOneFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.took = time.Second
		client, _ := w.client(robots.Options{Agent: "foo"})
		impatient, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				ctx := t.Context()
				if i%2 == 0 {
					ctx = impatient
				}
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://a.test/", nil)
				assert.NoError(t, err)
				_, err = client.Do(r)
				if i%2 == 0 {
					assert.ErrorIs(t, err, context.DeadlineExceeded)
				} else {
					assert.NoError(t, err)
				}
			})
		}
		wg.Wait()
		asked := 0
		for _, line := range w.log {
			if strings.Contains(line, "robots") {
				asked++
			}
		}
		require.LessOrEqual(t, asked, 2, "once more, if the first had no patience")
		require.Equal(t, 10, len(w.log)-asked)
	})
}

// A body notes that it was closed.
type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error {
	b.closed = true
	return nil
}

// A RoundTripper must close the body, whatever happens to the request.
func TestBodiesOfRequestsAreClosed(t *testing.T) {
	_, transport := newWeb().client(robots.Options{Agent: "foo"})
	for _, url := range []string{"http://a.test/private/x", "http://:80/"} {
		sent := &body{Reader: strings.NewReader("text")}
		r, err := http.NewRequest(http.MethodPost, url, sent)
		require.NoError(t, err)
		_, err = transport.RoundTrip(r)
		require.Error(t, err)
		require.True(t, sent.closed)
	}
}

// A RoundTripper must not change the request.
func TestRequestsStayAsTheyAre(t *testing.T) {
	_, transport := newWeb().client(robots.Options{Agent: "foo"})
	r, err := http.NewRequest(http.MethodGet, "http://a.test/", nil)
	require.NoError(t, err)
	_, err = transport.RoundTrip(r)
	require.NoError(t, err)
	require.Empty(t, r.Header)
	require.Nil(t, r.Context().Value(struct{ RobotsCrawlDelay struct{} }{}))
}

// TestTheTraceIsThatOfThePage: the request for robots.txt is not the one that a client traces, and what
// layers below are told about a page does not hold for it.
func TestTheTraceIsThatOfThePage(t *testing.T) {
	type foreign struct{}
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	var seen []any
	base := roundTrip(func(r *http.Request) (*http.Response, error) {
		ctx := r.Context()
		_, delay := ctx.Value(struct{ RobotsCrawlDelay struct{} }{}).(time.Duration)
		_, body := ctx.Value(struct{ EncodedBody struct{} }{}).(bool)
		seen = append(seen, fmt.Sprintf("%s %t %t %v", r.URL.Path, delay, body, ctx.Value(foreign{})))
		return http.DefaultTransport.RoundTrip(r)
	})
	events := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		GetConn:      func(string) { events++ },
		ConnectStart: func(string, string) { events++ },
		GotConn:      func(httptrace.GotConnInfo) { events++ },
	})
	ctx = context.WithValue(ctx, struct{ EncodedBody struct{} }{}, true)
	ctx = context.WithValue(ctx, foreign{}, "passed on")
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/page", nil)
	require.NoError(t, err)
	resp, err := robotshttp.NewTransport(base, robots.Options{Agent: "foo"}).RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, []any{"/robots.txt false false passed on", "/page true true passed on"}, seen)
	require.Equal(t, 2, events, "a connection is used again")
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestTenants has transports with a base each, which share what they know.
func TestTenants(t *testing.T) {
	w, other := newWeb(), newWeb()
	_, transport := w.client(robots.Options{Agent: "foo"})
	tenant := transport.With(other)
	require.Same(t, transport.Cache(), tenant.Cache())
	for _, through := range []http.RoundTripper{tenant, transport} {
		resp, err := (&http.Client{Transport: through}).Get("http://a.test/")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	require.Equal(t, []string{"http://a.test/robots.txt", "http://a.test/ 2.5s"}, other.log, "each uses its own base")
	require.Equal(t, []string{"http://a.test/ 2.5s"}, w.log)
}

// TestTimeoutsAreTimeouts for whoever asks an error of an http.Client.
func TestTimeoutsAreTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.took = time.Minute
		client, transport := w.client(robots.Options{Agent: "foo"})
		client.Timeout = time.Second
		_, err := client.Get("http://a.test/")
		require.True(t, os.IsTimeout(err), "%v", err)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go func() { _, _ = transport.Cache().Load(t.Context(), "http://a.test/") }()
		synctest.Wait()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://a.test/", nil)
		require.NoError(t, err)
		_, err = (&http.Client{Transport: transport}).Do(r)
		require.True(t, os.IsTimeout(err), "%v", err)
		time.Sleep(2 * time.Minute)
	})
}

// TestOverARealServer closes its connections through the client.
func TestOverARealServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			fmt.Fprint(w, "User-agent: *\nDisallow: /private/\n")
		}
	}))
	defer server.Close()
	client := &http.Client{Transport: robotshttp.NewTransport(nil, robots.Options{
		Agent: "foo", Client: &http.Client{Timeout: time.Minute},
	})}
	_, err := client.Get(server.URL + "/private/x")
	require.ErrorIs(t, err, robots.ErrDisallowed)
	resp, err := client.Get(server.URL + "/")
	require.NoError(t, err)
	resp.Body.Close()
	client.CloseIdleConnections()
	(&http.Client{Transport: robotshttp.NewTransport(newWeb(), robots.Options{})}).CloseIdleConnections()
}

// An empty is a transport without any cost.
type empty struct{ resp http.Response }

func (e *empty) RoundTrip(*http.Request) (*http.Response, error) { return &e.resp, nil }

func BenchmarkRoundTrip(b *testing.B) {
	r, err := http.NewRequest(http.MethodGet, "http://free.test/anything?a=b", nil)
	require.NoError(b, err)
	bare := &empty{resp: http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody}}
	over := robotshttp.NewTransport(bare, robots.Options{Agent: "foo"})
	for name, rt := range map[string]http.RoundTripper{"bare": bare, "robots": over} {
		b.Run("transport="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = rt.RoundTrip(r)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}

// TestRedirectsToWhatIsForbidden: a site cannot have us ask another one for what that forbids. Its own rules
// may be at a place that they forbid.
func TestRedirectsToWhatIsForbidden(t *testing.T) {
	var asked []string
	location := ""
	transport := robotshttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
		asked = append(asked, r.URL.String())
		resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r}
		resp.Body = io.NopCloser(strings.NewReader("User-agent: *\nDisallow: /private\n"))
		if r.URL.Path == "/robots.txt" && r.URL.Host != "a.test" {
			resp.StatusCode = http.StatusFound
			resp.Header.Set("Location", location)
		}
		return resp, nil
	}), robots.Options{})
	get := func(url string) error {
		_, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, url, nil))
		return err
	}
	require.NoError(t, get("http://a.test/"))
	location = "http://a.test/private/delete?id=1"
	require.ErrorIs(t, get("http://b.test/"), robots.ErrUnreachable)
	require.NotContains(t, asked, location)
	location = "http://a.test/robots/of-all-sites.txt"
	require.NoError(t, get("http://c.test/"))
	require.Contains(t, asked, location)
	location = "/private/robots.txt"
	require.NoError(t, get("http://d.test/"))
	require.ErrorIs(t, get("http://d.test/private/x"), robots.ErrDisallowed)
}
