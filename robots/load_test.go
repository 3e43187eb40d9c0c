package robots

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/httpctx"
	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

// A web is a transport that answers after a while, and records its requests with their times.
type web struct {
	mu      sync.Mutex
	began   time.Time
	log     []string
	took    time.Duration
	answers map[string]func(r *http.Request) (*http.Response, error)
}

func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.log = append(w.log, fmt.Sprint(time.Since(w.began), " ", r.URL))
	w.mu.Unlock()
	select {
	case <-time.After(w.took):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	if answer := w.answers[r.URL.String()]; answer != nil {
		return answer(r)
	}
	return nil, &net.OpError{Op: "dial", Err: errors.New("no route to host")}
}

// says returns an answer with that content.
func says(status int, header http.Header, body string) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) {
		h := header.Clone()
		if h == nil {
			h = http.Header{}
		}
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

func newWeb(took time.Duration) *web {
	return &web{took: took, began: time.Now(),
		answers: map[string]func(*http.Request) (*http.Response, error){
			where:                      says(200, nil, noAs),
			"http://r.test/robots.txt": says(301, fields("Location", where), ""),
		}}
}

// cache returns one that asks the web.
func (w *web) cache(o Options) *Cache {
	o.Client = &http.Client{Transport: w}
	return NewCache(o)
}

func TestManyWhoAskCostOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(time.Second)
		c := w.cache(Options{})
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() {
				allowed, err := c.Allowed(t.Context(), page)
				if err != nil || allowed {
					t.Error("wrong answer", allowed, err)
				}
			})
		}
		wg.Wait()
		require.Equal(t, []string{"0s " + where}, w.log)
		require.Equal(t, time.Second, time.Since(w.began))
	})
}

func TestLoadFollowsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(time.Second)
		c := w.cache(Options{})
		load := func(url string) robotstxt.Rules {
			rules, err := c.Load(t.Context(), url)
			require.NoError(t, err)
			return rules
		}
		require.False(t, load("http://r.test/a").Allowed("/a"))
		require.True(t, load("http://r.test/a").Allowed("/b"))
		time.Sleep(24*time.Hour - 1)
		load("http://r.test/a")
		time.Sleep(time.Nanosecond)
		load("http://r.test/a")
		require.False(t, load("http://down.test/").Allowed("/a"))
		time.Sleep(5 * time.Minute)
		load("http://down.test/")
		load("http://down.test/")
		require.Equal(t, []string{
			"0s http://r.test/robots.txt", "1s " + where,
			"24h0m2s http://r.test/robots.txt", "24h0m3s " + where,
			"24h0m4s http://down.test/robots.txt", "24h5m5s http://down.test/robots.txt",
		}, w.log)
	})
}

// What is sent: the crawler's name, and the validators of the copy.
func TestLoadRevalidates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(0)
		var sent []http.Header
		w.answers[where] = func(r *http.Request) (*http.Response, error) {
			sent = append(sent, r.Header.Clone())
			if r.Header.Get("If-None-Match") != "" {
				return says(304, nil, "")(r)
			}
			return says(200, fields("ETag", `"1"`, "Last-Modified", "Sat, 01 Jun 2024 00:00:00 GMT"), noAs)(r)
		}
		c := w.cache(Options{Agent: "foo/1.0 (+https://foo.test)"})
		for range 2 {
			allowed, err := c.Allowed(t.Context(), page)
			require.NoError(t, err)
			require.False(t, allowed)
			time.Sleep(24 * time.Hour)
		}
		require.Equal(t, []http.Header{
			fields("User-Agent", "foo/1.0 (+https://foo.test)"),
			fields("User-Agent", "foo/1.0 (+https://foo.test)", "If-None-Match", `"1"`,
				"If-Modified-Since", "Sat, 01 Jun 2024 00:00:00 GMT"),
		}, sent)
	})
}

