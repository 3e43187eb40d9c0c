package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/revisit"
)

// promptly is how soon after its last request a crawl ends: there is a commit before it.
const promptly = 200 * time.Millisecond

// A lastSite is a site of numbered pages that knows when its last request came.
type lastSite struct {
	fakeSite
	pages  int
	fanOut int // links of a page
	takes  time.Duration
	robots string
	answer func(page int) (status int, retryAfter time.Duration) // nil means 200

	at   sync.Mutex
	last time.Time
}

func newLastSite(pages int) *lastSite {
	s := &lastSite{pages: pages, fanOut: 2}
	s.fakeSite.addr, s.fakeSite.serve = loopback, s.page
	return s
}

// page has links to the pages of the next level of a tree.
func (s *lastSite) page(w http.ResponseWriter, r *http.Request) {
	defer func() {
		s.at.Lock()
		s.last = time.Now()
		s.at.Unlock()
	}()
	if r.URL.Path == "/robots.txt" {
		fmt.Fprint(w, s.robots)
		return
	}
	n, _ := strconv.Atoi(r.URL.Path[1:]) // the front page is page 0
	if s.answer != nil {
		status, after := s.answer(n)
		if after > 0 {
			w.Header().Set("Retry-After", fmt.Sprint(int(after.Seconds())))
		}
		if status != http.StatusOK {
			w.WriteHeader(status)
			return
		}
	}
	time.Sleep(s.takes)
	for to := s.fanOut*n + 1; to <= s.fanOut*(n+1) && to < s.pages; to++ {
		fmt.Fprintf(w, "<p>page %d<a href=/%d>x</a>", n, to)
	}
}

// crawl runs a crawl, and returns how long it went on after the last request.
func (s *lastSite) crawl(t *testing.T, cfg cockpit.Config, before func(*crawler)) (idle time.Duration, err error) {
	t.Helper()
	c, err := newCrawler(cfg, s.network(t, "127.9.9.9"))
	require.NoError(t, err)
	if before != nil {
		before(c)
	}
	s.last = time.Now()
	err = c.run(t.Context())
	return time.Since(s.last), err
}

func (s *lastSite) requirePages(t *testing.T, each int) {
	t.Helper()
	got := map[string]int{}
	for _, url := range s.requested("") {
		got[url]++
	}
	for page := 1; page < s.pages; page++ {
		require.Equal(t, each, got[fmt.Sprintf("http://a.test/%d", page)], "requests for page %d", page)
	}
}

// TestACrawlEndsWithItsLastPage: as soon as no page waits for its turn, there is nothing to wait for.
func TestACrawlEndsWithItsLastPage(t *testing.T) {
	for name, change := range map[string]func(*lastSite, *cockpit.Config){
		"without a delay":    func(_ *lastSite, cfg *cockpit.Config) { cfg.Delay = 0 },
		"with a short delay": func(_ *lastSite, cfg *cockpit.Config) { cfg.Delay = 100 * time.Millisecond },
		"with a long delay":  func(_ *lastSite, cfg *cockpit.Config) { cfg.Delay = time.Minute },
		"with patience":      func(_ *lastSite, cfg *cockpit.Config) { cfg.Wait = time.Hour },
		"without room":       func(_ *lastSite, cfg *cockpit.Config) { cfg.Queue = 1 },
		"by rank":            func(_ *lastSite, cfg *cockpit.Config) { cfg.ByRank = true },
		"that was slow": func(s *lastSite, cfg *cockpit.Config) {
			cfg.Delay, s.takes, s.pages, s.fanOut = 0, time.Second, 150, 150
		},
		"with revisits at once": func(_ *lastSite, cfg *cockpit.Config) {
			cfg.Delay, cfg.Policy = 0, revisit.Every(time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, cfg := newLastSite(300), siteConfig(t, "http://a.test/")
				change(s, &cfg)
				idle, err := s.crawl(t, cfg, nil)
				require.NoError(t, err)
				s.requirePages(t, 1)
				require.Less(t, idle, promptly)
			})
		})
	}
}

