package fetch_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/stretchr/testify/require"
)

// A server that waits for the body of a request is not to blame for that, but for what it takes itself.
func TestASlowRequestBodyIsNotTheServersFault(t *testing.T) {
	for _, tt := range []struct {
		early   bool // the head comes before the body of the request
		timeout time.Duration
		stalls  bool // the server, once it has that
		want    fetch.Kind
	}{
		{false, 2500 * time.Millisecond, false, fetch.HeadTimeout},
		{true, 2500 * time.Millisecond, false, fetch.CutTime},
		{false, -1, false, fetch.Whole},
		{true, -1, false, fetch.Whole},
		{false, -1, true, fetch.HeadTimeout},
		{true, -1, true, fetch.CutSlow},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, stop := inMemory(t, fetch.Options{Timeout: tt.timeout}, func(s *session) {
				head := ok + "Content-Length: 4\r\n\r\n"
				s.request()
				if tt.early {
					s.say(head)
					head = ""
				}
				for line := ""; line != "0\r\n"; {
					var err error
					if line, err = s.br.ReadString('\n'); err != nil {
						return
					}
				}
				if tt.stalls {
					silent(s)
				}
				s.say(head + "done")
			})
			defer stop()
			body, sent := io.Pipe()
			req, err := http.NewRequest(http.MethodPost, "http://a.test/", body)
			require.NoError(t, err)
			done := make(chan struct{})
			defer func() { <-done }()
			defer body.Close()
			go func() {
				defer close(done)
				for range 60 {
					time.Sleep(time.Second)
					if _, err := sent.Write(bytes.Repeat([]byte("x"), 5000)); err != nil {
						break
					}
				}
				_ = sent.Close()
			}()
			start := time.Now()
			resp, err := c.Transport().RoundTrip(req)
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				_ = resp.Body.Close()
			}
			if tt.want == fetch.Whole {
				require.NoError(t, err)
				return
			}
			var e *fetch.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, tt.want, e.Kind, "%+v: %v", tt, err)
			require.True(t, e.Timeout())
			require.Equal(t, !tt.stalls, e.Local(), "%+v", tt)
			if tt.want == fetch.CutSlow {
				require.WithinDuration(t, start.Add(time.Minute+fetch.Grace), time.Now(), 5*time.Second)
			}
		})
	}
}

// Nor is it if the limit is the caller's own, as that of an http.Client.
func TestADeadlineDuringASlowRequestBody(t *testing.T) {
	for _, stalls := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c, stop := inMemory(t, fetch.Options{Timeout: -1}, func(s *session) {
				s.request()
				if !stalls {
					_, _ = io.Copy(io.Discard, s.br)
				}
				silent(s)
			})
			defer stop()
			body, sent := io.Pipe()
			ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://a.test/", body)
			require.NoError(t, err)
			done := make(chan struct{})
			defer func() { <-done }()
			defer body.Close()
			go func() {
				defer close(done)
				for range 10 {
					if _, err := sent.Write(make([]byte, 5000)); err != nil {
						break
					}
					if !stalls {
						time.Sleep(time.Second)
					}
				}
				_ = sent.Close()
			}()
			_, err = c.Transport().RoundTrip(req)
			var e *fetch.Error
			require.ErrorAs(t, err, &e)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, fetch.Canceled, e.Kind)
			require.True(t, e.Sent())
			require.Equal(t, !stalls, e.Local(), "the server does not read: %t", stalls)
		})
	}
}