// A caller that gives up must not fail the others, nor count as a failure of the host.
func TestLoadSurvivesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(10 * time.Second)
		c := w.cache(Options{})
		first, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			allowed, err := c.Allowed(first, page)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.False(t, allowed)
			assert.Equal(t, 4*time.Second, time.Since(w.began))
		})
		synctest.Wait()
		for range 10 {
			wg.Go(func() {
				rules, err := c.Load(t.Context(), page)
				assert.NoError(t, err)
				assert.True(t, rules.Allowed("/b"))
				assert.Equal(t, 14*time.Second, time.Since(w.began))
			})
		}
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Load(impatient, page)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		wg.Wait()
		require.Equal(t, []string{"0s " + where, "4s " + where}, w.log)
		entry, _ := c.Entry(page)
		require.Zero(t, entry.Failures)
	})
}

// TestADeadlineFailsOnlyItsCaller: a layer below that knows when the host may be asked fails a
// request whose deadline is earlier at once, before that has passed. The others have more time.
func TestADeadlineFailsOnlyItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(time.Second)
		answer := w.answers[where]
		w.answers[where] = func(r *http.Request) (*http.Response, error) {
			if _, limited := r.Context().Deadline(); limited {
				return nil, fmt.Errorf("too late: %w", context.DeadlineExceeded)
			}
			return answer(r)
		}
		c := w.cache(Options{})
		limited, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := c.Allowed(limited, page)
			assert.ErrorContains(t, err, "too late")
			assert.Equal(t, time.Second, time.Since(w.began))
		})
		synctest.Wait()
		for range 10 {
			wg.Go(func() {
				rules, err := c.Load(t.Context(), page)
				assert.NoError(t, err)
				assert.True(t, rules.Allowed("/b"))
			})
		}
		wg.Wait()
		require.Len(t, w.log, 2)
	})
}

// TestOurOwnFailuresAreNotTheHosts: a failure of this machine says nothing about the host.
func TestOurOwnFailuresAreNotTheHosts(t *testing.T) {
	w := newWeb(0)
	failures := func(failure error) (int, error) {
		c := w.cache(Options{})
		w.answers[where] = func(*http.Request) (*http.Response, error) { return nil, failure }
		allowed, err := c.Allowed(t.Context(), page)
		require.False(t, allowed)
		entry, known := c.Entry(page)
		require.Equal(t, err == nil, known)
		return entry.Failures, err
	}
	for _, ours := range []error{
		errors.New("the queue below is closed"),
		&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)},
		&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ENETUNREACH)},
		&net.OpError{Op: "dial", Err: &net.DNSError{Err: "server misbehaving", IsTemporary: true}},
		&net.OpError{Op: "proxyconnect", Err: syscall.ECONNREFUSED},
		&net.OpError{Op: "proxyconnect", Err: &net.DNSError{Err: "no such host", IsNotFound: true}},
	} {
		n, err := failures(ours)
		require.ErrorIs(t, err, ours)
		require.Zero(t, n)
	}
	for _, inBody := range []struct {
		error
		n int // failures of the host
	}{{syscall.ENETDOWN, 0}, {syscall.ENOBUFS, 0}, {syscall.ECONNRESET, 1}} {
		c := w.cache(Options{})
		w.answers[where] = func(*http.Request) (*http.Response, error) {
			broken := iotest.ErrReader(&net.OpError{Op: "read", Err: inBody.error})
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(broken)}, nil
		}
		_, err := c.Load(t.Context(), page)
		entry, _ := c.Entry(page)
		require.Equal(t, inBody.n, entry.Failures, inBody.error)
		require.Equal(t, inBody.n == 0, errors.Is(err, inBody.error))
	}
	for _, theirs := range []error{
		io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNREFUSED, syscall.ECONNRESET,
		syscall.EHOSTUNREACH, &net.DNSError{Err: "no such host", IsNotFound: true},
	} {
		n, err := failures(&net.OpError{Op: "read", Err: theirs})
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
}

