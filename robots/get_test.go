package robots

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// web answers requests after a while, and notes them with their time.
type web struct {
	mu      sync.Mutex
	began   time.Time
	log     []string
	took    time.Duration
	answers map[string]Response
}

func (w *web) fetch(ctx context.Context, req Request) (Response, error) {
	w.mu.Lock()
	w.log = append(w.log, fmt.Sprint(time.Since(w.began), " ", req.URL))
	w.mu.Unlock()
	select {
	case <-time.After(w.took):
	case <-ctx.Done():
		return Response{}, ctx.Err()
	}
	resp, ok := w.answers[req.URL]
	if !ok {
		return Response{}, errors.New("no route to host")
	}
	return resp, nil
}

func newWeb(took time.Duration) *web {
	return &web{took: took, began: time.Now(), answers: map[string]Response{
		where:                      {200, nil, []byte(noAs)},
		"http://r.test/robots.txt": {301, fields("Location", where), nil},
	}}
}

func TestManyWhoAskCostOneFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := newWeb(time.Second), NewCache(Options{})
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() {
				rules, err := c.Get(t.Context(), page, w.fetch)
				if err != nil || rules.Allowed("/a") {
					t.Error("wrong rules", err)
				}
			})
		}
		wg.Wait()
		require.Equal(t, []string{"0s " + where}, w.log)
		require.Equal(t, time.Second, time.Since(w.began))
	})
}

func TestGetFollowsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := newWeb(time.Second), NewCache(Options{})
		get := func(url string) Rules {
			rules, err := c.Get(t.Context(), url, w.fetch)
			require.NoError(t, err)
			return rules
		}
		require.False(t, get("http://r.test/a").Allowed("/a"))
		require.True(t, get("http://r.test/a").Allowed("/b"))
		time.Sleep(24*time.Hour - 1)
		get("http://r.test/a")
		time.Sleep(time.Nanosecond)
		get("http://r.test/a")
		require.False(t, get("http://down.test/").Allowed("/a"))
		time.Sleep(5 * time.Minute)
		get("http://down.test/")
		get("http://down.test/")
		require.Equal(t, []string{
			"0s http://r.test/robots.txt", "1s " + where,
			"24h0m2s http://r.test/robots.txt", "24h0m3s " + where,
			"24h0m4s http://down.test/robots.txt", "24h5m5s http://down.test/robots.txt",
		}, w.log)
	})
}

// Who gives up must not take the others with him, nor count as a fault of the host.
func TestGetSurvivesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := newWeb(10*time.Second), NewCache(Options{})
		first, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := c.Get(first, page, w.fetch)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.Equal(t, 4*time.Second, time.Since(w.began))
		})
		synctest.Wait()
		for range 10 {
			wg.Go(func() {
				rules, err := c.Get(t.Context(), page, w.fetch)
				assert.NoError(t, err)
				assert.True(t, rules.Allowed("/b"))
				assert.Equal(t, 14*time.Second, time.Since(w.began))
			})
		}
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Get(impatient, page, w.fetch)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		wg.Wait()
		require.Equal(t, []string{"0s " + where, "4s " + where}, w.log)
	})
}

func TestGetAfterAPanic(t *testing.T) {
	c := NewCache(Options{})
	require.Panics(t, func() {
		_, _ = c.Get(t.Context(), page, func(context.Context, Request) (Response, error) {
			panic("of the caller")
		})
	})
	rules, err := c.Get(t.Context(), page, newWeb(0).fetch)
	require.NoError(t, err)
	require.False(t, rules.Allowed("/a"))
}

func TestGetWaitsForAnswersOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := newWeb(time.Second), NewCache(Options{Patience: time.Minute})
		req := ask(t, c, page, time.Now())
		var wg sync.WaitGroup
		wg.Go(func() {
			rules, err := c.Get(t.Context(), page, w.fetch)
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
		_, err = c.Get(t.Context(), "https://lost.test/", w.fetch)
		require.NoError(t, err)
		require.Equal(t, []string{"1m30s https://lost.test/robots.txt"}, w.log)
	})
}

func TestGetOfNoHost(t *testing.T) {
	rules, err := NewCache(Options{}).Get(t.Context(), "about:blank", nil)
	require.ErrorIs(t, err, ErrLocate)
	require.False(t, rules.Allowed("/"), "who overlooks the error must not be let in")
}

// All ways into the cache at once, for the race detector.
func TestCacheIsSafeForConcurrentUse(t *testing.T) {
	c := NewCache(Options{MaxBytes: 20_000})
	w := newWeb(0)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				url := fmt.Sprintf("https://h%d.test/", (i+j)%12)
				rules, err := c.Get(t.Context(), url, w.fetch)
				if err != nil || rules.Allowed("/a") {
					t.Error("wrong rules of", url, err)
				}
				for entry := range c.Entries() {
					if strings.HasPrefix(entry.URL, "https://h1") && j%10 == 0 {
						_ = c.Restore(entry)
					}
				}
				c.Abandon(Request{For: url})
				c.Stats()
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, c.Stats().Bytes, 20_000)
}
