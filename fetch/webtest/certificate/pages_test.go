package certificate

import (
	"bytes"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch/webtest"
)

// The web is the same in each run, so a crawler that keeps what it fetched gets 304 for each page in the next.
func TestWhatWasKeptIsNotMissed(t *testing.T) {
	tags := make(map[string]string)
	for _, twice := range []Result{Passed, Untested} {
		synctest.Test(t, func(t *testing.T) {
			v := visit(t, webtest.Options{Hosts: 1})
			v.slowly(v.at(0) + "robots.txt")
			for _, url := range v.trial.Web.Reachable() {
				r, err := http.NewRequest(http.MethodGet, url, nil)
				require.NoError(t, err)
				r.Header.Set("If-None-Match", tags[url])
				resp, err := v.client.Do(r)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				tags[url] = resp.Header.Get("Etag")
				time.Sleep(time.Second)
			}
			require.Equal(t, Passed, v.result("robots.txt"))
			require.Equal(t, twice, v.result("twice"))
			require.Equal(t, Passed, v.result("completeness"))
		})
	}
}

// Who knows no delay, but waits in vain for each answer, has not kept any.
func TestMissingAnswersProveNoDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := visit(t, webtest.Options{Hosts: 4, Addrs: 2, Traits: func(int) webtest.Traits {
			return webtest.Traits{Latency: webtest.Latency{Median: time.Hour}}
		}})
		v.client.Timeout = 3 * time.Second
		for i := range 6 {
			_, err := v.client.Get(v.at(i/4*2) + "robots.txt")
			require.Error(t, err)
		}
		require.Equal(t, Untested, v.result("host delay"))
		require.Equal(t, Untested, v.result("address delay"))
	})
}

// Hosts of the caller's own may name the target as they like: the request for it is the same.
func TestTargetsInAnyForm(t *testing.T) {
	for _, target := range []string{
		"//h00000.vweb.test/", "//h00000.vweb.test", "//H00000.vweb.test/", "//h00000.vweb.test:80/", "//h00000.vweb.test/private/x#y",
	} {
		synctest.Test(t, func(t *testing.T) {
			own := http.RedirectHandler(target, http.StatusFound)
			v := visit(t, webtest.Options{Hosts: 1, Addrs: 2, Handlers: map[string]http.Handler{"own.test": own}})
			v.client.CheckRedirect = nil // follow them at once
			v.get(v.at(0) + "robots.txt")
			v.get("http://own.test/")
			require.Equal(t, Failed, v.result("redirects to other hosts"), target)
		})
	}
}

// Who waits for three seconds between any two requests keeps a pause of two, but has not shown that it knows of one.
func TestPausesThatAreShorterThanTheOwn(t *testing.T) {
	for own, want := range map[time.Duration]Result{time.Second: Passed, 3 * time.Second: Untested} {
		synctest.Test(t, func(t *testing.T) {
			v := visit(t, webtest.Options{Hosts: 4})
			for _, path := range []string{"x", "y"} {
				v.get(v.at(0) + path)
				time.Sleep(own)
			}
			for _, path := range []string{"robots.txt", "1", "2", "3", "4", "5", "6"} {
				v.get(v.at(1) + path)
				v.get(v.at(2) + path)
				time.Sleep(3 * time.Second)
			}
			require.Equal(t, want, v.result("Crawl-delay"))
			require.Equal(t, want, v.result("Retry-After"))
		})
	}
}

// Programs go over the proofs and their requests, such as with jq, which fails at null.
func TestListsInJSONAreLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		require.NoError(t, WriteJSON(&out, visit(t, webtest.Options{Hosts: 1}).trial.Verdicts()))
		require.NotContains(t, out.String(), "null")
	})
}