// A refusal is the error of a layer that sends nothing, such as a guard.
type refusal struct{ error }

func (refusal) Local() bool     { return true }
func (r refusal) Unwrap() error { return r.error }

// TestWhereARedirectLeadsIsTheHostsDoing: a redirect that a layer below refuses is not followed again for
// each page. Our own failures are still ours, and the host is not asked again where they lead.
func TestWhereARedirectLeadsIsTheHostsDoing(t *testing.T) {
	w := newWeb(0)
	load := func(failure error) (asked int, err error) {
		c := w.cache(Options{})
		w.answers[where] = func(*http.Request) (*http.Response, error) { return nil, failure }
		w.log = nil
		for range 10 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			_, err = c.Allowed(ctx, "http://r.test/a")
			cancel()
		}
		require.Contains(t, w.log[0], "r.test")
		entry, known := c.Entry("http://r.test/a")
		require.Equal(t, err == nil, known)
		require.Equal(t, err == nil, entry.Failures == 1)
		return len(w.log) - 1, err
	}
	for _, theirs := range []error{
		refusal{errors.New("10.0.0.1 is refused")},
		errors.New("the transport knows no such port"),
		&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", IsNotFound: true}},
		&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded},
	} {
		asked, err := load(theirs)
		require.NoError(t, err)
		require.Equal(t, 1, asked, theirs)
	}
	for _, ours := range []error{
		&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)},
		&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ENETUNREACH)},
		&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EADDRNOTAVAIL)},
		&net.OpError{Op: "dial", Err: &net.DNSError{Err: "server misbehaving", IsTemporary: true}},
		&net.OpError{Op: "dial", Err: &net.DNSError{Err: "i/o timeout", IsTimeout: true}},
		&net.OpError{Op: "proxyconnect", Err: syscall.ECONNREFUSED},
		refusal{context.DeadlineExceeded}, // the deadline of the caller is too early for a layer below
	} {
		asked, err := load(ours)
		require.ErrorIs(t, err, ours)
		require.Equal(t, 10, asked)
	}
	w.answers[where] = func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, refusal{r.Context().Err()}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	c := w.cache(Options{})
	_, err := c.Allowed(ctx, "http://r.test/a")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, known := c.Entry("http://r.test/a")
	require.False(t, known)
}

// TestARedirectIsRemembered: who could not follow it does not ask for it again, until it is old. Whatever
// the host at its end answers, the next request begins anew.
func TestARedirectIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(0)
		paused := true
		answer := w.answers[where]
		w.answers[where] = func(r *http.Request) (*http.Response, error) {
			if paused {
				return nil, refusal{context.DeadlineExceeded}
			}
			return answer(r)
		}
		c := w.cache(Options{MaxRetry: time.Hour})
		allowed := func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			allowed, err := c.Allowed(ctx, "http://r.test/b")
			require.Equal(t, paused, err != nil)
			return allowed
		}
		for range 3 {
			require.False(t, allowed())
		}
		time.Sleep(time.Hour)
		require.False(t, allowed())
		paused = false
		anew, err := c.Lookup("http://r.test/b", time.Now().Add(-2*time.Hour)) // a clock that was ahead is set right
		require.NoError(t, err)
		require.Equal(t, "http://r.test/robots.txt", anew.Request.URL)
		c.Abandon(*anew.Request)
		require.True(t, allowed())
		time.Sleep(24 * time.Hour)
		require.True(t, allowed())
		require.Equal(t, []string{
			"0s http://r.test/robots.txt", "0s " + where, "0s " + where, "0s " + where,
			"1h0m0s http://r.test/robots.txt", "1h0m0s " + where,
			"1h0m0s http://r.test/robots.txt", "1h0m0s " + where,
			"25h0m0s http://r.test/robots.txt", "25h0m0s " + where,
		}, w.log)
	})
}

