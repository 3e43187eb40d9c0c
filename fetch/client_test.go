package fetch_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/stretchr/testify/require"
)

// Concurrent Gets share a client, its connections and its decoders; each must get its own result.
// The test is also meant for the race detector.
func TestConcurrentGets(t *testing.T) {
	base := listen(t, func(s *session) {
		for head := s.request(); head != ""; head = s.request() {
			name, _, _ := strings.Cut(strings.TrimPrefix(head, "GET /"), " ")
			body, coding := "page "+name, "identity"
			if len(name)%2 == 0 {
				body, coding = zipped(t, body), "gzip"
			}
			s.say(fmt.Sprintf("%sX-Name: %s\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s",
				ok, name, coding, len(body), body))
		}
	})
	c := newClient(t, fetch.Options{MaxIdlePerHost: 8})
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for n := range 40 {
				name := fmt.Sprint(worker*100 + n)
				r, err := c.Get(t.Context(), base+"/"+name)
				if err != nil {
					t.Error(err)
					return
				}
				if string(r.Body) != "page "+name || !r.HeadExact ||
					!strings.Contains(string(r.Head), "X-Name: "+name+"\r\n") ||
					!strings.HasPrefix(string(r.RequestHead), "GET /"+name+" ") {
					t.Errorf("%s: %q %q %q", name, r.RequestHead, r.Head, r.Body)
				}
			}
		})
	}
	wg.Wait()
}

// The limit on a head is exact, and interim responses count.
func TestMaxHeaderToTheByte(t *testing.T) {
	const rest = "Content-Length: 2\r\n\r\n"
	for _, interim := range []string{"", "HTTP/1.1 103 Early Hints\r\n\r\n"} {
		for length := 999; length <= 1001; length++ {
			pad := length - len(interim) - len(ok) - len(rest) - len("X: \r\n")
			head := ok + "X: " + strings.Repeat("y", pad) + "\r\n" + rest
			base := listen(t, says(interim+head+"ok"))
			c := newClient(t, fetch.Options{MaxHeader: 1000})
			if length > 1000 {
				require.Equal(t, fetch.HeaderTooLarge, fails(t, c, base).Kind)
				continue
			}
			r := get(t, c, base)
			require.Equal(t, head, string(r.Head))
			require.Equal(t, "ok", string(r.Body))
		}
	}
}

// The limit on the number of fields is exact, however they are split into pieces.
func TestMaxFieldsToTheField(t *testing.T) {
	const interim = "HTTP/1.1 103 Early Hints\r\nX: y\r\nX: y\r\n\r\n"
	for _, tt := range []struct {
		before string
		fields int // including the last field
		fits   bool
	}{{"", fetch.MaxFields, true}, {"", fetch.MaxFields + 1, false},
		{interim, fetch.MaxFields - 2, true}, {interim, fetch.MaxFields - 1, false}} {
		head := ok + strings.Repeat("X: y\r\n", tt.fields-1) + "Content-Length: 2\r\n\r\n"
		for _, piece := range []int{7, 1000, len(tt.before + head)} {
			base := listen(t, func(s *session) {
				s.request()
				for piece := range slices.Chunk([]byte(tt.before+head+"ok"), piece) {
					s.say(string(piece))
				}
			})
			c := newClient(t, fetch.Options{})
			if !tt.fits {
				e := fails(t, c, base)
				require.Equal(t, fetch.HeaderTooLarge, e.Kind, "%v", e)
				require.False(t, e.Temporary())
				continue
			}
			require.Equal(t, "ok", string(get(t, c, base).Body))
		}
	}
}

// A negative value disables a limit, where that makes sense.
func TestNegativeOptionsAreOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, stop := inMemory(t, fetch.Options{
			Timeout: -1, ConnectTimeout: -1, HeadTimeout: -1, MinRate: -1,
			MaxBody: -1, MaxRatio: -1, MaxHeader: -1,
			Resolve: func(ctx context.Context, host string) ([]netip.Addr, error) {
				time.Sleep(time.Hour)
				return resolveTo("127.0.0.1")(ctx, host)
			},
		}, func(s *session) {
			s.request()
			time.Sleep(time.Hour)
			s.say(ok + "\r\n")
			time.Sleep(time.Hour)
			s.say(strings.Repeat("x", fetch.DefaultMaxBody+1))
		})
		defer stop()
		start := time.Now()
		r := get(t, c, "http://a.test/")
		require.Equal(t, fetch.Whole, r.Truncated)
		require.Len(t, r.Body, fetch.DefaultMaxBody+1)
		require.Equal(t, 3*time.Hour, time.Since(start))
	})
}

