package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

func twoNeighbors() *fakeSite {
	return &fakeSite{addr: loopback, serve: func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			http.NotFound(w, r)
		case "/":
			fmt.Fprint(w, "<a href=/1><a href=/2><a href=http://one.test/p>")
		case "/1":
			fmt.Fprint(w, "<a href=http://two.test/p>")
		}
	}}
}

// What was erased is taken from the list with an editor.
func TestWhatIsNoLongerErasedComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := twoNeighbors()
		web := s.network(t, loopback("").String())
		cfg := siteConfig(t, "http://a.test/")
		crawlSite(t, cfg, web)
		require.Len(t, s.requested("http://one.test/p"), 1)
		status, output := run(t, "erase", "-out", cfg.Out, "http://one.test/p")
		require.Zero(t, status, output)
		crawlSite(t, cfg, web)
		require.NoError(t, os.Remove(filepath.Join(cfg.Out, cockpit.ErasedName)))
		crawlSite(t, cfg, web)
		require.Len(t, s.requested("http://one.test/p"), 2)
	})
}

// A second line is lifted, or a page erased, before the crawl has reread pages for the first.
func TestASecondRewriteKeepsTheFirst(t *testing.T) {
	for _, second := range []string{"lift", "erase", "none"} {
		t.Run(second, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := twoNeighbors()
				web := s.network(t, loopback("").String())
				cfg := siteConfig(t, "http://a.test/")
				deny(t, &cfg, "one.test", "two.test")
				crawlSite(t, cfg, web)
				deny(t, &cfg, "two.test")
				c, err := newCrawler(cfg, web) // rewrites, and ends at once
				require.NoError(t, err)
				require.NoError(t, c.close())
				switch second {
				case "lift":
					deny(t, &cfg)
				case "erase":
					status, output := run(t, "erase", "-out", cfg.Out, "http://a.test/1")
					require.Zero(t, status, output)
				}
				crawlSite(t, cfg, web)
				require.Len(t, s.requested("http://one.test/p"), 1)
			})
		})
	}
}

// The tail of a journal is torn, as by a full disk.
func TestRepairKeepsWhatPrecedesATornTail(t *testing.T) {
	for _, name := range []string{cockpit.StateName, cockpit.RulesName} {
		t.Run(name, func(t *testing.T) {
			cfg, _ := crawlForgettable(t)
			file := filepath.Join(cfg.Out, name)
			saved, err := os.ReadFile(file)
			require.NoError(t, err)
			more, err := stage.AppendEntries(saved, func(func(map[string]string) bool) {})
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, more, 0o600))
			info, err := os.Stat(file)
			require.NoError(t, err)
			require.NoError(t, os.Truncate(file, info.Size()-1))
			status, output := run(t, "repair", "-out", cfg.Out)
			require.Zero(t, status, output)
			status, output = run(t, "check", "-out", cfg.Out)
			require.Zero(t, status, output)
			for _, n := range []string{cockpit.StateName, cockpit.RulesName, cockpit.OrderName} {
				require.FileExists(t, filepath.Join(cfg.Out, n))
			}
		})
	}
}

// A file that this machine cannot read (here: ELOOP) is not damaged.
func TestAnUnreadableState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := twoNeighbors()
		web := s.network(t, loopback("").String())
		cfg := siteConfig(t, "http://a.test/")
		crawlSite(t, cfg, web)
		name := filepath.Join(cfg.Out, cockpit.StateName)
		require.NoError(t, os.Remove(name))
		require.NoError(t, os.Symlink(name, name))
		c, err := newCrawler(cfg, web)
		if c != nil && err == nil {
			t.Log(c.Warnings)
			require.NoError(t, c.close())
		}
		require.Error(t, err)
	})
}

// TestTheUsualDelayAppliesWithoutAState: the file is lost between two runs.
func TestTheUsualDelayAppliesWithoutAState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := twoNeighbors()
		web := s.network(t, loopback("").String())
		cfg := siteConfig(t, "http://a.test/")
		cfg.Pages = 1
		c, err := newCrawler(cfg, web)
		require.NoError(t, err)
		require.ErrorIs(t, c.run(t.Context()), cockpit.ErrPageLimit)
		require.NoError(t, os.Remove(filepath.Join(cfg.Out, cockpit.StateName)))
		ended, answer, first := time.Now(), s.serve, time.Time{}
		s.serve = func(w http.ResponseWriter, r *http.Request) {
			if first.IsZero() {
				first = time.Now()
			}
			answer(w, r)
		}
		cfg.Pages = 0
		crawlSite(t, cfg, web)
		require.GreaterOrEqual(t, first.Sub(ended), cfg.Delay)
	})
}

// TestACrawlDelayAfterAKill: the rules are not saved yet, but the delay is, whatever the overrides say of others.
func TestACrawlDelayAfterAKill(t *testing.T) {
	for _, overridden := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var times []time.Time
			s := &fakeSite{addr: loopback, serve: func(w http.ResponseWriter, r *http.Request) {
				times = append(times, time.Now())
				if r.URL.Path == "/robots.txt" {
					fmt.Fprint(w, "User-agent: *\nCrawl-delay: 600\n")
				}
			}}
			cfg := siteConfig(t, "http://a.test/")
			if overridden {
				cfg.OverrideFile = write(t, "b.test delay=100s\n")
				require.NoError(t, cfg.ReadOverrides())
			}
			web := s.network(t, loopback("").String())
			ctx, cancel := context.WithCancel(t.Context())
			killed := filepath.Join(t.TempDir(), "killed")
			time.AfterFunc(20*time.Second, func() {
				require.NoError(t, os.CopyFS(killed, os.DirFS(cfg.Out)))
				cancel()
			})
			c, err := newCrawler(cfg, web)
			require.NoError(t, err)
			require.ErrorIs(t, c.run(ctx), cockpit.ErrStopped)
			require.Len(t, times, 1)
			cfg.Out = killed
			crawlSite(t, cfg, web)
			require.GreaterOrEqual(t, times[1].Sub(times[0]), 600*time.Second, "with overrides: %v", overridden)
		})
	}
}

