package robots

import (
	"container/heap"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An event is something that a crawler does at a time.
type event struct {
	at time.Time
	do func(now time.Time)
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at.Before(e[j].at) }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// A crawl does what the documentation of Pending says: it makes each Request that it gets, passes
// the response to Store, and looks up again what Store returns.
type crawl struct {
	t        *testing.T
	queue    events
	requests int
	fetched  int
	took     func(n int) time.Duration // of the n-th request, from 1
}

func newCrawl(t *testing.T) *crawl {
	return &crawl{t: t, took: func(int) time.Duration { return 200 * time.Millisecond }}
}

func (c *crawl) at(t time.Time, do func(time.Time)) { heap.Push(&c.queue, event{t, do}) }

func (c *crawl) send(p *Pending[string], req Request, now time.Time) {
	c.requests++
	c.at(now.Add(c.took(c.requests)), func(now time.Time) { c.store(p, req, now) })
}

func (c *crawl) store(p *Pending[string], req Request, now time.Time) {
	answer, items, err := p.Store(req, whole(200, nil, noAs), now)
	require.NoError(c.t, err)
	if answer.Request != nil {
		c.send(p, *answer.Request, now)
	}
	c.lookup(p, items, now)
}

func (c *crawl) lookup(p *Pending[string], items []string, now time.Time) {
	for _, item := range items {
		answer, ready, err := p.Lookup(page, item, now)
		require.NoError(c.t, err)
		switch {
		case answer.Known:
			c.fetched++
		case answer.Request != nil:
			c.send(p, *answer.Request, now)
		}
		c.lookup(p, ready, now)
	}
}

// run requires that all is done within a day with that many requests.
func (c *crawl) run(fetched, requests int) {
	for len(c.queue) > 0 && c.queue[0].at.Before(noon.Add(30*day)) && c.requests < 1000 {
		next := heap.Pop(&c.queue).(event)
		next.do(next.at)
	}
	require.Equal(c.t, fetched, c.fetched)
	require.LessOrEqual(c.t, c.requests, requests)
}

// TestWhatIsReleasedAsksNobody: however late, often or by whom the end of a request is reported, the
// items that it releases start none beside the one that is out.
func TestWhatIsReleasedAsksNobody(t *testing.T) {
	pending := func(o Options) *Pending[string] { return &Pending[string]{Cache: NewCache(o)} }
	t.Run("late", func(t *testing.T) {
		c, p := newCrawl(t), pending(Options{})
		c.took = func(n int) time.Duration {
			if n == 1 {
				return time.Hour + 100*time.Millisecond
			}
			return 200 * time.Millisecond
		}
		c.at(noon, func(now time.Time) { c.lookup(p, []string{"1"}, now) })
		c.at(noon.Add(time.Hour), func(now time.Time) { c.lookup(p, []string{"2"}, now) })
		c.run(2, 2)
	})
	t.Run("always late", func(t *testing.T) {
		c, p := newCrawl(t), pending(Options{})
		c.took = func(int) time.Duration { return 90 * time.Minute }
		for i := range 6 {
			c.at(noon.Add(time.Duration(i)*time.Hour), func(now time.Time) { c.lookup(p, []string{"x"}, now) })
		}
		c.run(6, 2)
	})
	t.Run("abandoned twice", func(t *testing.T) {
		c, p := newCrawl(t), pending(Options{})
		answer, _, err := p.Lookup(page, "1", noon)
		require.NoError(t, err)
		again := func(now time.Time) { c.lookup(p, p.Abandon(*answer.Request), now) }
		c.at(noon, again)
		c.at(noon.Add(100*time.Millisecond), again)
		c.run(1, 1)
	})
	t.Run("stored twice", func(t *testing.T) {
		c, p := newCrawl(t), pending(Options{})
		answer, _, err := p.Lookup(page, "1", noon)
		require.NoError(t, err)
		again := func(now time.Time) { c.store(p, *answer.Request, now) }
		c.at(noon, again)
		c.at(noon.Add(2*day), func(now time.Time) { c.lookup(p, []string{"2"}, now) })
		c.at(noon.Add(2*day+100*time.Millisecond), again)
		c.run(2, 1)
	})
	t.Run("two of them", func(t *testing.T) {
		c, p := newCrawl(t), pending(Options{Patience: -1})
		q := &Pending[string]{Cache: p.Cache}
		c.at(noon, func(now time.Time) { c.lookup(p, []string{"1"}, now) })
		c.at(noon.Add(100*time.Millisecond), func(now time.Time) { c.lookup(q, []string{"2"}, now) })
		c.run(2, 2)
	})
}

// TestARedirectStoredTwice must not make its target requested twice, nor release what waits.
func TestARedirectStoredTwice(t *testing.T) {
	p := &Pending[int]{Cache: NewCache(Options{})}
	answer, _, err := p.Lookup(page, 1, noon)
	require.NoError(t, err)
	first := *answer.Request
	redirect := whole(302, fields("Location", "/r"), "")
	next, _, err := p.Store(first, redirect, noon)
	require.NoError(t, err)
	require.NotNil(t, next.Request)
	answer, released, err := p.Store(first, redirect, noon)
	require.NoError(t, err)
	require.Equal(t, Answer{}, answer)
	require.Empty(t, released)
	_, released, err = p.Store(*next.Request, whole(404, nil, ""), noon)
	require.NoError(t, err)
	require.Equal(t, []int{1}, released)
}

// TestLoadsOutlastPatience: the caller of a Load waits for its request, so it is never lost.
func TestLoadsOutlastPatience(t *testing.T) {
	for _, callers := range []int{1, 2, 4} {
		synctest.Test(t, func(t *testing.T) {
			w := newWeb(90 * time.Minute)
			c := w.cache(Options{})
			ctx, cancel := context.WithTimeout(t.Context(), 30*day)
			defer cancel()
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					_, err := c.Load(ctx, page)
					assert.NoError(t, err)
				})
			}
			wg.Wait()
			require.Len(t, w.log, 1)
		})
	}
}