// TestAConnectionIsNotYetARequest: a lower layer may wait on a connection before it sends anything.
func TestAConnectionIsNotYetARequest(t *testing.T) {
	for _, wrote := range []bool{false, true} {
		w := newWeb(0)
		w.answers[where] = func(r *http.Request) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(r.Context())
			trace.GetConn("r.test:443")
			trace.GotConn(httptrace.GotConnInfo{})
			if wrote {
				trace.WroteHeaders()
			}
			return nil, errors.New("closed while waiting")
		}
		c := w.cache(Options{})
		_, err := c.Allowed(t.Context(), page)
		require.Equal(t, wrote, err == nil)
		entry, _ := c.Entry(page)
		require.Equal(t, wrote, entry.Failures == 1)
	}
}

// TestATransportThatTriedIsBelieved: net/http's transport reports by httptrace that it tried,
// whatever the error.
func TestATransportThatTriedIsBelieved(t *testing.T) {
	dial := func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("strange") }
	transport := &http.Transport{DialContext: dial}
	c := NewCache(Options{Client: &http.Client{Transport: transport}})
	allowed, err := c.Allowed(t.Context(), page)
	require.NoError(t, err)
	require.False(t, allowed)
	entry, _ := c.Entry(page)
	require.Equal(t, 1, entry.Failures)
}

// TestTimeLimits: the client's limit is for each hop, and a body has one of its own.
func TestTimeLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(time.Second)
		w.answers[where] = func(r *http.Request) (*http.Response, error) {
			body, end := io.Pipe() // which never says anything
			context.AfterFunc(r.Context(), func() { end.CloseWithError(r.Context().Err()) })
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: body}, nil
		}
		c := w.cache(Options{})
		rules, err := c.Load(t.Context(), page)
		require.NoError(t, err)
		require.False(t, rules.Allowed("/b"))
		require.Equal(t, 31*time.Second, time.Since(w.began))

		c.options.Client.Timeout = 10 * time.Second
		w.began = time.Now()
		rules, err = c.Load(t.Context(), "http://r.test/") // two hops
		require.NoError(t, err)
		require.False(t, rules.Allowed("/b"))
		require.Equal(t, 11*time.Second, time.Since(w.began))
	})
}

// TestAHostThatHangs is not asked again by each caller whose deadline passes meanwhile. One that had
// little time says nothing.
func TestAHostThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(0)
		steps := map[string]func(*httptrace.ClientTrace){
			"connects": func(trace *httptrace.ClientTrace) { trace.ConnectStart("tcp", "192.0.2.1:443") },
			"connects to many addresses": func(trace *httptrace.ClientTrace) {
				for range 10 {
					trace.ConnectStart("tcp", "192.0.2.1:443")
					time.Sleep(300 * time.Millisecond)
				}
			},
			"holds a connection": func(trace *httptrace.ClientTrace) {
				trace.ConnectStart("tcp", "192.0.2.1:443")
				trace.GotConn(httptrace.GotConnInfo{})
			},
			"has written": func(trace *httptrace.ClientTrace) {
				trace.GotConn(httptrace.GotConnInfo{})
				trace.WroteHeaders()
			},
		}
		for name, step := range steps {
			w.answers[where] = func(r *http.Request) (*http.Response, error) {
				trace := httptrace.ContextClientTrace(r.Context())
				trace.GetConn("h.test:443")
				step(trace)
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			c := NewCache(Options{})
			c.transport = w
			w.log = nil
			for _, most := range []time.Duration{4 * time.Second, 5 * time.Second, 6 * time.Second} {
				ctx, cancel := context.WithTimeout(t.Context(), most)
				allowed, _ := c.Allowed(ctx, page)
				require.False(t, allowed)
				cancel()
			}
			entry, _ := c.Entry(page)
			if name == "holds a connection" {
				require.Len(t, w.log, 3, name)
				require.Zero(t, entry.Failures, name)
			} else {
				require.Len(t, w.log, 2, name)
				require.Equal(t, 1, entry.Failures, name)
			}
		}
	})
}

