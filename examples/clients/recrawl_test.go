package clients

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch/webtest"
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
