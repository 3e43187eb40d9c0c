package schedulerhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/scheduler"
)

// header returns a header of alternating names and values.
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
			want: func(_, now time.Time) scheduler.Outcome { return scheduler.Outcome{Start: now} },
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
				return scheduler.Outcome{Start: now, Failed: true, Skipped: true}
			},
		},
		"nothing": {
			want: func(_, now time.Time) scheduler.Outcome { return scheduler.Outcome{Start: now} },
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

// TestRFC9110 holds section 10.2.3, Retry-After.
func TestRFC9110(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	const noon = "Thu, 01 Jan 2026 12:00:00 GMT"
	for name, tt := range map[string]struct {
		header http.Header
		want   time.Duration
	}{
		"no header":                      {header(), 0},
		"delay-seconds":                  {header("Retry-After", "120"), 2 * time.Minute},
		"zero":                           {header("Retry-After", "0"), 0},
		"white space":                    {header("Retry-After", " 7 "), 7 * time.Second},
		"HTTP-date":                      {header("Retry-After", "Thu, 01 Jan 2026 12:00:30 GMT"), 30 * time.Second},
		"an obsolete HTTP-date":          {header("Retry-After", "Thursday, 01-Jan-26 12:00:30 GMT"), 30 * time.Second},
		"an HTTP-date that has passed":   {header("Retry-After", "Thu, 01 Jan 2026 11:00:00 GMT"), 0},
		"a clock that is an hour ahead":  {header("Retry-After", "Thu, 01 Jan 2026 13:00:30 GMT", "Date", "Thu, 01 Jan 2026 13:00:00 GMT"), 30 * time.Second},
		"a clock that is an hour behind": {header("Retry-After", "Thu, 01 Jan 2026 11:00:30 GMT", "Date", "Thu, 01 Jan 2026 11:00:00 GMT"), 30 * time.Second},
		"a Date that makes no sense":     {header("Retry-After", "Thu, 01 Jan 2026 12:00:30 GMT", "Date", "noon"), 30 * time.Second},
		"seconds do not depend on Date":  {header("Retry-After", "60", "Date", noon), time.Minute},
		"a negative number":              {header("Retry-After", "-5"), 0},
		"a fraction":                     {header("Retry-After", "1.5"), 0},
		"words":                          {header("Retry-After", "tomorrow"), 0},
		"a hundred years":                {header("Retry-After", "3155760000"), 3155760000 * time.Second},
		"more than a Duration":           {header("Retry-After", "9223372037"), scheduler.Forever},
		"more than a number":             {header("Retry-After", "99999999999999999999999999"), scheduler.Forever},
		"the year 9999":                  {header("Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"), scheduler.Forever},
	} {
		t.Run("10.2.3-"+name, func(t *testing.T) {
			require.Equal(t, tt.want, retryAfter(tt.header, now))
		})
	}
}

// FuzzRetryAfter holds that a delay is never negative, and that seconds are what they say.
func FuzzRetryAfter(f *testing.F) {
	for _, value := range []string{"120", "Thu, 01 Jan 2026 12:00:30 GMT", "-1", "", "1e9", "٣"} {
		f.Add(value, "Thu, 01 Jan 2026 12:00:00 GMT")
	}
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, value, date string) {
		got := retryAfter(http.Header{"Retry-After": {value}, "Date": {date}}, now)
		if got < 0 {
			t.Errorf("%q is %v", value, got)
		}
		if seconds, err := strconv.ParseUint(value, 10, 32); err == nil && got != time.Duration(seconds)*time.Second {
			t.Errorf("%q is %v", value, got)
		}
		if o := Outcome(now, &http.Response{Header: http.Header{"Retry-After": {value}}}, errors.New("x")); got == 0 && !o.RetryAfter.IsZero() && date == "" {
			t.Errorf("%q is no time, but %v", value, o.RetryAfter)
		}
	})
}