// TestAFileThatNeverComes is that of an unreachable host, also if the layer below calls the end of the
// context a failure of its own. Before the host's name is looked up, it is none of the host's.
func TestAFileThatNeverComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, lookedUp := range []bool{true, false} {
			w := newWeb(0)
			w.answers[where] = func(r *http.Request) (*http.Response, error) {
				trace := httptrace.ContextClientTrace(r.Context())
				trace.GetConn("h.test:443")
				if lookedUp {
					trace.ConnectStart("tcp", "192.0.2.1:443")
				}
				<-r.Context().Done()
				return nil, refusal{r.Context().Err()}
			}
			for _, most := range []time.Duration{0, 10 * time.Second} {
				c := w.cache(Options{})
				c.options.Client.Timeout = 20 * time.Second
				w.log = nil
				for range 5 {
					ctx, cancel := t.Context(), func() {}
					if most != 0 {
						ctx, cancel = context.WithTimeout(ctx, most)
					}
					allowed, _ := c.Allowed(ctx, page)
					require.False(t, allowed)
					cancel()
				}
				entry, _ := c.Entry(page)
				if lookedUp {
					require.Len(t, w.log, 1, most)
					require.Equal(t, 1, entry.Failures)
				} else {
					require.Len(t, w.log, 5, most)
					require.Zero(t, entry.Failures)
				}
			}
		}
	})
}

// TestALimitKeepsNothing: a context that has ended, and whatever it carries, is not kept until its time
// would have been over.
func TestALimitKeepsNothing(t *testing.T) {
	type key struct{}
	carried := func() weak.Pointer[[1024]byte] {
		value := new([1024]byte)
		ctx, stop := limit(context.WithValue(context.Background(), key{}, value), time.Hour)
		resume := ctx.Value(httpctx.Pause{}).(func() func())()
		resume()
		stop()
		resume()
		require.Error(t, ctx.Err())
		return weak.Make(value)
	}()
	for range 100 {
		if runtime.GC(); carried.Value() == nil {
			return
		}
	}
	t.Error("the value of a context that has ended is still in memory")
}

// TestWaitsBelowAreNotLimited: a layer that makes a request wait says so, and nothing below it knows
// of a deadline. Without such a layer, the limit counts from the beginning.
func TestWaitsBelowAreNotLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(0)
		wait := time.Duration(0)
		w.answers[where] = func(r *http.Request) (*http.Response, error) {
			_, limited := r.Context().Deadline()
			require.False(t, limited)
			pause := r.Context().Value(struct{ Pause struct{} }{}).(func() func())
			for range 2 {
				resume := pause()
				time.Sleep(wait)
				resume()
				defer resume() // it has no effect any more
			}
			inner, cancel := context.WithCancel(r.Context())
			defer cancel()
			<-inner.Done()
			require.ErrorIs(t, context.Cause(inner), context.DeadlineExceeded)
			return nil, &net.OpError{Op: "read", Err: inner.Err()}
		}
		for _, wait = range []time.Duration{0, time.Hour} {
			c := NewCache(Options{})
			c.transport = w
			began := time.Now()
			_, err := c.Load(t.Context(), page)
			require.NoError(t, err)
			require.Equal(t, 2*wait+30*time.Second, time.Since(began))
			entry, _ := c.Entry(page)
			require.Equal(t, 1, entry.Failures)
		}
	})
}

// TestALocalFailureIsThatOfAllWhoWait: none tries again for itself, after all others.
func TestALocalFailureIsThatOfAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(time.Minute)
		w.answers[where] = func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}
		}
		c := w.cache(Options{Client: &http.Client{Timeout: time.Hour}})
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				_, err := c.Load(t.Context(), page)
				assert.ErrorIs(t, err, syscall.EMFILE)
			})
		}
		wg.Wait()
		require.Len(t, w.log, 1)
		require.Equal(t, time.Minute, time.Since(w.began))
	})
}

