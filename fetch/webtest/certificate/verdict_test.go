package certificate

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// all gets all pages of a host that robots.txt allows.
func (v *visitor) all(index int) {
	for h := range v.trial.Web.Hosts() {
		for url := range h.Pages() {
			if h.Index == index && v.trial.Web.Allows(url) {
				v.slowly(url)
			}
		}
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
		require.Equal(t, Untested, v.result("robots.txt"))
		v.get("http://a.test/")
		v.get("http://a.test/x.html")
		require.Equal(t, Failed, v.result("robots.txt"), "its rules are its own, but it was not asked")
	})
}

// What asks for a pause need not be a throttle of the trial.
func TestEveryRetryAfterCounts(t *testing.T) {
	busy := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	o := webtest.Options{Hosts: 1, Handlers: map[string]http.Handler{"own.test": http.HandlerFunc(busy)},
		Traits: func(int) webtest.Traits { return webtest.Traits{Traps: webtest.TrapTooMany | webtest.TrapUnavailable} }}
	for url, pause := range map[string]time.Duration{
		"http://own.test/": 2 * time.Second, "http://h00000.vweb.test/trap/429": time.Hour,
		"http://h00000.vweb.test/trap/503": time.Hour,
	} {
		for wait, want := range map[time.Duration]Result{pause / 2: Failed, pause: Passed} {
			synctest.Test(t, func(t *testing.T) {
				v := visit(t, o)
				v.slowly(v.at(0)+"x", v.at(0)+"y") // without a pause, it comes sooner
				v.get(url)
				time.Sleep(wait)
				v.get(url)
				require.Equal(t, want, v.result("Retry-After"), url)
			})
		}
	}
}

func TestCrawlDelayElsewhere(t *testing.T) {
	for _, mode := range []webtest.RobotsMode{webtest.RobotsRedirect, webtest.RobotsHuge, webtest.RobotsRedirectHost} {
		synctest.Test(t, func(t *testing.T) {
			v := visit(t, webtest.Options{Hosts: 4, Traits: func(host int) webtest.Traits {
				return webtest.Traits{Robots: webtest.Robots{Mode: mode, CrawlDelay: time.Minute}}
			}})
			v.slowly(v.at(1)+"robots.txt", v.at(1), v.at(1)+"x")
			require.Equal(t, Failed, v.result("Crawl-delay"))
		})
	}
}

// Who asks for robots.txt has to wait for the answer, and that of another host does not count.
func TestRobotsTxtIsAwaited(t *testing.T) {
	slow := webtest.Options{Hosts: 4, Traits: func(int) webtest.Traits {
		return webtest.Traits{Latency: webtest.Latency{Median: 3 * time.Second}}
	}}
	for wait, want := range map[time.Duration]Result{2 * time.Second: Failed, 4 * time.Second: Passed} {
		synctest.Test(t, func(t *testing.T) {
			v := visit(t, slow)
			asked := make(chan int)
			go func() { asked <- v.get(v.at(1) + "robots.txt").StatusCode }()
			time.Sleep(wait)
			v.get(v.at(1))
			<-asked
			v.slowly(v.at(0)+"robots.txt", v.at(0))
			v.all(0) // of which one links to a page that is disallowed
			require.Equal(t, want, v.result("robots.txt"))
		})
	}
	synctest.Test(t, func(t *testing.T) {
		v := visit(t, webtest.Options{Hosts: 4})
		v.slowly(v.at(1)+"robots-rules.txt", v.at(1))
		require.Equal(t, Failed, v.result("robots.txt"))
	})
}

// A user may ask for what robots.txt disallows, also after the crawler has read that.
func TestTheSeedIsExempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := visit(t, webtest.Options{Hosts: 4, Traits: func(int) webtest.Traits {
			return webtest.Traits{Robots: webtest.Robots{Mode: webtest.RobotsError}}
		}})
		v.slowly(v.at(0)+"robots.txt", v.at(0))
		require.NotEqual(t, Failed, v.result("robots.txt"))
		v.slowly(v.at(0) + "x")
		require.Equal(t, Failed, v.result("robots.txt"))
	})
}

// A crawler that met no link to a disallowed page has not obeyed anything.
func TestRobotsTxtIsUntestedWithoutTemptation(t *testing.T) {
	results := map[Result]int{}
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			v := visit(t, webtest.Options{Seed: seed, Hosts: 1})
			v.slowly(v.at(0) + "robots.txt")
			v.all(0)
			results[v.result("robots.txt")]++
		})
	}
	require.Zero(t, results[Failed])
	require.NotZero(t, results[Untested])
	require.NotZero(t, results[Passed])
}

