package schedulerhttp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/spinneret-go/spinneret/scheduler/schedulerhttp"
)

// bases are net/http, and a layer that takes whatever ends a request for the caller's doing.
func (b *bench) bases() []http.RoundTripper {
	return []http.RoundTripper{b.base, roundTrip(func(r *http.Request) (*http.Response, error) {
		resp, err := b.base.RoundTrip(r)
		if err != nil {
			err = localError{err}
		}
		return resp, err
	})}
}

// TestAHostThatHangs has callers who leave after a minute. A deadline is a failure of a host that has
// not answered, whichever way it comes.
func TestAHostThatHangs(t *testing.T) {
	type leave func(c *http.Client, r *http.Request) *http.Request
	for _, tt := range []struct {
		name     string
		leave    leave
		failures int
	}{
		{"the deadline of a context", func(_ *http.Client, r *http.Request) *http.Request {
			ctx, cancel := context.WithTimeoutCause(r.Context(), time.Minute, errors.New("too late"))
			t.Cleanup(cancel)
			return r.WithContext(ctx)
		}, 1},
		{"the timeout of a client", func(c *http.Client, r *http.Request) *http.Request {
			c.Timeout = time.Minute
			return r
		}, 1},
		{"a canceled context", func(_ *http.Client, r *http.Request) *http.Request {
			ctx, cancel := context.WithCancel(r.Context())
			time.AfterFunc(time.Minute, cancel)
			return r.WithContext(ctx)
		}, 0},
		{"the field Cancel", func(_ *http.Client, r *http.Request) *http.Request {
			stop := make(chan struct{})
			time.AfterFunc(time.Minute, func() { close(stop) })
			//lint:ignore SA1019 older clients set it
			r.Cancel = stop
			return r
		}, 0},
	} {
		for range 10 { // a client with a timeout ends a request in two ways, in any order
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, webtest.Options{Hosts: 1, Traits: func(int) webtest.Traits {
					return webtest.Traits{Traps: webtest.TrapAll}
				}}, scheduler.Options{})
				for _, base := range b.bases() {
					for path, failures := range map[string]int{"trap/hang": tt.failures, "trap/drip": 0} {
						transport := schedulerhttp.NewTransport(base, scheduler.Options{})
						r, err := http.NewRequest(http.MethodGet, root(0)+path, nil)
						require.NoError(t, err)
						client := &http.Client{Transport: transport}
						resp, err := client.Do(tt.leave(client, r))
						if err == nil {
							_, err = io.Copy(io.Discard, resp.Body)
							resp.Body.Close()
						}
						require.Error(t, err)
						require.Equal(t, failures, transport.Hosts().Explain("h00000.vweb.test").Failures,
							"%s, %s: %v", tt.name, path, err)
					}
				}
			})
		}
	}
}

// TestABodyThatFails: the host has done nothing if the body of a request cannot be read.
func TestABodyThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, webtest.Options{Hosts: 1}, scheduler.Options{})
		for _, err := range []error{errors.New("input/output error"), io.ErrUnexpectedEOF, os.ErrDeadlineExceeded} {
			r, bad := http.NewRequest(http.MethodPost, root(0), iotest.ErrReader(err))
			require.NoError(t, bad)
			_, got := b.transport.RoundTrip(r)
			require.ErrorIs(t, got, err)
			require.Zero(t, b.transport.Hosts().Explain("h00000.vweb.test").Failures, "%v", err)
		}
	})
}