// TestAbandonedByAnother: of two who make a request, one gives up. The response that the other one
// has counts, also if it is a redirect.
func TestAbandonedByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newWeb(time.Minute).cache(Options{})
		giveUps := []func() func(){
			func() func() {
				req := ask(t, c, page, time.Now())
				return func() { c.Abandon(req) }
			},
			func() func() {
				ctx, cancel := context.WithCancel(t.Context())
				go func() { _, _ = c.Load(ctx, page) }()
				return cancel
			},
		}
		for _, begin := range giveUps {
			p := &Pending[int]{Cache: c}
			giveUp := begin()
			synctest.Wait()
			answer, _, err := p.Lookup(page, 1, time.Now())
			require.NoError(t, err)
			first := *answer.Request
			giveUp()
			synctest.Wait()
			require.Zero(t, c.Stats().InFlight)
			answer, items, err := p.Store(first, whole(301, fields("Location", "/b"), ""), time.Now())
			require.NoError(t, err)
			require.Empty(t, items)
			require.Equal(t, "https://h.test/b", answer.Request.URL)
			require.Equal(t, Stats{1, 1, c.Stats().Bytes}, c.Stats())
			giveUp()
			c.Abandon(*answer.Request)
			answer, items, err = p.Store(*answer.Request, whole(404, nil, ""), time.Now())
			require.NoError(t, err)
			require.True(t, answer.Known)
			require.Equal(t, []int{1}, items)
			require.Equal(t, Stats{1, 0, c.Stats().Bytes}, c.Stats())
			answer, err = c.Store(first, whole(301, fields("Location", "/b"), ""), time.Now().Add(day))
			require.NoError(t, err)
			require.Zero(t, answer, "it was stored before")
			time.Sleep(day)
		}
	})
}

// TestPendingGoesAhead of a Load, which then waits for what the redirect leads to.
func TestPendingGoesAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(time.Second)
		w.answers[where] = says(301, fields("Location", "/b"), "")
		p := &Pending[int]{Cache: w.cache(Options{})}
		var wg sync.WaitGroup
		wg.Go(func() {
			rules, err := p.Cache.Load(t.Context(), page)
			assert.NoError(t, err)
			assert.True(t, rules.Allowed("/a"))
			assert.Equal(t, time.Minute, time.Since(w.began))
		})
		synctest.Wait()
		answer, _, err := p.Lookup(page, 1, time.Now())
		require.NoError(t, err)
		answer, _, err = p.Store(*answer.Request, whole(301, fields("Location", "/b"), ""), time.Now())
		require.NoError(t, err)
		time.Sleep(time.Minute)
		answer, items, err := p.Store(*answer.Request, whole(404, nil, ""), time.Now())
		require.NoError(t, err)
		require.True(t, answer.Known)
		require.Equal(t, []int{1}, items)
		wg.Wait()
		require.Len(t, w.log, 1)
	})
}