// Where the target allows everything, a redirect leads to nothing disallowed.
func TestRedirectsToOpenHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := visit(t, webtest.Options{Hosts: 12, Addrs: 12, Traits: func(host int) webtest.Traits {
			return webtest.Traits{Robots: webtest.Mixed(host).Robots}
		}})
		v.slowly(v.at(7)+"robots.txt", v.at(8)+"robots.txt")
		v.slowly(v.get(v.at(7) + "trap/away/private").Header.Get("Location"))
		require.Equal(t, Passed, v.result("redirects to other hosts"))
	})
}

func TestTheTraitsOfTheOptionsStay(t *testing.T) {
	throttle := webtest.Throttle{Every: 1, Status: http.StatusServiceUnavailable, RetryAfter: time.Minute}
	synctest.Test(t, func(t *testing.T) {
		v := visit(t, webtest.Options{Hosts: 4, Traits: func(int) webtest.Traits {
			return webtest.Traits{Throttle: throttle, Robots: webtest.Robots{CrawlDelay: time.Minute}}
		}})
		resp := v.get(v.at(2))
		require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
		require.Equal(t, "60", resp.Header.Get("Retry-After"))
		require.Equal(t, time.Minute, v.trial.Web.CrawlDelay("h00001.vweb.test"))
	})
}

// Only a page whose content was sent has been fetched.
func TestHeadersAreNoPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := visit(t, webtest.Options{Hosts: 1, Pages: 1})
		resp, err := v.client.Head(v.at(0))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, Partial, v.result("completeness"))
		v.get(v.at(0))
		require.Equal(t, Passed, v.result("completeness"))
		require.Equal(t, Untested, v.result("twice"), "it could not fetch another page again")
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
		page := paused(t, v)
		time.Sleep(3 * time.Millisecond)
		v.get(page)
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
		require.Equal(t, Untested, v.result("Retry-After"))
	})
}

// A pause holds also while an earlier request is still waiting for its own.
func TestASlowAnswerHidesNoPause(t *testing.T) {
	busy := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			time.Sleep(time.Minute)
		}
		w.Header().Set("Retry-After", "10")
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	synctest.Test(t, func(t *testing.T) {
		v := visit(t, webtest.Options{Handlers: map[string]http.Handler{"own.test": http.HandlerFunc(busy)}})
		go v.get("http://own.test/slow")
		time.Sleep(time.Second)
		v.slowly("http://own.test/a", "http://own.test/b")
		time.Sleep(2 * time.Minute)
		require.Equal(t, Failed, v.result("Retry-After"))
	})
}

// A request that was sent when the answer was could not know of it. With fake time, that is the same
// instant, and with real time up to two milliseconds.
func TestWhatIsSentWithTheAnswer(t *testing.T) {
	for way := time.Duration(0); way < 2*time.Millisecond; way += 400 * time.Microsecond {
		synctest.Test(t, func(t *testing.T) {
			v := visit(t, webtest.Options{Hosts: 4, Traits: func(int) webtest.Traits {
				return webtest.Traits{Latency: webtest.Latency{Median: time.Second}}
			}})
			for sent := range 5 { // the last one is told to wait
				go v.get(v.at(2) + strconv.Itoa(sent))
				time.Sleep(time.Second)
			}
			time.Sleep(way)
			go v.get(v.at(2))
			time.Sleep(5 * time.Second)
			require.Equal(t, Untested, v.result("Retry-After"))
		})
	}
}

// Who comes late in any case has not shown that it knows of a pause.
func TestPausesThatAreKeptByChance(t *testing.T) {
	for wait, want := range map[time.Duration]Result{
		time.Second: Failed, 2 * time.Second: Passed, 3 * time.Second: Passed, 5 * time.Second: Untested,
	} {
		synctest.Test(t, func(t *testing.T) {
			v := visit(t, webtest.Options{Hosts: 4})
			for host, first := range map[int]string{1: "robots.txt", 2: ""} {
				v.slowly(v.at(host) + first)
				for i := range 4 {
					v.get(v.at(host) + strconv.Itoa(i))
					time.Sleep(wait)
				}
				v.slowly(v.at(host))
			}
			require.Equal(t, want, v.result("Crawl-delay"))
			require.Equal(t, want, v.result("Retry-After"))
		})
	}
}

// Who asked each second until it was told to wait, and then waited long, knows of the pause.
func TestLongPausesOfQuickCrawlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := visit(t, webtest.Options{Hosts: 4})
		for i := range 5 {
			v.slowly(v.at(2) + strconv.Itoa(i))
		}
		time.Sleep(time.Minute)
		v.slowly(v.at(2))
		require.Equal(t, Passed, v.result("Retry-After"))
	})
}

// A request for robots.txt is one, and so is none of the pause between two pages.
func TestRobotsTxtBetweenPagesIsNoPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := visit(t, webtest.Options{Hosts: 4})
		for i := range 3 {
			v.slowly(v.at(1)+"robots.txt", v.at(1)+strconv.Itoa(i))
		}
		require.Equal(t, Passed, v.result("host delay"))
		require.Equal(t, Failed, v.result("Crawl-delay"))
	})
}