// The times of an exchange are exact, thanks to fake time.
func TestTiming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, stop := inMemory(t, fetch.Options{
			Resolve: func(ctx context.Context, host string) ([]netip.Addr, error) {
				time.Sleep(time.Second)
				return resolveTo("127.0.0.1")(ctx, host)
			},
		}, func(s *session) {
			for s.request() != "" {
				time.Sleep(2 * time.Second)
				s.say(ok + "Retry-After: Sat, 01 Jan 2000 00:01:00 GMT\r\n")
				time.Sleep(3 * time.Second)
				s.say("Content-Length: 2\r\n\r\no")
				time.Sleep(4 * time.Second)
				s.say("k")
			}
		})
		defer stop()
		// A bubble's clock starts at midnight of the year 2000.
		for n, resolve := range []time.Duration{time.Second, 0} {
			start := time.Now()
			r := get(t, c, "http://a.test/")
			at := r
			require.Equal(t, n > 0, r.Reused)
			require.Equal(t, start, at.Start)
			require.Equal(t, 2*time.Second, at.Wait())
			require.Equal(t, resolve, at.WroteRequest.Sub(start))
			require.Equal(t, resolve+2*time.Second, at.FirstByte.Sub(start))
			require.Equal(t, resolve+9*time.Second, time.Since(start))
			require.Zero(t, new(fetch.Response).Wait(), "a missing time gives no duration")
			require.Equal(t, 60*time.Second, at.FirstByte.Add(r.RetryAfter).Sub(midnight2000))
		}
	})
}

