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
)

// TestTenants: each archive has the pages of its tenant, and the delays hold across tenants.
func TestTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := startWeb(t, webtest.Options{Hosts: 2, Addrs: 1, Pages: 3})
		guarded, err := fetch.New(fetch.Options{
			UserAgent: userAgent, Dial: web.Dial, Resolve: web.Resolve, Reach: fetch.Loopback,
		})
		require.NoError(t, err)
		t.Cleanup(guarded.CloseIdleConnections)
		var archives []*archive.Archive
		for range 2 {
			kept, err := archive.Open(t.TempDir(), archive.Options{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, kept.Close()) })
			archives = append(archives, kept)
		}
		for n, transport := range tenants(guarded.Transport(), archives...) {
			for _, url := range []string{"http://h00000.vweb.test/", "http://h00001.vweb.test/"} {
				resp, err := (&http.Client{Transport: transport}).Get(url)
				require.NoError(t, err)
				save(resp)
				_, err = archives[n].At(url, time.Time{})
				require.NoError(t, err)
			}
		}
		require.Len(t, web.Log(), 2+2*2, "each robots.txt was fetched once")
		require.Empty(t, web.Early(delay))
		require.EqualValues(t, 4, archives[0].Stats().Captures, "with both robots.txt")
		require.EqualValues(t, 2, archives[1].Stats().Captures)
	})
}