// TestPagesThatWaitInTheFuture: they are found while the clock is two months ahead, and get turns of their host there.
func TestPagesThatWaitInTheFuture(t *testing.T) {
	const pages = 100
	dir, visited := t.TempDir(), 0
	for _, clock := range []time.Duration{60 * day, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(clock)
			s := &fakeSite{addr: loopback, serve: func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/robots.txt":
					http.NotFound(w, r)
				case "/":
					for n := range pages {
						fmt.Fprintf(w, "<a href=/%d>", n)
					}
				}
			}}
			cfg := siteConfig(t, "http://a.test/")
			cfg.Out, cfg.Forever, cfg.Duration = dir, true, time.Minute
			if visited > 0 {
				cfg.Duration = day
			}
			c, err := newCrawler(cfg, s.network(t, loopback("").String()))
			require.NoError(t, err)
			require.ErrorIs(t, c.run(t.Context()), cockpit.ErrTimeLimit)
			if visited == 0 {
				visited = len(pagesOf(s, "a.test"))
				require.Less(t, visited, pages/2)
				return
			}
			require.GreaterOrEqual(t, len(pagesOf(s, "a.test")), 1+pages)
		})
	}
}

func TestAnUnreadableOrder(t *testing.T) {
	name := filepath.Join(t.TempDir(), "order")
	require.NoError(t, os.Symlink(name, name))
	o, err := stage.OpenOrder(name)
	require.Error(t, err)
	require.Nil(t, o, "an error of the disk")
}

// paused.state is damaged.
func TestPausesAreChecked(t *testing.T) {
	cfg, _ := crawlForgettable(t)
	require.NoError(t, os.WriteFile(filepath.Join(cfg.Out, cockpit.PausedName), []byte("damaged"), 0o600))
	status, output := run(t, "check", "-out", cfg.Out)
	require.NotZero(t, status, output)
	require.Contains(t, output, cockpit.PausedName)
}

// TestADamagedIndexOfTheArchive: readers cannot do without it, so check names it, and repair makes
// it anew.
func TestADamagedIndexOfTheArchive(t *testing.T) {
	names := []string{"index-00000001", "index.manifest"} // each commit writes index.meta anew
	for _, name := range names {
		for _, damage := range []string{"flipped", "cut", "emptied"} {
			cfg, _ := crawlForgettable(t)
			file := filepath.Join(cfg.Out, name)
			data, err := os.ReadFile(file)
			require.NoError(t, err, name)
			switch damage {
			case "flipped":
				data[len(data)/2] ^= 1
			case "cut":
				data = data[:len(data)/2]
			default:
				data = nil
			}
			require.NoError(t, os.WriteFile(file, data, 0o600))
			status, output := run(t, "check", "-out", cfg.Out)
			require.Equal(t, 1, status, "%s %s: %s", name, damage, output)
			require.Contains(t, output, "archive          DAMAGED")
			status, output = run(t, "repair", "-out", cfg.Out)
			require.Zero(t, status, output)
			status, output = run(t, "check", "-out", cfg.Out)
			require.Zero(t, status, "%s %s: %s", name, damage, output)
		}
	}
}

// TestRepairOfTheLedger: half a line at the end goes, as at each start. A file that has to be set aside is
// still erased from.
func TestRepairOfTheLedger(t *testing.T) {
	cfg, _ := crawlForgettable(t)
	name := filepath.Join(cfg.Out, cockpit.LedgerName)
	whole, err := os.ReadFile(name)
	require.NoError(t, err)
	for _, end := range []string{`{"time":"2026-11-2`, "x http://xq7.test/\n"} {
		require.NoError(t, os.WriteFile(name, append(slices.Clip(whole), end...), 0o600))
		status, output := run(t, "repair", "-out", cfg.Out)
		require.Zero(t, status, output)
	}
	aside, err := filepath.Glob(name + ".damaged*")
	require.NoError(t, err)
	require.Len(t, aside, 1)
	require.Contains(t, naming(t, cfg.Out, "xq7"), filepath.Base(aside[0]))
	status, output := run(t, append([]string{"erase", "-out", cfg.Out}, toErase...)...)
	require.Zero(t, status, output)
	require.Equal(t, []string{cockpit.ErasedName}, naming(t, cfg.Out, "xq7"))
}

// TestRepairOnAFullDisk keeps the hosts that the operator has paused.
func TestRepairOnAFullDisk(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no limit on file sizes on this system")
	}
	cfg, _ := crawlForgettable(t)
	data, err := stage.AppendEntries(nil, slices.Values([]string{"a.test", strings.Repeat("b", 200) + ".test"}))
	require.NoError(t, err)
	file := filepath.Join(cfg.Out, cockpit.PausedName)
	require.NoError(t, os.WriteFile(file, data[:len(data)-1], 0o600))
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAFullDiskIsNoDamage$")
	child.Env = append(os.Environ(), "ON_A_FULL_DISK=repair -out "+cfg.Out)
	out, err := child.CombinedOutput()
	require.Error(t, err, "%s", out)
	status, output := run(t, "repair", "-out", cfg.Out)
	require.Zero(t, status, output)
	require.Contains(t, output, "paused.state     set aside as paused.state.damaged: what precedes the damage is kept (2)")
}