func TestCookiesNeedAJar(t *testing.T) {
	var asked []string
	base := listen(t, func(s *session) {
		for head := s.request(); head != ""; head = s.request() {
			asked = append(asked, head)
			s.say(ok + "Set-Cookie: a=b; Path=/in\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	for _, opts := range []fetch.Options{{}, {Jar: jar}} {
		c := newClient(t, opts)
		for _, path := range []string{"/in/x", "/in/y", "/out", "/in/%zz"} {
			get(t, c, base+path)
		}
		c.CloseIdleConnections()
	}
	require.Len(t, asked, 8)
	for n, head := range asked {
		require.Equal(t, n == 5, strings.Contains(head, "\r\nCookie: a=b\r\n"), "%d: %s", n, head)
	}
}

// The jar adds to the cookies of a request, and replaces none.
func TestCookiesOfTheRequestAreKept(t *testing.T) {
	base, asked := heads(t)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	at, err := url.Parse(base)
	require.NoError(t, err)
	jar.SetCookies(at, []*http.Cookie{{Name: "c", Value: "3"}})
	c := newClient(t, fetch.Options{Jar: jar})
	_, err = c.Do(t.Context(), fetch.Request{URL: base, Header: http.Header{"Cookie": {"a=1", "b=2"}}})
	require.NoError(t, err)
	require.Contains(t, (*asked)[0], "\r\nCookie: a=1; b=2; c=3\r\n")
}

func TestNotModified(t *testing.T) {
	base := listen(t, func(s *session) {
		for head := s.request(); head != ""; head = s.request() {
			if strings.Contains(head, "If-None-Match") {
				s.say("HTTP/1.1 304 Not Modified\r\n\r\n")
				continue
			}
			s.say(ok + "Content-Length: 2\r\n\r\nok")
		}
	})
	c := newClient(t, fetch.Options{})
	require.False(t, get(t, c, base).NotModified())
	r, err := c.Do(t.Context(), fetch.Request{URL: base, Validators: fetch.Validators{ETag: `"x"`}})
	require.NoError(t, err)
	require.True(t, r.NotModified())
}

var midnight2000 = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// The caller's wrapper sees each request as it is sent, and can add to it.
func TestWrap(t *testing.T) {
	base := listen(t, says(ok+"\r\n"))
	base2, opts2 := tlsServer(t, true) // its head is synthesized
	for base, opts := range map[string]fetch.Options{base: {}, base2: opts2} {
		var asked string
		opts.Wrap = func(next http.RoundTripper) http.RoundTripper {
			return tripper(func(req *http.Request) (*http.Response, error) {
				asked = req.Method + " " + req.Host
				signed := *req
				signed.Header = req.Header.Clone()
				signed.Header.Set("Signature", "x")
				return next.RoundTrip(&signed)
			})
		}
		r := get(t, newClient(t, opts), base)
		_, host, _ := strings.Cut(base, "//")
		require.Equal(t, "GET "+host, asked)
		require.Contains(t, string(r.RequestHead), "\r\nSignature: x\r\n", r.Proto)
	}
}

// A response is that of the request that was sent: to the client, which need not know of one that was
// signed, and to a layer above, which has to know of a redirect that was followed.
func TestRequestOfAResponse(t *testing.T) {
	base := listen(t, func(s *session) {
		answer := ok + "\r\npage"
		switch method, rest, _ := strings.Cut(s.request(), " "); {
		case strings.HasPrefix(rest, "/old "):
			answer = "HTTP/1.1 302 Found\r\nLocation: /new\r\n\r\n"
		case method == http.MethodPost:
			answer = "HTTP/1.1 303 See Other\r\nLocation: /new\r\n\r\n"
		}
		s.say(answer)
	})
	c := newClient(t, fetch.Options{Wrap: func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(req *http.Request) (*http.Response, error) {
			return (&http.Client{Transport: next}).Do(req.Clone(req.Context()))
		})
	}})
	for _, tt := range []struct {
		method, path string
		same         bool
	}{
		{http.MethodGet, "/new", true}, {http.MethodGet, "/old", false}, {http.MethodPost, "/new", false},
	} {
		req := request(t, base+tt.path)
		req.Method, req.URL.User = tt.method, url.UserPassword("me", "secret")
		resp, err := c.Transport().RoundTrip(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, tt.same, resp.Request == req)
		require.Equal(t, http.MethodGet, resp.Request.Method)
		require.Equal(t, "/new", resp.Request.URL.Path)
		require.NotContains(t, resp.Request.Header, "Accept-Encoding", "of the Client")
		require.NoError(t, resp.Request.Context().Err())
	}
}

// A body of no bytes has no coding, even if its end comes later. The head says so as it came.
func TestTransportLeavesEmptyBodies(t *testing.T) {
	c := newClient(t, fetch.Options{Wrap: func(http.RoundTripper) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, ProtoMajor: 2, Request: r, Body: io.NopCloser(strings.NewReader("")),
				Header: http.Header{"Content-Encoding": {"gzip"}, "Content-Length": {"0"}}}, nil
		})
	}})
	resp, err := c.Transport().RoundTrip(request(t, "http://a.test/"))
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Empty(t, text)
	require.Zero(t, resp.ContentLength)
	require.Equal(t, "gzip", resp.Header.Get("Content-Encoding"))
	require.False(t, resp.Uncompressed)
	require.NoError(t, resp.Body.Close())
}

// A 304 has the fields of the page and nothing to decode, whichever HTTP it comes over.
func TestTransportLeavesA304(t *testing.T) {
	urls, opts := both(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(http.StatusNotModified)
	})
	opts.TLSConfig.NextProtos = nil
	c := newClient(t, opts)
	for _, url := range urls {
		resp, err := c.Transport().RoundTrip(request(t, url))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, "gzip", resp.Header.Get("Content-Encoding"), url)
		require.Zero(t, resp.ContentLength)
		require.False(t, resp.Uncompressed)
	}
}

