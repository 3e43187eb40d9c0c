package main

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/internal/memnet"
)

// TestAWallIsNotThePage crawls a page that never changes. From its second visit on, a wall answers
// with another challenge each time, and the status 200.
func TestAWallIsNotThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var visits atomic.Int64
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Content-Type", "text/html")
			if n := visits.Add(1); n > 1 {
				w.Header().Set("Cf-Mitigated", "challenge")
				fmt.Fprintf(w, "challenge %d <a href=/trap>solve it</a>", n)
				return
			}
			_, _ = io.WriteString(w, "the page")
		})
		web := serve(t, webtest.Options{
			Network: memnet.New(), Handlers: map[string]http.Handler{"a.test": handler},
		})
		cfg := politeConfig(t, web)
		cfg.Archive = "gzip"
		cfg.Forever, cfg.Duration = true, 27*time.Hour
		var err error
		cfg.Policy, err = cockpit.ParsePolicy("1h", 0, time.Hour, time.Hour)
		require.NoError(t, err)
		c, err := newCrawler(cfg, on(web))
		require.NoError(t, err)
		require.ErrorIs(t, c.run(t.Context()), cockpit.ErrTimeLimit)

		fates := fatesIn(t, cfg.Out)
		require.Equal(t, 1, fates[stage.Fetched])
		require.GreaterOrEqual(t, fates[stage.Walled], 2)
		require.Less(t, visits.Load(), int64(6), "it comes back once a day or less, not every hour")
		for _, r := range web.Log() {
			require.NotEqual(t, "/trap", r.Path, "a wall has no links")
		}
		for _, rec := range readArchive(t, cfg.Out) {
			require.NotContains(t, string(rec.block), "challenge")
		}
	})
}

// TestAWallBeforeRobots: rules that a wall hides are no permission.
func TestAWallBeforeRobots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cf-Mitigated", "challenge")
			w.WriteHeader(http.StatusForbidden)
		})
		web := serve(t, webtest.Options{
			Network: memnet.New(), Handlers: map[string]http.Handler{"a.test": handler},
		})
		cfg := politeConfig(t, web)
		crawlWeb(t, web, cfg)
		require.Equal(t, map[stage.Fate]int{stage.RobotsUnreachable: 1}, fatesIn(t, cfg.Out))
	})
}
