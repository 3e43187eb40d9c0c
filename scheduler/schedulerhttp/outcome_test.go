package schedulerhttp

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/scheduler"
)

// sentError is an error of a request that says nothing about the server, which may have got it.
type sentError struct{ error }

func (sentError) Local() bool { return true }
func (sentError) Sent() bool  { return true }

// header returns a header from alternating names and values.
func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

func TestOutcome(t *testing.T) {
	ours := &url.Error{Op: "Get", URL: "http://a.test/", Err: &net.OpError{
		Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE),
	}}
	for name, tt := range map[string]struct {
		resp *http.Response
		err  error
		want func(start, now time.Time) scheduler.Outcome
	}{
		"a page": {
			resp: &http.Response{StatusCode: 200},
			want: func(_, now time.Time) scheduler.Outcome {
				return scheduler.Outcome{Start: now, Took: time.Second, Status: 200}
			},
		},
		"a busy server": {
			resp: &http.Response{StatusCode: 503, Header: header("Retry-After", "120")},
			want: func(_, now time.Time) scheduler.Outcome {
				return scheduler.Outcome{
					Start: now, Took: time.Second, Status: 503, RetryAfter: now.Add(2 * time.Minute),
				}
			},
		},
		"a proxy that wants a password": {
			resp: &http.Response{StatusCode: 407},
			want: func(_, now time.Time) scheduler.Outcome {
				return scheduler.Outcome{Start: now, Took: time.Second, Status: 407, Unknown: true}
			},
		},
		"half a page": {
			resp: &http.Response{StatusCode: 200}, err: io.ErrUnexpectedEOF,
			want: func(_, now time.Time) scheduler.Outcome {
				return scheduler.Outcome{Start: now, Took: time.Second, Status: 200, Failed: true}
			},
		},
		"no answer": {
			err: os.ErrDeadlineExceeded,
			want: func(_, now time.Time) scheduler.Outcome {
				return scheduler.Outcome{Start: now, Failed: true}
			},
		},
		"a refused connection": {
			err: fmt.Errorf("dial: %w", syscall.ECONNREFUSED),
			want: func(_, now time.Time) scheduler.Outcome {
				return scheduler.Outcome{Start: now, Failed: true}
			},
		},
		"canceled by the caller": {
			err:  &url.Error{Op: "Get", URL: "http://a.test/", Err: context.Canceled},
			want: func(_, now time.Time) scheduler.Outcome { return scheduler.Outcome{Start: now, Unknown: true} },
		},
		"a name that does not resolve": {
			err: &net.OpError{Op: "dial", Err: &net.DNSError{Name: "a.test"}},
			want: func(_, now time.Time) scheduler.Outcome {
				return scheduler.Outcome{Start: now, Failed: true, Skipped: true}
			},
		},
		"too many open files": {
			err: ours,
			want: func(_, now time.Time) scheduler.Outcome {
				return scheduler.Outcome{Start: now, Skipped: true}
			},
		},
		"a proxy that is down": {
			err: &net.OpError{Op: "proxyconnect", Err: syscall.ECONNREFUSED},
			want: func(_, now time.Time) scheduler.Outcome {
				return scheduler.Outcome{Start: now, Skipped: true}
			},
		},
		"a caller who left after the request": {
			err:  &url.Error{Op: "Get", URL: "http://a.test/", Err: sentError{context.Canceled}},
			want: func(_, now time.Time) scheduler.Outcome { return scheduler.Outcome{Start: now, Unknown: true} },
		},
		"a name that is no longer found after the first attempt": {
			err:  sentError{&net.DNSError{Name: "a.test"}},
			want: func(_, now time.Time) scheduler.Outcome { return scheduler.Outcome{Start: now, Unknown: true} },
		},
		"nothing": {
			want: func(_, now time.Time) scheduler.Outcome { return scheduler.Outcome{Start: now, Unknown: true} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				time.Sleep(time.Second)
				require.Equal(t, tt.want(start, time.Now()), Outcome(start, tt.resp, tt.err))
			})
		})
	}
}

// TestAnAddressThatIsNotOurs causes an error of the local machine, with the system's error number.
// On Windows that number is not in package syscall.
func TestAnAddressThatIsNotOurs(t *testing.T) {
	from := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)} // from a documentation network
	client := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{LocalAddr: from}).DialContext}}
	_, err := client.Get("http://127.0.0.1:1/")
	require.Error(t, err)
	require.True(t, Outcome(time.Now(), nil, err).Skipped, "%v", err)
}

// TestAProxyWithoutItsPassword connects to no host.
func TestAProxyWithoutItsPassword(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusProxyAuthRequired)
	}))
	defer proxy.Close()
	at, err := url.Parse(proxy.URL)
	require.NoError(t, err)
	for _, scheme := range []string{"http", "https"} {
		transport := NewTransport(&http.Transport{Proxy: http.ProxyURL(at)}, scheduler.Options{})
		resp, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, scheme+"://a.test/", nil))
		require.Equal(t, scheme == "http", err == nil, "%v", err)
		if err == nil {
			require.NoError(t, resp.Body.Close())
		}
		require.Zero(t, transport.Hosts().Explain("a.test").Failures, scheme)
	}
}