// The caller's wrapper may answer by itself, without a server.
func TestWrapThatAnswers(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"Sat, 01 Jan 2000 00:00:00 GMT": 0, "7": 7 * time.Second,
	} {
		c := newClient(t, fetch.Options{Wrap: func(http.RoundTripper) http.RoundTripper {
			return tripper(func(*http.Request) (*http.Response, error) {
				return &http.Response{Proto: "HTTP/1.1", Status: "503 Busy", StatusCode: 503,
					Header: http.Header{"Retry-After": {value}}, Body: http.NoBody}, nil
			})
		}})
		r := get(t, c, "http://a.test/")
		require.Equal(t, 503, r.Status)
		require.Equal(t, want, r.RetryAfter, value)
		require.Zero(t, r.Attempts)
		require.False(t, r.HeadExact)
		require.Equal(t, "HTTP/1.1 503 Busy\r\nRetry-After: "+value+"\r\n\r\n", string(r.Head))
	}
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// Released memory is reused, and does not leak into later responses.
func TestRelease(t *testing.T) {
	base := listen(t, func(s *session) {
		for n := 0; s.request() != ""; n++ {
			body := zipped(t, strings.Repeat(fmt.Sprint(n%10), 1000+n))
			if n%3 == 0 {
				s.say(fmt.Sprintf("%sContent-Length: 4\r\n\r\nbare", ok))
				continue
			}
			s.say(fmt.Sprintf("%sContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s",
				ok, len(body), body))
		}
	})
	c := newClient(t, fetch.Options{})
	for n := range 30 {
		r := get(t, c, base)
		want := strings.Repeat(fmt.Sprint(n%10), 1000+n)
		if n%3 == 0 {
			want = "bare"
		}
		require.Equal(t, want, string(r.Body), "%d", n)
		c.Release(r)
		require.Nil(t, r.Raw)
		require.Nil(t, r.Body)
		c.Release(r) // a second Release does nothing
	}
	c.Release(nil)
}

// Copies of a Response share its memory, which is returned once, whoever comes first: else two later
// responses would share a buffer.
func TestReleaseOfCopies(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat(r.URL.RawQuery, 3000))
	}))
	defer server.Close()
	c := newClient(t, fetch.Options{MaxMemory: 64 << 20})
	for range 200 {
		r := get(t, c, server.URL+"/?x")
		var group sync.WaitGroup
		start := make(chan struct{})
		for range 4 {
			same := *r
			group.Go(func() {
				<-start
				c.Release(&same)
			})
		}
		close(start)
		group.Wait()
		a, b := get(t, c, server.URL+"/?a"), get(t, c, server.URL+"/?b")
		require.Equal(t, strings.Repeat("a", 3000), string(a.Body))
		require.Equal(t, strings.Repeat("b", 3000), string(b.Body))
		c.Release(a)
		c.Release(b)
	}
}

// TestHooks checks the arguments of Options.Dial and Options.Resolve.
func TestHooks(t *testing.T) {
	tests := []struct{ url, host, addr string }{
		{"http://A.test/", "a.test", "1.1.1.1:80"},
		{"https://b.test./", "b.test.", "1.1.1.1:443"},
		{"http://ü.test:8080/", "xn--tda.test", "1.1.1.1:8080"},
		{"http://1.0.0.1/", "", "1.0.0.1:80"},
		{"https://[2606:4700::1]/", "", "[2606:4700::1]:443"},
	}
	for _, tt := range tests {
		var host string
		var dialed []string
		c := newClient(t, fetch.Options{
			UserAgent: "testbot (bot@a.test)",
			Resolve: func(ctx context.Context, name string) ([]netip.Addr, error) {
				host = name
				return resolveTo("1.1.1.1")(ctx, name)
			},
			Dial: recordDial(&dialed),
		})
		require.ErrorIs(t, fails(t, c, tt.url), errDialed)
		require.Equal(t, tt.host, host, tt.url)
		require.Equal(t, []string{tt.addr}, dialed, tt.url)
	}
}

// A proxy would do the dialing, and Reach would check the proxy's address, not the server's.
func TestEnvironmentProxyIsIgnored(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, "http://2.2.2.2:3128")
	}
	var dialed []string
	c := newClient(t, fetch.Options{
		UserAgent: "testbot (bot@a.test)", Resolve: resolveTo("1.1.1.1"), Dial: recordDial(&dialed),
	})
	require.ErrorIs(t, fails(t, c, "http://a.test/"), errDialed)
	require.ErrorIs(t, fails(t, c, "https://a.test/"), errDialed)
	require.Equal(t, []string{"1.1.1.1:80", "1.1.1.1:443"}, dialed)
}