// TestAClientThatReturnsNothing breaks the contract of net/http, and nothing else.
func TestAClientThatReturnsNothing(t *testing.T) {
	for _, resp := range []*http.Response{nil, {StatusCode: 200}, {StatusCode: 404}} {
		w := newWeb(0)
		w.answers[where] = func(*http.Request) (*http.Response, error) { return resp, nil }
		c := w.cache(Options{})
		allowed, err := c.Allowed(t.Context(), page)
		require.NoError(t, err)
		require.False(t, allowed)
	}
}

func TestLoadAfterAPanic(t *testing.T) {
	w := newWeb(0)
	good := w.answers[where]
	w.answers[where] = func(*http.Request) (*http.Response, error) { panic("of the transport") }
	c := w.cache(Options{})
	require.Panics(t, func() { _, _ = c.Load(t.Context(), page) })
	w.answers[where] = good
	rules, err := c.Load(t.Context(), page)
	require.NoError(t, err)
	require.False(t, rules.Allowed("/a"))
}

func TestLoadWaitsForRequestsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(time.Second)
		c := w.cache(Options{Patience: time.Minute})
		req := ask(t, c, page, time.Now())
		var wg sync.WaitGroup
		wg.Go(func() {
			rules, err := c.Load(t.Context(), page)
			assert.NoError(t, err)
			assert.True(t, rules.Allowed("/a"))
			assert.Equal(t, 30*time.Second, time.Since(w.began))
		})
		time.Sleep(30 * time.Second)
		_, err := c.Store(req, Response{Status: 404}, time.Now())
		require.NoError(t, err)
		wg.Wait()
		require.Empty(t, w.log)

		ask(t, c, "https://lost.test/", time.Now())
		_, err = c.Load(t.Context(), "https://lost.test/")
		require.NoError(t, err)
		require.Equal(t, []string{"1m30s https://lost.test/robots.txt"}, w.log)
	})
}

// TestLoadIsNotRefused: the number of its requests is bounded by the number of callers.
func TestLoadIsNotRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newWeb(time.Second).cache(Options{MaxBytes: 1})
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				_, err := c.Load(t.Context(), fmt.Sprintf("http://h%d.test/", i%10))
				assert.NoError(t, err)
			})
		}
		wg.Wait()
		require.LessOrEqual(t, c.Stats().Hosts, 1)
	})
}

// All ways into the cache at once, for the race detector.
func TestCacheIsSafeForConcurrentUse(t *testing.T) {
	c := newWeb(0).cache(Options{MaxBytes: 20_000})
	pending := &Pending[int]{Cache: c}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				url := fmt.Sprintf("https://h%d.test/", (i+j)%12)
				allowed, err := c.Allowed(t.Context(), url)
				if err != nil || allowed {
					t.Error("wrong rules of", url, err)
				}
				if answer, _, _ := pending.Lookup(url, j, time.Now()); answer.Request != nil {
					_, _, _ = pending.Store(*answer.Request, Response{}, time.Now())
				}
				for entry := range c.All() {
					if strings.HasPrefix(entry.URL, "https://h1") && j%10 == 0 {
						_ = c.Restore(entry)
					}
				}
				c.Abandon(Request{For: url, Flight: uint64(i*j + 1)})
				c.InFlight(url)
				c.Stats()
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, c.Stats().Bytes, 20_000)
	require.Zero(t, pending.Len())
}

// TestTheTimeLimitIsADeadline: what the limit of a request ends is no cancellation, also to a transport
// that returns the error of the context, as HTTP/2 does.
func TestTheTimeLimitIsADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCache(Options{Client: &http.Client{Timeout: time.Second, Transport: roundTripper(
			func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			})}})
		_, err := c.Load(t.Context(), "http://a.test/")
		require.NotErrorIs(t, err, context.Canceled)
		require.True(t, os.IsTimeout(err) || errors.Is(err, context.DeadlineExceeded), "%v", err)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