// TestWhatACrawlDoesNotWaitFor: pages that will not be fetched do not delay its end.
func TestWhatACrawlDoesNotWaitFor(t *testing.T) {
	for name, change := range map[string]func(*lastSite, *cockpit.Config){
		"disallowed pages": func(s *lastSite, _ *cockpit.Config) {
			s.robots = "User-agent: *\nDisallow: /1\nDisallow: /2\n"
		},
		"retries tomorrow": func(s *lastSite, _ *cockpit.Config) {
			s.answer = func(n int) (int, time.Duration) {
				if n%3 == 1 {
					return http.StatusNotFound, 0
				}
				return http.StatusOK, 0
			}
		},
		"a host that pauses for longer": func(s *lastSite, _ *cockpit.Config) {
			s.answer = func(n int) (int, time.Duration) {
				if n == 20 {
					return http.StatusServiceUnavailable, time.Hour
				}
				return http.StatusOK, 0
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, cfg := newLastSite(100), siteConfig(t, "http://a.test/")
				cfg.Wait = 3 * time.Minute
				change(s, &cfg)
				idle, err := s.crawl(t, cfg, nil)
				require.NoError(t, err)
				require.Less(t, idle, promptly)
				again, err := s.crawl(t, cfg, nil)
				require.NoError(t, err)
				require.Less(t, again, promptly+cfg.Delay)
			})
		})
	}
}

// TestACrawlWaitsForRetries that are within its patience, and not for longer.
func TestACrawlWaitsForRetries(t *testing.T) {
	for name, answer := range map[string]func(again bool) (int, time.Duration){
		"a server's request": func(again bool) (int, time.Duration) {
			if again {
				return http.StatusOK, 0
			}
			return http.StatusServiceUnavailable, 4 * time.Minute
		},
		"a broken page": func(again bool) (int, time.Duration) {
			if again {
				return http.StatusOK, 0
			}
			return http.StatusInternalServerError, 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, cfg := newLastSite(50), siteConfig(t, "http://a.test/")
				cfg.Wait = 2 * time.Hour
				tried := map[int]bool{}
				s.answer = func(n int) (int, time.Duration) {
					if n < 40 {
						return http.StatusOK, 0
					}
					s.at.Lock()
					defer s.at.Unlock()
					again := tried[n]
					tried[n] = true
					return answer(again)
				}
				idle, err := s.crawl(t, cfg, nil)
				require.NoError(t, err)
				require.Less(t, idle, promptly)
				for page := 40; page < s.pages; page++ {
					require.Len(t, s.requested(fmt.Sprintf("/%d", page)), 2)
				}
			})
		})
	}
}

// TestACrawlWaitsForAPausedHost until the operator resumes it.
func TestACrawlWaitsForAPausedHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cfg := newLastSite(100), siteConfig(t, "http://a.test/")
		idle, err := s.crawl(t, cfg, func(c *crawler) {
			time.AfterFunc(time.Minute, func() { c.Paused.Add("a.test") })
			time.AfterFunc(3*time.Hour, func() { c.Paused.Remove("a.test") })
		})
		require.NoError(t, err)
		s.requirePages(t, 1)
		require.Less(t, idle, promptly)
	})
}

// TestAResumedCrawlWaitsForTurns that an earlier run gave to pages, even if none is due for a while.
func TestAResumedCrawlWaitsForTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cfg := newLastSite(30), siteConfig(t, "http://a.test/")
		cfg.Delay, cfg.Pages = 10*time.Minute, 4
		_, err := s.crawl(t, cfg, nil)
		require.ErrorIs(t, err, cockpit.ErrPageLimit)
		cfg.Pages = 0
		idle, err := s.crawl(t, cfg, nil)
		require.NoError(t, err)
		s.requirePages(t, 1)
		require.Less(t, idle, promptly)
	})
}

