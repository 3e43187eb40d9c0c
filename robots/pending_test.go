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
	answer, _, err := p.Lookup(page, "a", noon)
	require.NoError(t, err)
	req := *answer.Request
	answer, _, err = p.Lookup("https://h.test/b", "b", noon)
	require.NoError(t, err)
	require.Equal(t, Answer{}, answer)
	other, _, err := p.Lookup("http://h.test/c", "c", noon)
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

	answer, _, err = p.Lookup(page, "d", noon)
	require.NoError(t, err)
	require.True(t, answer.Known)
	require.False(t, answer.Rules.Allowed(page))
	require.Equal(t, []string{"c"}, p.Abandon(*other.Request))
	require.Zero(t, p.Len())

	_, _, err = p.Lookup("about:blank", "", noon)
	require.ErrorIs(t, err, robotstxt.ErrLocate)
	_, _, err = p.Store(Request{}, Response{}, noon)
	require.ErrorIs(t, err, robotstxt.ErrLocate)
	require.Empty(t, p.Abandon(Request{}))
}

func TestPendingIsBounded(t *testing.T) {
	p := &Pending[int]{Cache: NewCache(Options{}), Max: 2}
	first, _, _ := p.Lookup(page, 1, noon)
	_, _, err := p.Lookup(page, 2, noon)
	require.NoError(t, err)
	for _, url := range []string{page, "https://other.test/"} {
		answer, _, err := p.Lookup(url, 3, noon)
		require.ErrorIs(t, err, ErrFull)
		require.Equal(t, Answer{}, answer)
	}
	_, found := p.Cache.InFlight("https://other.test/")
	require.False(t, found, "no request is in flight")
	_, released, err := p.Store(*first.Request, Response{}, noon)
	require.NoError(t, err)
	require.Equal(t, []int{1, 2}, released)
	answer, _, err := p.Lookup("https://other.test/", 3, noon)
	require.NoError(t, err)
	require.NotNil(t, answer.Request)

	_, err = p.Cache.Store(*answer.Request, whole(404, nil, ""), noon)
	require.NoError(t, err)
	_, _, err = p.Lookup(page, 4, noon.Add(time.Hour))
	require.NoError(t, err)
	answer, ready, err := p.Lookup("https://other.test/", 5, noon)
	require.NoError(t, err)
	require.True(t, answer.Known, "what is known needs no room")
	require.Equal(t, []int{3}, ready)

	require.Equal(t, 1_000_000, (&Pending[int]{}).limit())
	require.Greater(t, (&Pending[int]{Max: -1}).limit(), 1_000_000)
}

// TestARedirectForWhichNothingWaits is followed once, as that of any other request.
func TestARedirectForWhichNothingWaits(t *testing.T) {
	p := &Pending[int]{Cache: NewCache(Options{})}
	late, _, err := p.Lookup(page, 1, noon)
	require.NoError(t, err)
	later := noon.Add(time.Hour)
	second, _, err := p.Lookup(page, 2, later)
	require.NoError(t, err)
	require.Equal(t, []int{1, 2}, p.Abandon(*second.Request))
	next, _, err := p.Store(*late.Request, whole(302, fields("Location", "/r"), ""), later)
	require.NoError(t, err)
	require.NotNil(t, next.Request)
	answer, _, err := p.Lookup(page, 3, later)
	require.NoError(t, err)
	require.Equal(t, Answer{}, answer)
	_, released, err := p.Store(*next.Request, whole(404, nil, ""), later)
	require.NoError(t, err)
	require.Equal(t, []int{3}, released)
	require.Empty(t, p.hosts)
}

// TestWhoIsRefusedTakesNoRoom: neither a full Pending nor a request that is never made costs others
// their files.
func TestWhoIsRefusedTakesNoRoom(t *testing.T) {
	c := NewCache(Options{MaxBytes: 100_000})
	p := &Pending[int]{Cache: c, Max: 10}
	urls := make([]string, 20)
	for i := range urls {
		urls[i] = fmt.Sprintf("https://good%d.test/", i)
		tell(t, c, ask(t, c, urls[i], noon), whole(200, nil, noAs), noon)
	}
	for i := range 10 {
		_, _, err := p.Lookup("https://slow.test/", i, noon)
		require.NoError(t, err)
	}
	for i := range 1000 {
		url := fmt.Sprintf("https://n%d.test/", i)
		_, _, err := p.Lookup(url, i, noon)
		require.ErrorIs(t, err, ErrFull)
	}
	require.Equal(t, Stats{Hosts: 21, InFlight: 1, Bytes: c.Stats().Bytes}, c.Stats())
	for i := range 1000 {
		c.Abandon(ask(t, c, fmt.Sprintf("https://n%d.test/", i), noon))
	}
	for _, url := range urls {
		_, known := c.Get(url, noon)
		require.True(t, known, url)
	}
}

