package stage

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/scheduler"
)

// TestAttemptsCountTowardsTheDelay: a server that got three requests is left alone for three
// delays.
func TestAttemptsCountTowardsTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPoliteness(PolitenessOptions{Delay: 5 * time.Second})
		p.delays.Set("slow.test", "http://slow.test/robots.txt", time.Minute)
		for _, tt := range []struct {
			name    string
			outcome func(url string) scheduler.Outcome
			host    string
			want    time.Duration
		}{
			{"an answer at once", func(url string) scheduler.Outcome {
				return p.Outcome(&fetch.Response{URL: url, Attempts: 1, FirstByte: time.Now()})
			}, "a.test", 5 * time.Second},
			{"an answer at the third attempt", func(url string) scheduler.Outcome {
				return p.Outcome(&fetch.Response{URL: url, Attempts: 3, FirstByte: time.Now()})
			}, "b.test", 15 * time.Second},
			{"no answer to three", func(url string) scheduler.Outcome {
				return p.Sent(&fetch.Error{Kind: fetch.TooManyAttempts, URL: url, Attempts: 3})
			}, "c.test", 15 * time.Second},
			{"a server that asks for a delay", func(url string) scheduler.Outcome {
				return p.Sent(&fetch.Error{Kind: fetch.TooManyAttempts, URL: url, Attempts: 3})
			}, "slow.test", 3 * time.Minute},
		} {
			for range 2 {
				require.NoError(t, p.Queue.Add(scheduler.Task[Item]{Host: tt.host}), tt.name)
			}
			lease, _ := p.Queue.TryNext(time.Now())
			require.NotNil(t, lease, tt.name)
			lease.Done(tt.outcome("http://" + tt.host + "/"))
			start := time.Now()
			next, err := p.Queue.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, tt.want, time.Since(start), tt.name)
			next.Done(scheduler.Outcome{})
			time.Sleep(time.Hour)
		}
	})
}

// TestAResponseMayOvertakeItsRequest, as far as can be seen with HTTP/2: then it is not known how
// long the server took, which must not make the host wait for ages.
func TestAResponseMayOvertakeItsRequest(t *testing.T) {
	p := NewPoliteness(PolitenessOptions{Arrival: time.Second})
	now := time.Now()
	o := p.Outcome(&fetch.Response{URL: "http://a.test/", FirstByte: now, Attempts: 1})
	require.Zero(t, o.Took)
	require.Equal(t, now, o.Start)
}