// TestPostponedRevisitsAreMade before a crawl ends, though there is no room for them when they are
// due, and by the next run if the crawl is interrupted.
func TestPostponedRevisitsAreMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cfg := newLastSite(60), siteConfig(t, "http://a.test/")
		cfg.Policy = revisit.Every(24 * time.Hour)
		_, err := s.crawl(t, cfg, nil)
		require.NoError(t, err)
		time.Sleep(25 * time.Hour)
		cfg.Pages = 20
		_, err = s.crawl(t, cfg, nil)
		require.ErrorIs(t, err, cockpit.ErrPageLimit)
		cfg.Pages = 0
		idle, err := s.crawl(t, cfg, nil)
		require.NoError(t, err)
		s.requirePages(t, 2)
		require.Less(t, idle, promptly)
	})
}

// TestASeedAskedAgainLeavesNoRetryBehind: the next command asks for a failed seed at once. Its old
// retry is then no reason to go on, and a new one is due no earlier than the store has it.
func TestASeedAskedAgainLeavesNoRetryBehind(t *testing.T) {
	for name, second := range map[string]int{"mended": http.StatusOK, "busy": http.StatusServiceUnavailable} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, cfg := newLastSite(1), siteConfig(t, "http://a.test/", "http://a.test/1")
				cfg.Wait = 2 * time.Hour
				status := http.StatusForbidden
				s.answer = func(int) (int, time.Duration) { return status, 0 }
				idle, err := s.crawl(t, cfg, nil)
				require.NoError(t, err)
				require.Less(t, idle, promptly)
				status = second
				idle, err = s.crawl(t, cfg, nil)
				require.NoError(t, err)
				require.Less(t, idle, promptly)
				require.Len(t, s.requested("a.test/1"), 2)
			})
		})
	}
}

// TestBarredPagesDelayNoEnd: pages that the lists have barred since they were found are no reason to
// wait, neither then nor in the next run. If they are allowed again, they are fetched.
func TestBarredPagesDelayNoEnd(t *testing.T) {
	for name, line := range map[string]string{"off": "a.test off", "deny": "http://a.test/"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, cfg := newLastSite(100), siteConfig(t, "http://a.test/")
				cfg.Filter.Deny, cfg.Overrides = new(urlfilter.List), new(stage.Overrides)
				file := write(t, "")
				if name == "off" {
					cfg.OverrideFile = file
				} else {
					cfg.DenyFile = file
				}
				read := func(line string) cockpit.Config {
					require.NoError(t, os.WriteFile(file, []byte(line), 0o600))
					now := cfg
					require.NoError(t, errors.Join(now.ReadDeny(), now.ReadOverrides()))
					return now
				}
				idle, err := s.crawl(t, read(""), func(c *crawler) {
					time.AfterFunc(4*time.Minute, func() {
						require.NoError(t, os.WriteFile(file, []byte(line), 0o600))
						c.reload()
					})
				})
				require.NoError(t, err)
				require.Less(t, idle, promptly+cfg.Delay)
				n := len(s.requested(""))
				require.Less(t, n, 60)
				idle, err = s.crawl(t, read(line), nil)
				require.NoError(t, err)
				require.Less(t, idle, promptly)
				require.Len(t, s.requested(""), n)
				_, err = s.crawl(t, read(""), nil)
				require.NoError(t, err)
				s.requirePages(t, 1)
			})
		})
	}
}

// TestTheSummaryOfUnchangedPages does not say that none was due.
func TestTheSummaryOfUnchangedPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := &fakeSite{addr: loopback, serve: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				http.NotFound(w, r)
			}
		}}
		cfg := siteConfig(t, "http://a.test/")
		cfg.Policy = revisit.Every(day)
		web := site.network(t, "127.9.9.9")
		for n, due := range []bool{true, false, true} {
			if n == 2 {
				time.Sleep(day + time.Hour)
			}
			c := crawlSite(t, cfg, web)
			var summary strings.Builder
			require.NoError(t, c.Conclude(&summary, nil))
			require.Equal(t, due, !strings.Contains(summary.String(), "no page is due"), summary.String())
		}
		require.Len(t, pagesOf(site, "a.test"), 2)
	})
}