// TestAFlightOfSomebodyElse: Store would never learn when it ends, so the item must not wait for
// it alone. The first response counts, and either ends the wait.
func TestAFlightOfSomebodyElse(t *testing.T) {
	p := &Pending[int]{Cache: NewCache(Options{})}
	theirs := ask(t, p.Cache, page, noon)
	answer, _, err := p.Lookup(page, 1, noon)
	require.NoError(t, err)
	require.Equal(t, theirs, *answer.Request, "it is not superseded")
	answer, _, err = p.Lookup(page, 2, noon)
	require.NoError(t, err)
	require.Equal(t, Answer{}, answer, "only once")
	stored, err := p.Cache.Store(theirs, whole(404, nil, ""), noon)
	require.NoError(t, err)
	require.True(t, stored.Known)
	_, released, err := p.Store(theirs, whole(200, nil, noAs), noon)
	require.NoError(t, err)
	require.Equal(t, []int{1, 2}, released)
	require.Empty(t, p.Abandon(theirs))
}

// TestPendingModel requires that every item comes out once, whatever happens to the requests: as
// soon as each request to its host is answered or abandoned once, in any order, none waits. Somebody
// else uses the same cache, which is too small, and requests are late, or answered twice. What comes
// out is looked up again at once, and that asks for nothing that this Pending is still to answer.
func TestPendingModel(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		cache := NewCache(Options{Patience: time.Hour, MaxBytes: (3 + rnd.IntN(5)) * 3000})
		p := &Pending[int]{Cache: cache, Max: 30}
		var out, old, theirs []Request      // of out, none is answered
		waiting, all := map[int]string{}, 0 // waiting items and their hosts
		now := noon
		var done func(items []int)
		look := func(item int, url string) {
			_, before := cache.InFlight(url)
			answer, ready, err := p.Lookup(url, item, now)
			if err == nil && !answer.Known {
				waiting[item] = url
				all++
			}
			if answer.Request != nil {
				asked := slices.ContainsFunc(out, func(r Request) bool {
					return r.Flight == answer.Request.Flight && r.Hop == answer.Request.Hop
				})
				require.False(t, asked && before, "seed %d: asked twice at once", seed)
				out = append(out, *answer.Request)
			}
			done(ready)
		}
		done = func(items []int) {
			urls := make([]string, len(items))
			for i, item := range items {
				require.Contains(t, waiting, item, "seed %d", seed)
				urls[i] = waiting[item]
				delete(waiting, item)
			}
			for i, item := range items {
				look(item, urls[i])
			}
		}
		respond := func(req Request) {
			if rnd.IntN(5) == 0 {
				done(p.Abandon(req))
				return
			}
			status := []int{200, 404, 503, 301}[rnd.IntN(4)]
			answer, items, err := p.Store(req, whole(status, fields("Location", "/r"), noAs), now)
			require.NoError(t, err)
			if answer.Request != nil {
				out = append(out, *answer.Request)
			}
			done(items)
		}
		take := func(requests *[]Request) (req Request, ok bool) {
			if len(*requests) == 0 {
				return req, false
			}
			i := rnd.IntN(len(*requests))
			req = (*requests)[i]
			*requests = slices.Delete(*requests, i, i+1)
			return req, true
		}
		for item := range 300 {
			now = now.Add(time.Duration(rnd.IntN(20)) * time.Minute)
			url := fmt.Sprintf("http://h%d.test/", rnd.IntN(8))
			switch rnd.IntN(8) {
			case 0, 1, 2:
				look(item, url)
			case 3, 4:
				if req, ok := take(&out); ok {
					old = append(old, req)
					respond(req)
				}
			case 5:
				if req, ok := take(&old); ok { // a second time
					respond(req)
				}
			case 6:
				if answer, err := cache.Lookup(url, now); err == nil && answer.Request != nil {
					theirs = append(theirs, *answer.Request)
				}
			case 7:
				if req, ok := take(&theirs); ok {
					_, err := cache.Store(req, whole(200, nil, noAs), now)
					require.NoError(t, err)
				}
			}
			require.Equal(t, len(waiting), p.Len())
			for item, url := range waiting {
				require.True(t, slices.ContainsFunc(out, func(r Request) bool { return r.For == url+"robots.txt" }),
					"seed %d: nothing will release item %d of %s", seed, item, url)
			}
		}
		require.NotZero(t, all)
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
				answer, items, err := p.Lookup(page, item, time.Now())
				switch {
				case err != nil || answer.Known:
					items = append(items, item)
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
		_, _, err := p.Lookup(fmt.Sprintf("https://h%d.test/", i)+strings.Repeat("a", 100<<10), i, noon)
		require.NoError(t, err)
	}
	require.Less(t, liveBytes()-before, int64(1<<20))
	runtime.KeepAlive(p)
}
