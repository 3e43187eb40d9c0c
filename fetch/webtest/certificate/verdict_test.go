package certificate

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/internal/memnet"
)

// A visitor sends single requests, and waits a second after each.
type visitor struct {
	t      *testing.T
	trial  *Trial
	client *http.Client
}

func visit(t *testing.T, o webtest.Options) *visitor {
	t.Helper()
	o.Network = memnet.New()
	trial, err := Start(Options{Web: o})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, trial.Web.Close()) })
	c := trial.Web.Client()
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t.Cleanup(c.CloseIdleConnections)
	return &visitor{t, trial, c}
}

// at returns the URL of a host.
func (v *visitor) at(index int) string {
	for h := range v.trial.Web.Hosts() {
		if h.Index == index {
			return h.URL()
		}
	}
	return ""
}

func (v *visitor) get(url string) *http.Response {
	resp, err := v.client.Get(url)
	require.NoError(v.t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(v.t, err)
	require.NoError(v.t, resp.Body.Close())
	return resp
}

func (v *visitor) slowly(urls ...string) {
	for _, url := range urls {
		v.get(url)
		time.Sleep(time.Second)
	}
}

func (v *visitor) result(check string) Result {
	verdicts := v.trial.Verdicts()
	return verdicts[slices.IndexFunc(verdicts, func(v Verdict) bool { return v.Check == check })].Result
}

// Hosts from a directory ask for what their own robots.txt says, which nobody judges.
func TestStaticHostsHaveNoCrawlDelayOfOurs(t *testing.T) {
	dir := t.TempDir()
	for _, host := range []string{"a.test", "b.test"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, host), 0o755))
		for _, name := range []string{"robots.txt", "index.html", "x.html"} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, host, name), nil, 0o644))
		}
	}
	synctest.Test(t, func(t *testing.T) {
		v := visit(t, webtest.Options{Static: dir, Addrs: 2})
		v.slowly("http://b.test/robots.txt", "http://b.test/", "http://b.test/x.html")
		require.Equal(t, Untested, v.result("Crawl-delay"))
		require.Equal(t, Passed, v.result("robots.txt"))
	})
}

// A pause begins with the answer that asks for it, however long that took.
func TestAPauseBeginsWithTheAnswer(t *testing.T) {
	slow := webtest.Options{Hosts: 4, Traits: func(int) webtest.Traits {
		return webtest.Traits{Latency: webtest.Latency{Median: 3 * time.Second}}
	}}
	paused := func(t *testing.T, v *visitor) (page string) {
		for range 20 {
			if page = v.at(2); v.get(page).StatusCode == http.StatusTooManyRequests {
				return page
			}
			time.Sleep(time.Second)
		}
		require.Fail(t, "no pause")
		return ""
	}
	synctest.Test(t, func(t *testing.T) {
		v := visit(t, slow)
		v.get(paused(t, v))
		require.Equal(t, Failed, v.result("Retry-After"), "it came back at once")
	})
	synctest.Test(t, func(t *testing.T) {
		v := visit(t, slow)
		page := paused(t, v)
		time.Sleep(2 * time.Second)
		v.get(page)
		require.Equal(t, Passed, v.result("Retry-After"))
	})
	synctest.Test(t, func(t *testing.T) {
		v := visit(t, slow)
		done := make(chan int)
		for range 6 { // one of them is told to wait, when all have been sent
			go func() { done <- v.get(v.at(2)).StatusCode }()
			time.Sleep(100 * time.Millisecond)
		}
		var told bool
		for range 6 {
			told = <-done == http.StatusTooManyRequests || told
		}
		require.True(t, told)
		require.Equal(t, Passed, v.result("Retry-After"))
	})
}

// Hosts of the caller's own do not hide where the last generated one redirects to.
func TestRedirectsAreSeenBesideOwnHosts(t *testing.T) {
	for _, own := range []map[string]http.Handler{nil, {"own.test": http.NotFoundHandler()}} {
		synctest.Test(t, func(t *testing.T) {
			v := visit(t, webtest.Options{Hosts: 4, Addrs: 5, Handlers: own})
			v.slowly(v.at(0)+"robots.txt", v.at(3)+"robots.txt")
			v.get(v.get(v.at(3) + "trap/away").Header.Get("Location"))
			v.get(v.get(v.at(3) + "trap/away/private").Header.Get("Location"))
			require.Equal(t, Failed, v.result("redirects to other hosts"))
		})
	}
}

func TestAChangedPageMayBeFetchedAgain(t *testing.T) {
	for mean, want := range map[time.Duration]Result{time.Minute: Passed, 0: Failed} {
		synctest.Test(t, func(t *testing.T) {
			v := visit(t, webtest.Options{Hosts: 4, Traits: func(int) webtest.Traits {
				return webtest.Traits{Change: webtest.Change{Mean: mean, Periodic: true}}
			}})
			v.slowly(v.at(0)+"robots.txt", v.at(0))
			time.Sleep(2 * time.Minute)
			v.get(v.at(0))
			require.Equal(t, want, v.result("twice"))
		})
	}
}

func TestOnlyRobotsTxtIsRobotsTxt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := visit(t, webtest.Options{Hosts: 4})
		v.slowly(v.at(1)+"robots-are-nice.html", v.at(1))
		require.Equal(t, Failed, v.result("robots.txt"))
	})
}