// TestAFlightThatChangesHands: a Load that waits for another one has no limit, but a Pending that takes over
// may lose the request.
func TestAFlightThatChangesHands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(10 * time.Second)
		w.answers[where] = says(302, fields("Location", "http://r.test/robots.txt"), "")
		w.answers["http://r.test/robots.txt"] = says(404, nil, "")
		c := w.cache(Options{Patience: time.Minute})
		first, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = c.Load(first, page) })
		synctest.Wait()
		wg.Go(func() {
			rules, err := c.Load(t.Context(), page)
			assert.NoError(t, err)
			assert.True(t, rules.Allowed("/a"))
			assert.Less(t, time.Since(w.began), 3*time.Minute)
		})
		synctest.Wait()
		p := &Pending[int]{Cache: c}
		answer, _, err := p.Lookup(page, 1, time.Now())
		require.NoError(t, err)
		_, _, err = p.Store(*answer.Request, whole(302, fields("Location", "http://r.test/robots.txt"), ""), time.Now())
		require.NoError(t, err)
		time.Sleep(11 * time.Second) // the Load has its redirect, too, and gives way
		cancel()
		wg.Wait()
	})
}

// TestLoadBesidePending: neither loses its request to the other.
func TestLoadBesidePending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(time.Second)
		p := &Pending[int]{Cache: w.cache(Options{})}
		var wg sync.WaitGroup
		wg.Go(func() {
			rules, err := p.Cache.Load(t.Context(), page)
			assert.NoError(t, err)
			assert.False(t, rules.Allowed("/a"))
			assert.Equal(t, time.Second, time.Since(w.began))
		})
		time.Sleep(500 * time.Millisecond)
		answer, _, err := p.Lookup(page, 1, time.Now())
		require.NoError(t, err)
		require.NotNil(t, answer.Request)
		require.Equal(t, []int{1}, p.Abandon(*answer.Request))
		wg.Wait()
		require.Len(t, w.log, 1)
		_, known := p.Cache.Get(page, time.Now())
		require.True(t, known)
	})
}

// TestAFileAboveTheBound stays until something else needs room.
func TestAFileAboveTheBound(t *testing.T) {
	w := newWeb(0)
	w.answers[where] = says(200, http.Header{}, long)
	c := w.cache(Options{MaxBytes: 1000})
	for range 20 {
		_, err := c.Load(t.Context(), page)
		require.NoError(t, err)
	}
	require.Len(t, w.log, 1)
}

// TestASlowBodyThatSaysNothing delays no answer: not that of a redirect, nor that of an error.
func TestASlowBodyThatSaysNothing(t *testing.T) {
	for _, status := range []int{302, 404, 503} {
		synctest.Test(t, func(t *testing.T) {
			w := newWeb(0)
			slow := func(r *http.Request) (*http.Response, error) {
				body, end := io.Pipe()
				context.AfterFunc(r.Context(), func() { end.CloseWithError(r.Context().Err()) })
				return &http.Response{StatusCode: status, Header: fields("Location", where), Body: body}, nil
			}
			w.answers[where] = slow
			_, err := w.cache(Options{}).Load(t.Context(), page)
			require.NoError(t, err)
			require.LessOrEqual(t, time.Since(w.began), 6*drainTime)
		})
	}
}

// TestASlowFile is late: nobody has canceled it.
func TestASlowFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(0)
		w.answers[where] = func(r *http.Request) (*http.Response, error) {
			body, end := io.Pipe()
			context.AfterFunc(r.Context(), func() { end.CloseWithError(r.Context().Err()) })
			return &http.Response{StatusCode: 200, Body: body}, nil
		}
		c := w.cache(Options{Client: &http.Client{}})
		_, err := c.Load(t.Context(), page)
		require.NoError(t, err)
		require.Equal(t, bodyTime, time.Since(w.began))
		entry, _ := c.Entry(page)
		require.Equal(t, context.DeadlineExceeded.Error(), entry.Reason)
	})
}

// TestALongErrorIsNotRead beyond what a connection is worth.
func TestALongErrorIsNotRead(t *testing.T) {
	body := strings.NewReader(strings.Repeat("x", 1<<20))
	got := ReadResponse(&http.Response{StatusCode: 404, Body: io.NopCloser(body)}, nil)
	require.Equal(t, Response{Status: 404}, got)
	require.GreaterOrEqual(t, body.Len(), 1<<20-maxDrain)
}

// TestAPartThatIsLong lacks the beginning, where the line may be that forbids.
func TestAPartThatIsLong(t *testing.T) {
	require.Nil(t, Response{Status: 206, Body: []byte(long + long)}.File())
	require.NotNil(t, Response{Status: 200, Body: []byte(long + long)}.File())
}