// A crawler need not follow a redirect, and its target may be early for its address by other ways.
func TestTheAddressOfATargetIsAnotherMatter(t *testing.T) {
	for delay, want := range map[time.Duration]Result{1500 * time.Millisecond: Passed, 500 * time.Millisecond: Failed} {
		synctest.Test(t, func(t *testing.T) {
			v := visit(t, webtest.Options{Hosts: 12, Addrs: 4})
			v.slowly(v.at(3) + "robots.txt")
			v.get(v.at(4) + "robots.txt")
			time.Sleep(delay)
			v.get(v.at(3) + "trap/away")
			v.get(v.at(8) + "robots.txt") // another host at the address of the target
			v.get(v.at(4))
			require.Equal(t, Failed, v.result("address delay"))
			require.Equal(t, want, v.result("redirects to other hosts"))
		})
	}
}

// Without the proxy, a request to a private address comes to no log.
func TestPrivateAddressesAreUntestedWithoutTheProxy(t *testing.T) {
	for _, proxied := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			v := visit(t, webtest.Options{Hosts: 1, Traits: func(int) webtest.Traits {
				return webtest.Traits{Traps: webtest.TrapAddress}
			}})
			v.trial.Proxied = proxied
			v.slowly(v.at(0)+"trap/address", v.at(0)+"trap/address", v.at(0)+"trap/address/redirect", v.at(0)+"trap/address/no")
			want := map[bool]string{false: "untested (0 of 0", true: "passed (0 of 2"}[proxied]
			verdicts := v.trial.Verdicts()
			require.Contains(t, verdicts[6].String(), "private addresses: "+want)
		})
	}
}

// Of short delays, 5 % are less than a process that shares its processor can keep.
func TestTheLeastDelay(t *testing.T) {
	for delay, want := range map[time.Duration]time.Duration{
		0: 0, 2 * time.Millisecond: time.Millisecond, 20 * time.Millisecond: 15 * time.Millisecond,
		time.Second: 950 * time.Millisecond,
	} {
		require.Equal(t, want, least(delay))
	}
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

// Pages may change by another clock than that of the log.
func TestAChangedPageOfAnotherClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		day := webtest.Change{Mean: 24 * time.Hour, Periodic: true}
		start := time.Now()
		v := visit(t, webtest.Options{
			Hosts: 4, Traits: func(int) webtest.Traits { return webtest.Traits{Change: day} },
			Now: func() time.Time { return start.Add(24 * 3600 * time.Since(start)) },
		})
		v.slowly(v.at(0)+"robots.txt", v.at(0), v.at(0), v.at(0))
		require.Equal(t, Passed, v.result("twice"))
	})
}

func TestOnlyRobotsTxtIsRobotsTxt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := visit(t, webtest.Options{Hosts: 4})
		v.slowly(v.at(1)+"robots-are-nice.html", v.at(1))
		require.Equal(t, Failed, v.result("robots.txt"))
	})
}

// A redirect may be as slow as any other answer.
func TestSlowRedirectsAreFollowedEarlyToo(t *testing.T) {
	for _, latency := range []time.Duration{0, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			v := visit(t, webtest.Options{Hosts: 4, Traits: func(int) webtest.Traits {
				return webtest.Traits{Latency: webtest.Latency{Median: latency}}
			}})
			v.slowly(v.at(0)+"robots.txt", v.at(3)+"robots.txt")
			time.Sleep(latency)
			to := v.get(v.at(3) + "trap/away").Header.Get("Location")
			go v.get(v.at(0) + "x")
			time.Sleep(time.Second / 2)
			v.get(to)
			require.Equal(t, Failed, v.result("redirects to other hosts"), latency)
		})
	}
}

// Who asks for the header of robots.txt alone does not know the rules.
func TestHeadersAreNoRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := visit(t, webtest.Options{Hosts: 4})
		resp, err := v.client.Head(v.at(1) + "robots.txt")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		time.Sleep(time.Second)
		v.get(v.at(1))
		require.Equal(t, Failed, v.result("robots.txt"))
	})
}

// Who was turned away from the page that leads to private addresses has not met them.
func TestPrivateAddressesAreUntestedWithoutTheirPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := visit(t, webtest.Options{Hosts: 1, Traits: func(int) webtest.Traits {
			return webtest.Traits{Traps: webtest.TrapAddress, Throttle: webtest.Throttle{Every: 1}}
		}})
		v.trial.Proxied = true
		require.Equal(t, http.StatusTooManyRequests, v.get(v.at(0)+"trap/address").StatusCode)
		require.Equal(t, Untested, v.result("private addresses"))
	})
}
