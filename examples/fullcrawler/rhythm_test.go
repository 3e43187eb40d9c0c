package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/hostcache"
	"github.com/spinneret-go/spinneret/internal/memnet"
	"github.com/spinneret-go/spinneret/revisit"
)

// A press is a host that publishes in bulk: most of its pages change on the same few days. It
// counts its visits and the versions they catch.
type press struct {
	now func() time.Time

	mu     sync.Mutex
	seen   map[string]time.Time // the version served last
	visits int
	caught int // versions, beyond the first of each page
}

const (
	pressPages = 40
	pressEvery = 30 * 24 * time.Hour
	pressLasts = 300 * 24 * time.Hour
)

func (p *press) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		http.NotFound(w, r)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	version := p.now().Truncate(pressEvery)
	p.visits++
	if last, again := p.seen[r.URL.Path]; again && !last.Equal(version) {
		p.caught++
	}
	p.seen[r.URL.Path] = version
	w.Header().Set("Content-Type", "text/html")
	fmt.Fprintf(w, "<p>Edition of %v</p>", version)
	for page := 0; r.URL.Path == "/" && page < pressPages; page++ {
		fmt.Fprintf(w, `<a href="/%d">%[1]d</a> `, page)
	}
}

// TestAHostThatPublishesInBulk is crawled twice: with a policy for single pages, and with one for
// the host. The second catches more versions per visit.
func TestAHostThatPublishesInBulk(t *testing.T) {
	crawl := func(policy revisit.Policy) (visits, caught int) {
		synctest.Test(t, func(t *testing.T) {
			clock := stage.Clock{Began: time.Now(), Pace: 100_000}
			host := &press{now: clock.Now, seen: map[string]time.Time{}}
			web := serve(t, webtest.Options{
				Network:  memnet.New(),
				Handlers: map[string]http.Handler{"press.test": host},
			})
			cfg := testConfig(t, web)
			cfg.Delay, cfg.Pace, cfg.Forever, cfg.Policy = time.Millisecond, clock.Pace, true, policy
			cfg.Archive = cockpit.NoArchive
			cfg.Duration = time.Duration(float64(pressLasts) / clock.Pace)
			c, err := newCrawler(cfg, on(web))
			require.NoError(t, err)
			require.ErrorIs(t, c.run(t.Context()), cockpit.ErrTimeLimit)
			visits, caught = host.visits, host.caught
			rhythms, err := hostcache.Open[stage.Rhythm](filepath.Join(cfg.Out, cockpit.RhythmName), hostcache.Options{})
			require.NoError(t, err)
			_, kept := rhythms.Get("press.test")
			require.True(t, kept, "the rhythm is saved")
		})
		return visits, caught
	}
	bayes := revisit.Bayes{Price: 0.1, Min: time.Hour}
	alone, alonesCatch := crawl(onItsOwn{bayes})
	together, catch := crawl(bayes)
	t.Logf("page by page: %d visits, %d versions; together: %d visits, %d versions",
		alone, alonesCatch, together, catch)
	require.Greater(t, catch, pressPages*int(pressLasts/pressEvery)*6/10)
	require.Greater(t, float64(catch)/float64(together), 1.2*float64(alonesCatch)/float64(alone))
}

// onItsOwn hides the type of a policy, so that rhythms of hosts are not used.
type onItsOwn struct{ revisit.Bayes }
