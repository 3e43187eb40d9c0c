package stage

import (
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/scheduler"
)

// TestAttemptsCountTowardsTheDelay: after three requests, the next one waits for three delays.
func TestAttemptsCountTowardsTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		overrides := &Overrides{}
		require.NoError(t, overrides.Reload(strings.NewReader("override.test delay=2m")))
		p := newPoliteness(PolitenessOptions{Delay: 5 * time.Second, Overrides: overrides})
		p.delays.Set("slow.test", "http://slow.test/robots.txt", time.Minute)
		for _, tt := range []struct {
			name    string
			outcome func(url string) scheduler.Outcome
			host    string
			want    time.Duration
		}{
			{"a response to the first attempt", func(url string) scheduler.Outcome {
				return p.Outcome(&fetch.Response{URL: url, Attempts: 1, FirstByte: time.Now()}, false)
			}, "a.test", 5 * time.Second},
			{"a response to the third attempt", func(url string) scheduler.Outcome {
				return p.Outcome(&fetch.Response{URL: url, Attempts: 3, FirstByte: time.Now()}, false)
			}, "b.test", 15 * time.Second},
			{"no response to three", func(url string) scheduler.Outcome {
				return p.Sent(&fetch.Error{Kind: fetch.TooManyAttempts, URL: url, Attempts: 3})
			}, "c.test", 15 * time.Second},
			{"a server that asks for a delay", func(url string) scheduler.Outcome {
				return p.Sent(&fetch.Error{Kind: fetch.TooManyAttempts, URL: url, Attempts: 3})
			}, "slow.test", 3 * time.Minute},
			{"a delay by the operator", func(url string) scheduler.Outcome {
				return p.Outcome(&fetch.Response{URL: url, Attempts: 3, FirstByte: time.Now()}, false)
			}, "override.test", 6 * time.Minute},
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
			require.GreaterOrEqual(t, time.Since(start), tt.want, tt.name)
			require.Less(t, time.Since(start), tt.want+tt.want/9, tt.name) // with what spreads pauses
			next.Done(scheduler.Outcome{})
			time.Sleep(time.Hour)
		}
	})
}

// TestCrawlDelaySurvivesIdleHosts: the scheduler forgets hosts that have been idle for a day, or
// beyond a million.
func TestCrawlDelaySurvivesIdleHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPoliteness(PolitenessOptions{Delay: time.Second})
		require.Equal(t, time.Minute, p.SetDelay("http://slow.test/", time.Minute))
		for _, idle := range []time.Duration{0, 100 * time.Hour} {
			time.Sleep(idle)
			lease, _ := p.Queue.TryNext(time.Now()) // advances to the present
			require.Nil(t, lease)
			for range 2 {
				require.NoError(t, p.Enqueue(Item{URL: "http://slow.test/page"}, netip.Addr{}))
			}
			first, err := p.Queue.Next(t.Context())
			require.NoError(t, err)
			first.Done(scheduler.Outcome{})
			start := time.Now()
			next, err := p.Queue.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, time.Minute, time.Since(start), idle)
			next.Done(scheduler.Outcome{})
		}
	})
}

func newPoliteness(o PolitenessOptions) *Politeness {
	return NewPoliteness(o, scheduler.New[Item](o.Scheduler()))
}
