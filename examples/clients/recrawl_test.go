package clients

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/satstore"
)

// TestRecrawl simulates two months of a web in which half of the hosts change every day, and the
// others never.
func TestRecrawl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := startWeb(t, webtest.Options{Hosts: 4, Pages: 6, Traits: func(host int) webtest.Traits {
			traits := traits(host)
			if host%2 == 1 {
				traits.Change = webtest.Change{Mean: 20 * time.Hour, Periodic: true}
			}
			return traits
		}})
		db, err := satstore.Open(t.TempDir(), satstore.Options{})
		require.NoError(t, err)
		defer func() { require.NoError(t, db.Close()) }()
		client := &http.Client{Transport: polite(t, web)}
		_, err = db.Add(roots[0], time.Now(), nil)
		require.NoError(t, err)
		for range 60 {
			require.NoError(t, recrawl(t.Context(), db, client))
			time.Sleep(24 * time.Hour)
		}
		f := evaluate(web)
		f.requests, f.twice = 0, 0
		require.Zero(t, f)
		visits := map[bool]int{} // by whether the host changes
		for _, r := range web.Log() {
			if host, _ := web.Host(r.Host); web.IsPage(r.URL()) {
				visits[host.Index%2 == 1]++
			}
		}
		require.Greater(t, visits[true], 3*visits[false], visits)
	})
}

// TestRecrawlComesBack checks that a robots.txt that fails for an hour does not cost a month, as a
// rule that disallows the page would.
func TestRecrawlComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		fetched := 0
		web := startWeb(t, webtest.Options{Handlers: map[string]http.Handler{
			"a.test": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path != "/robots.txt":
					fetched++
				case time.Since(began) < time.Hour:
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			}),
		}})
		db, err := satstore.Open(t.TempDir(), satstore.Options{})
		require.NoError(t, err)
		defer func() { require.NoError(t, db.Close()) }()
		client := &http.Client{Transport: polite(t, web)}
		_, err = db.Add("http://a.test/", time.Now(), nil)
		require.NoError(t, err)
		for range 2 {
			require.NoError(t, recrawl(t.Context(), db, client))
			time.Sleep(24 * time.Hour)
		}
		require.Equal(t, 1, fetched)
	})
}

// TestGet checks the program of the guide, with the archive that it leaves.
func TestGet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := startWeb(t, webtest.Options{Hosts: 1, Pages: 1})
		dir := t.TempDir()
		o := fetch.Options{UserAgent: userAgent, Dial: web.Dial, Resolve: web.Resolve, Reach: fetch.Loopback, MaxIdle: -1}
		began := time.Now()
		body, err := get(dir, roots[0], o)
		require.NoError(t, err)
		require.Equal(t, 5*time.Second, time.Since(began).Round(time.Second))
		_, err = get(dir, roots[0]+"private/", o)
		require.ErrorIs(t, err, robots.ErrDisallowed)

		kept, err := archive.Open(dir, archive.Options{})
		require.NoError(t, err)
		defer func() { require.NoError(t, kept.Close()) }()
		version, err := kept.At(roots[0], time.Now())
		require.NoError(t, err)
		archived, err := kept.Body(version)
		require.NoError(t, err)
		require.Equal(t, string(body), string(archived))
	})
}