// TestAResolverThatHangs, or a proxy: the host was not asked, and can be once they work again.
func TestAResolverThatHangs(t *testing.T) {
	for name, steps := range map[string]func(trace *httptrace.ClientTrace){
		"the resolver": func(trace *httptrace.ClientTrace) {
			trace.GetConn("a.test:80")
			trace.DNSStart(httptrace.DNSStartInfo{})
		},
		"the proxy": func(trace *httptrace.ClientTrace) {
			trace.GetConn("proxy.test:80")
			trace.ConnectStart("tcp", "192.0.2.1:80")
		},
		"the host": func(trace *httptrace.ClientTrace) {
			trace.GetConn("a.test:80")
			trace.ConnectStart("tcp", "192.0.2.2:80")
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
				steps(httptrace.ContextClientTrace(r.Context()))
				<-r.Context().Done()
				return nil, r.Context().Err()
			}), scheduler.Options{})
			client := &http.Client{Transport: transport, Timeout: 20 * time.Second}
			for range 3 {
				_, err := client.Get("http://a.test/")
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
			require.Equal(t, name == "the host", transport.Hosts().Explain("a.test").Failures > 0, name)
		})
	}
}

// TestVisitsThatSayNothing neither add to the failures of a host nor halve them, as a success does. Otherwise a
// server that answers 503 to all would be asked at the least back-off forever.
func TestVisitsThatSayNothing(t *testing.T) {
	left, leave := context.WithCancel(t.Context())
	for name, tt := range map[string]struct {
		url      string
		ctx      context.Context
		visit    func(*http.Request, *httptrace.ClientTrace) error // nil: another 503
		failures int
	}{
		"a closed port": {"http://a.test:9000", t.Context(), func(*http.Request, *httptrace.ClientTrace) error {
			return &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}, 2},
		"a caller who leaves": {"http://a.test", left, func(r *http.Request, trace *httptrace.ClientTrace) error {
			trace.GotConn(httptrace.GotConnInfo{})
			leave()
			return r.Context().Err()
		}, 2},
		"a dead connection": {"http://a.test", t.Context(), func(r *http.Request, trace *httptrace.ClientTrace) error {
			trace.GotConn(httptrace.GotConnInfo{})
			trace.GotConn(httptrace.GotConnInfo{}) // net/http tries again
			return r.Context().Err()
		}, 3}, // by the answer to the next attempt
	} {
		t.Run(name, func(t *testing.T) {
			visits := 0
			transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
				if visits++; visits == 3 {
					return nil, tt.visit(r, httptrace.ContextClientTrace(r.Context()))
				}
				return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: http.NoBody}, nil
			}), scheduler.Options{HostDelay: time.Microsecond, Backoff: time.Microsecond})
			for _, url := range []string{"http://a.test", "http://a.test", tt.url} {
				req, err := http.NewRequestWithContext(tt.ctx, http.MethodGet, url, nil)
				require.NoError(t, err)
				_, err = transport.RoundTrip(req)
				require.Equal(t, visits == 3, err != nil, "%v", err)
			}
			require.Equal(t, tt.failures, transport.Hosts().Explain("a.test").Failures)
		})
	}
}

// TestAWaitThatLeavesNoTime: a host that answers within two seconds is asked by more than it serves. Who has waited
// for so long that it has no time to answer does not blame it; who has not does.
func TestAWaitThatLeavesNoTime(t *testing.T) {
	for timeout, failures := range map[time.Duration]int{9 * time.Second: 0, 12 * time.Second: 0, time.Second: 1} {
		synctest.Test(t, func(t *testing.T) {
			transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
				trace := httptrace.ContextClientTrace(r.Context())
				trace.GetConn("a.test:80")
				trace.GotConn(httptrace.GotConnInfo{Conn: &closing{}})
				select {
				case <-time.After(2 * time.Second):
					return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
				case <-r.Context().Done():
					return nil, r.Context().Err()
				}
			}), scheduler.Options{HostDelay: 6 * time.Second, LatencyFactor: -1})
			client := &http.Client{Transport: transport, Timeout: timeout}
			var all sync.WaitGroup
			for range 2 {
				all.Go(func() {
					if resp, err := client.Get("http://a.test/"); err == nil {
						resp.Body.Close()
					}
				})
			}
			all.Wait()
			require.Equal(t, failures, transport.Hosts().Explain("a.test").Failures, "%v", timeout)
		})
	}
}
