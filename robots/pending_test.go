package robots

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

func TestItemsWaitForTheirRules(t *testing.T) {
	p := &Pending[string]{Cache: NewCache(Options{})}
	answer, err := p.Lookup(page, "a", noon)
	require.NoError(t, err)
	req := *answer.Request
	answer, err = p.Lookup("https://h.test/b", "b", noon)
	require.NoError(t, err)
	require.Equal(t, Answer{}, answer)
	other, err := p.Lookup("http://h.test/c", "c", noon)
	require.NoError(t, err)
	require.Equal(t, "http://h.test/robots.txt", other.Request.URL, "another scheme is another host")
	require.Equal(t, 3, p.Len())
	require.Equal(t, []string{"a", "b"}, p.Waiting(page))
	require.Empty(t, p.Waiting("https://none.test/"))
	require.Empty(t, p.Waiting("about:blank"))

	answer, released, err := p.Store(req, whole(301, fields("Location", "/r"), ""), noon)
	require.NoError(t, err)
	require.Empty(t, released, "they wait for where it leads")
	answer, released, err = p.Store(*answer.Request, whole(200, nil, noAs), noon)
	require.NoError(t, err)
	require.True(t, answer.Known)
	require.Equal(t, []string{"a", "b"}, released)
	_, released, err = p.Store(req, whole(404, nil, ""), noon)
	require.NoError(t, err)
	require.Empty(t, released, "each once")

	answer, err = p.Lookup(page, "d", noon)
	require.NoError(t, err)
	require.True(t, answer.Known)
	require.False(t, answer.Rules.Allowed(page))
	require.Equal(t, []string{"c"}, p.Abandon(*other.Request))
	require.Zero(t, p.Len())

	_, err = p.Lookup("about:blank", "", noon)
	require.ErrorIs(t, err, robotstxt.ErrLocate)
	_, _, err = p.Store(Request{}, Response{}, noon)
	require.ErrorIs(t, err, robotstxt.ErrLocate)
	require.Empty(t, p.Abandon(Request{}))
}

func TestPendingIsBounded(t *testing.T) {
	p := &Pending[int]{Cache: NewCache(Options{}), Max: 2}
	first, _ := p.Lookup(page, 1, noon)
	_, err := p.Lookup(page, 2, noon)
	require.NoError(t, err)
	for _, url := range []string{page, "https://other.test/"} {
		answer, err := p.Lookup(url, 3, noon)
		require.ErrorIs(t, err, ErrFull)
		require.Equal(t, Answer{}, answer)
	}
	_, found := p.Cache.InFlight("https://other.test/")
	require.False(t, found, "no request is in flight")
	_, released, err := p.Store(*first.Request, Response{}, noon)
	require.NoError(t, err)
	require.Equal(t, []int{1, 2}, released)
	answer, err := p.Lookup("https://other.test/", 3, noon)
	require.NoError(t, err)
	require.NotNil(t, answer.Request)

	require.Equal(t, 1_000_000, (&Pending[int]{}).limit())
	require.Greater(t, (&Pending[int]{Max: -1}).limit(), 1_000_000)
}

// TestAFlightOfSomebodyElse: Store would never learn when it ends, so the item must not wait for
// it.
func TestAFlightOfSomebodyElse(t *testing.T) {
	p := &Pending[int]{Cache: NewCache(Options{})}
	theirs := ask(t, p.Cache, page, noon)
	answer, err := p.Lookup(page, 1, noon)
	require.NoError(t, err)
	require.NotNil(t, answer.Request)
	stored, err := p.Cache.Store(theirs, whole(404, nil, ""), noon)
	require.NoError(t, err)
	require.False(t, stored.Known, "it was superseded")
	_, released, err := p.Store(*answer.Request, whole(200, nil, noAs), noon)
	require.NoError(t, err)
	require.Equal(t, []int{1}, released)
}

// TestPendingModel requires that every item is returned once, whatever happens to the requests.
func TestPendingModel(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		p := &Pending[int]{Cache: NewCache(Options{Patience: time.Hour}), Max: 30}
		var out []Request
		var waiting, released []int
		now := noon
		done := func(items []int) {
			for _, item := range items {
				i := slices.Index(waiting, item)
				require.GreaterOrEqual(t, i, 0, "seed %d: %d did not wait", seed, item)
				waiting = slices.Delete(waiting, i, i+1)
				released = append(released, item)
			}
		}
		step := func(item int) {
			now = now.Add(time.Duration(rnd.IntN(20)) * time.Minute)
			if rnd.IntN(2) == 0 {
				url := fmt.Sprintf("http://h%d.test/", rnd.IntN(5))
				answer, err := p.Lookup(url, item, now)
				if err == nil && !answer.Known {
					waiting = append(waiting, item)
				}
				if answer.Request != nil {
					out = append(out, *answer.Request)
				}
				return
			}
			if len(out) == 0 {
				return
			}
			req := out[rnd.IntN(len(out))] // also late ones, and twice
			if rnd.IntN(5) == 0 {
				done(p.Abandon(req))
				return
			}
			status := []int{200, 404, 503, 301}[rnd.IntN(4)]
			answer, items, err := p.Store(req, whole(status, fields("Location", "/r"), noAs), now)
			require.NoError(t, err)
			done(items)
			if answer.Request != nil {
				out = append(out, *answer.Request)
			}
		}
		for item := range 300 {
			step(item)
			require.Equal(t, len(waiting), p.Len())
		}
		for i := range 5 { // at last all are answered
			url := fmt.Sprintf("http://h%d.test/", i)
			if req, found := p.Cache.InFlight(url); found {
				_, items, err := p.Store(req, Response{}, now)
				require.NoError(t, err)
				done(items)
			}
			done(p.Abandon(Request{For: url}))
		}
		require.Empty(t, waiting, "seed %d", seed)
		require.Len(t, released, len(slices.Compact(slices.Sorted(slices.Values(released)))))
	}
}

// No item is lost by concurrent lookups and stores; also for the race detector.
func TestPendingIsSafeForConcurrentUse(t *testing.T) {
	p := &Pending[int]{Cache: NewCache(Options{MaxTTL: time.Nanosecond, MinTTL: time.Nanosecond})}
	var mu sync.Mutex
	seen := make(map[int]int)
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 200 {
				item := worker*1000 + i
				answer, err := p.Lookup(page, item, time.Now())
				var items []int
				switch {
				case err != nil || answer.Known:
					items = []int{item}
				case answer.Request != nil:
					runtime.Gosched()
					_, items, _ = p.Store(*answer.Request, whole(200, nil, noAs), time.Now())
				}
				mu.Lock()
				for _, item := range items {
					seen[item]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for _, item := range p.Waiting(page) { // for a request that a caller has
		seen[item]++
	}
	require.Len(t, seen, 1600)
	for item, n := range seen {
		require.Equal(t, 1, n, item)
	}
}

// A waiting item must not keep its long URL in memory.
func TestPendingKeepsNoURLs(t *testing.T) {
	p := &Pending[int]{Cache: NewCache(Options{})}
	before := liveBytes()
	for i := range 100 {
		_, err := p.Lookup(fmt.Sprintf("https://h%d.test/", i)+strings.Repeat("a", 100<<10), i, noon)
		require.NoError(t, err)
	}
	require.Less(t, liveBytes()-before, int64(1<<20))
	runtime.KeepAlive(p)
}
