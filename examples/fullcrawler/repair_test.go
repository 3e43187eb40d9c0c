package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
	"github.com/spinneret-go/spinneret/examples/internal/stage"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/internal/memnet"
	"github.com/spinneret-go/spinneret/revisit"
)

// damages are kinds of damage to a file.
var damages = map[string]func(t *testing.T, file string){
	"gone":  func(t *testing.T, file string) { require.NoError(t, os.Remove(file)) },
	"empty": func(t *testing.T, file string) { require.NoError(t, os.Truncate(file, 0)) },
	"cut":   func(t *testing.T, file string) { change(t, file, func(b []byte) []byte { return b[:len(b)*2/3] }) },
	"one byte": func(t *testing.T, file string) {
		change(t, file, func(b []byte) []byte { b[len(b)/3] ^= 0x10; return b })
	},
	"one bit at the end": func(t *testing.T, file string) {
		change(t, file, func(b []byte) []byte { b[len(b)-1] ^= 1; return b })
	},
}

func change(t *testing.T, file string, change func([]byte) []byte) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	if len(text) == 0 {
		return
	}
	require.NoError(t, os.WriteFile(file, change(text), 0o600))
}

// full runs the long forms of tests: FULLCRAWLER_TESTS=full go test -timeout 1h
var full = os.Getenv("FULLCRAWLER_TESTS") == "full"

// TestEveryStartWorksOrNamesARemedy damages each file of a crawl in two ways, or in all ways in the
// long form. The next run then continues without loss, or it asks for repair and continues after
// that.
func TestEveryStartWorksOrNamesARemedy(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 60, Hosts: 4, Pages: 6, Traits: func(host int) webtest.Traits {
		return webtest.Traits{Robots: webtest.Robots{CrawlDelay: time.Duration(host/3) * time.Millisecond}}
	}})
	cfg := testConfig(t, web)
	cfg.Delay, cfg.ByRank, cfg.Pages = time.Millisecond, true, 9
	c, err := newCrawler(cfg, on(web))
	require.NoError(t, err)
	require.ErrorIs(t, c.run(t.Context()), cockpit.ErrPageLimit)
	before := requested(web)
	cfg.Pages = 0
	from := cfg.Out
	for n, file := range tree(t, cfg.Out) {
		file, _, _ = strings.Cut(file, " ")
		name, err := filepath.Rel(cfg.Out, file)
		require.NoError(t, err)
		if strings.Contains(name, "lock") {
			continue // always empty
		}
		for i, how := range slices.Sorted(maps.Keys(damages)) {
			if ways := len(damages); !full && (i+n)%ways != 0 && (i+3*n)%ways != 0 {
				continue
			}
			damage := damages[how]
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				cfg := cfg
				cfg.Out = t.TempDir()
				require.NoError(t, os.CopyFS(cfg.Out, os.DirFS(from)))
				damage(t, filepath.Join(cfg.Out, name))
				goOn(t, web, cfg, name)
				missing := map[string]bool{}
				for _, url := range web.Reachable() {
					missing[url] = true
				}
				for url := range before {
					delete(missing, url)
				}
				for _, r := range web.Log() {
					if r.UserAgent == userAgentOf(cfg.Out) {
						delete(missing, r.URL())
					}
				}
				require.Empty(t, missing)
			})
		}
	}
}

// userAgentOf identifies the crawl of a directory in the web's log.
func userAgentOf(dir string) string {
	cfg := cockpit.Config{Agent: "spinneret", Contact: dir}
	return cfg.UserAgent()
}

// goOn continues a crawl. If the crawl asks for repair, goOn repairs it and starts it again.
func goOn(t *testing.T, web *webtest.Web, cfg cockpit.Config, name string) {
	t.Helper()
	cfg.Contact = cfg.Out
	start := func() error {
		c, err := newCrawler(cfg, on(web))
		if err != nil {
			return err
		}
		return c.run(t.Context())
	}
	err := start()
	if err == nil {
		return
	}
	t.Log("start:", err)
	require.ErrorContains(t, err, "fullcrawler repair")
	require.ErrorContains(t, err, cfg.Out)
	_, output := run(t, "check", "-out", cfg.Out)
	require.Contains(t, output, "DAMAGED", "check must find what prevents the start")
	status, output := run(t, "repair", "-out", cfg.Out)
	require.Equal(t, status != 0, strings.Contains(output, "something is lost"), output)
	if status != 0 {
		require.Regexp(t, "set aside|missing|bytes, ", output)
	}
	status, output = run(t, "check", "-out", cfg.Out)
	if !strings.Contains(name, ".warc") {
		require.Zero(t, status, output)
	}
	require.NoError(t, start())
}

// TestInterruptedCopies continues a crawl with only some of its files.
func TestInterruptedCopies(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 61, Hosts: 3, Pages: 5})
	cfg := testConfig(t, web)
	cfg.Delay, cfg.Pages = time.Millisecond, 7
	c, err := newCrawler(cfg, on(web))
	require.NoError(t, err)
	require.ErrorIs(t, c.run(t.Context()), cockpit.ErrPageLimit)
	cfg.Pages = 0
	for seed := range uint64(8) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			random, cfg, from := rand.New(rand.NewPCG(seed, 0)), cfg, cfg.Out
			cfg.Out = t.TempDir()
			require.NoError(t, os.CopyFS(cfg.Out, os.DirFS(from)))
			for _, file := range tree(t, cfg.Out) {
				file, _, _ = strings.Cut(file, " ")
				if random.IntN(3) == 0 {
					require.NoError(t, os.Remove(file))
				}
			}
			goOn(t, web, cfg, ".warc")
		})
	}
}

// TestRotatedLedgersAreRead by check, repair and explain.
func TestRotatedLedgersAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := &fakeSite{addr: loopback, serve: http.NotFound}
		cfg := siteConfig(t, "http://a.test/x", "http://a.test/y")
		cfg.LedgerSize = 100
		crawlSite(t, cfg, site.network(t, loopback("").String()))
		_, output := run(t, "explain", "-out", cfg.Out, "http://a.test/x")
		require.Contains(t, output, "404")
		rotated, err := filepath.Glob(filepath.Join(cfg.Out, "fates-*"))
		require.NoError(t, err)
		require.NotEmpty(t, rotated)
		text, err := os.ReadFile(rotated[0])
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(rotated[0], append([]byte("half a li\n"), text...), 0o600))
		status, output := run(t, "check", "-out", cfg.Out)
		require.Equal(t, 1, status)
		require.Contains(t, output, "1 of 3 lines are not JSON")
		_, output = run(t, "repair", "-out", cfg.Out)
		require.Contains(t, output, "set aside as "+filepath.Base(rotated[0])+".damaged")
		status, output = run(t, "check", "-out", cfg.Out)
		require.Zero(t, status, output)
		again, err := os.ReadFile(rotated[0] + ".damaged")
		require.NoError(t, err)
		require.Equal(t, "half a li\n"+string(text), string(again))
	})
}

// TestAMissingImportHindersNothingElse: the pages and caches are erased all the same, and it is said how to
// get rid of the file.
func TestAMissingImportHindersNothingElse(t *testing.T) {
	cfg, _ := crawlForgettable(t)
	other, _ := crawlForgettable(t)
	files, err := filepath.Glob(filepath.Join(other.Out, "*.warc.gz"))
	require.NoError(t, err)
	foreign := filepath.Join(t.TempDir(), "foreign.warc.gz")
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(foreign, text, 0o600))
	status, output := run(t, "import", "-out", cfg.Out, foreign)
	require.Zero(t, status, output)
	require.NoError(t, os.Remove(foreign))
	erase := []string{"erase", "-out", cfg.Out, "http://a.test/copy"}
	status, output = run(t, erase...)
	require.Equal(t, 1, status, output)
	require.Contains(t, output, "imports.txt")
	require.Contains(t, output, "1 page erased")
	status, output = run(t, "repair", "-out", cfg.Out)
	require.Equal(t, 1, status, output)
	require.NotContains(t, output, "set aside")
	require.Contains(t, output, "imports.txt")
	require.NoError(t, os.Remove(filepath.Join(cfg.Out, "imports.txt")))
	_, _ = run(t, "repair", "-out", cfg.Out)
	for _, args := range [][]string{{"check", "-out", cfg.Out}, erase} {
		status, output = run(t, args...)
		require.Zero(t, status, output)
	}
	require.Empty(t, versionsOf(t, cfg.Out, "http://a.test/copy"))
}

// TestALostClockIsNotInvented: commands that read change nothing, and do not take sound pages for damaged.
func TestALostClockIsNotInvented(t *testing.T) {
	for pace, want := range map[string]string{"1": "all sound", "50000": "-pace of this crawl"} {
		dir := t.TempDir()
		args := []string{"-delay", "1ms", "-pages", "20", "-pace", pace, "-out", dir}
		status, output := run(t, args...)
		require.Zero(t, status, output)
		began := filepath.Join(dir, cockpit.BeganName)
		require.NoError(t, os.Remove(began))
		for _, command := range []string{"check", "repair"} {
			status, output = run(t, command, "-out", dir)
			require.Equal(t, pace == "1", status == 0, output)
			require.Contains(t, output, want)
			require.NotContains(t, strings.ToLower(output), "damaged")
			require.NoFileExists(t, began)
		}
		_, output = run(t, "explain", "-out", dir, "http://h00000.vweb.test/")
		require.NotContains(t, output, "satstore")
		require.NoFileExists(t, began)
		status, output = run(t, args...)
		require.Zero(t, status, output)
		require.FileExists(t, began)
	}
}

// TestTimesInTheFuture crawls with a clock that is weeks ahead, and then with a correct one.
func TestTimesInTheFuture(t *testing.T) {
	const ahead = 60 * 24 * time.Hour
	o := webtest.Options{Seed: 62, Hosts: 3, Pages: 5, Traits: func(host int) webtest.Traits {
		return webtest.Traits{Refuse: host == 2}
	}}
	cfg := cockpit.Config{Out: t.TempDir()}
	policy := revisit.Every(6 * time.Hour)
	one := func(t *testing.T, forever time.Duration) (log []webtest.Request) {
		o.Network = memnet.New()
		web := serve(t, o)
		c := politeConfig(t, web)
		c.Out, c.Policy, c.Sitemaps = cfg.Out, policy, false
		if forever > 0 {
			c.Forever, c.Duration = true, forever
		}
		running, err := newCrawler(c, on(web))
		require.NoError(t, err)
		if err := running.run(t.Context()); err != nil {
			require.ErrorIs(t, err, cockpit.ErrTimeLimit)
		}
		return web.Log()
	}
	pages := func(log []webtest.Request) (n int) {
		for _, r := range log {
			if !strings.Contains(r.Path, "robots") {
				n++
			}
		}
		return n
	}
	// All bubbles begin at the same time.
	first := 0
	synctest.Test(t, func(t *testing.T) { first = pages(one(t, 0)) })
	require.Positive(t, first)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(ahead)
		require.Positive(t, pages(one(t, 65*time.Second)), "visits in the future")
	})
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		log := one(t, 25*time.Hour)
		require.GreaterOrEqual(t, pages(log), 4*first, "visits now, and every six hours")
		rules := 0
		for _, r := range log {
			if strings.Contains(r.Path, "robots") {
				rules++
			}
		}
		require.Positive(t, rules, "rules from the future are ignored")
	})
}

// TestAClockThatIsSetBack is detected while the crawl runs.
func TestAClockThatIsSetBack(t *testing.T) {
	web := serve(t, webtest.Options{Seed: 63, Hosts: 1, Pages: 2})
	cfg := testConfig(t, web)
	c, err := newCrawler(cfg, on(web))
	require.NoError(t, err)
	require.NoError(t, c.OverLimit())
	for _, err := range c.Pages.Due(t.Context(), time.Now().Add(24*time.Hour)) {
		require.NoError(t, err)
	}
	require.ErrorIs(t, c.OverLimit(), cockpit.ErrReopen)
	yesterday := revisit.Visit{At: time.Now().Add(-24 * time.Hour)}
	c.Rhythms.Observe("a.test", stage.Item{}, revisit.History{}.Observe(yesterday), revisit.Visit{At: time.Now(), Changed: true})
	require.NoError(t, c.close())
	c, err = newCrawler(cfg, on(web))
	require.NoError(t, err)
	require.NoError(t, c.OverLimit())
	require.NotEqual(t, stage.Rhythm{}, c.Rhythms.Of("a.test"), "months of learning stay")
	require.NoError(t, c.close())
	require.Len(t, c.Warnings, 1)
}

// TestAShorterDenyListReopensTheCrawl when it is reloaded by SIGHUP.
func TestAShorterDenyListReopensTheCrawl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := serve(t, webtest.Options{Seed: 64, Hosts: 3, Pages: 4, Network: memnet.New()})
		cfg := politeConfig(t, web)
		deny(t, &cfg, "h00001.vweb.test")
		cfg.Forever = true
		c, err := newCrawler(cfg, on(web))
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() { ended <- c.run(context.Background()) }()
		time.Sleep(time.Hour)
		require.NoError(t, os.WriteFile(cfg.DenyFile, []byte("h00001.vweb.test\nh00002.vweb.test\n"), 0o600))
		c.reload()
		time.Sleep(time.Minute)
		require.Empty(t, ended, "a longer list does not")
		require.NoError(t, os.WriteFile(cfg.DenyFile, nil, 0o600))
		c.reload()
		require.ErrorIs(t, <-ended, cockpit.ErrReopen)
		require.NoError(t, cfg.ReadDeny())
		cfg.Forever = false
		again, err := newCrawler(cfg, on(web))
		require.NoError(t, err)
		before := c.Tally.Sum()
		again.goOn(c)
		require.NoError(t, again.run(t.Context()))
		requireAllPages(t, web)
		require.Greater(t, again.Tally.Sum().Pages, before.Pages, "the limits apply to both runs")
		require.Zero(t, again.Tally.Sum().Waiting)
	})
}

// TestAReopenedCrawlKeepsItsLimits: fewer pages are left of -pages, and less of -time.
func TestAReopenedCrawlKeepsItsLimits(t *testing.T) {
	for name, limit := range map[string]func(*cockpit.Config){
		"pages": func(cfg *cockpit.Config) { cfg.Pages = 6 },
		"time":  func(cfg *cockpit.Config) { cfg.Duration = time.Minute },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				web := serve(t, webtest.Options{Seed: 64, Hosts: 1, Pages: 100, Network: memnet.New()})
				cfg := politeConfig(t, web)
				deny(t, &cfg, "other.test")
				limit(&cfg)
				c, err := newCrawler(cfg, on(web))
				require.NoError(t, err)
				ended := make(chan error, 1)
				go func() { ended <- c.run(context.Background()) }()
				time.Sleep(20 * time.Second)
				require.NoError(t, os.WriteFile(cfg.DenyFile, nil, 0o600))
				c.reload()
				require.ErrorIs(t, <-ended, cockpit.ErrReopen)
				require.NoError(t, cfg.ReadDeny())
				again, err := newCrawler(cfg, on(web))
				require.NoError(t, err)
				again.goOn(c)
				require.True(t, cockpit.Paused(again.run(t.Context())))
				if name == "pages" {
					require.EqualValues(t, 6, again.Tally.Sum().Pages)
				} else {
					require.LessOrEqual(t, time.Since(start), time.Minute+grace)
				}
			})
		})
	}
}

// TestATruncatedArchiveIsReported: the report names the file and counts the lost versions. It is
// repeated until repair.
func TestATruncatedArchiveIsReported(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 65, Hosts: 3, Pages: 5})
	for _, left := range []int64{0, 5000} {
		cfg := testConfig(t, web)
		cfg.Delay = time.Millisecond
		crawlWeb(t, web, cfg)
		files, err := filepath.Glob(filepath.Join(cfg.Out, "*.warc.gz"))
		require.NoError(t, err)
		require.NoError(t, os.Truncate(files[0], left))
		for range 2 {
			status, output := run(t, "check", "-out", cfg.Out)
			require.Equal(t, 1, status)
			require.Contains(t, output, filepath.Base(files[0]))
			require.Regexp(t, `\d\d versions`, output)
			require.Contains(t, output, "fullcrawler repair")
		}
		crawlWeb(t, web, cfg)
		status, output := run(t, "check", "-out", cfg.Out)
		require.Equal(t, 1, status, "still reported after a crawl: %s", output)
		status, output = run(t, "repair", "-out", cfg.Out)
		require.Equal(t, 1, status, "versions are lost: %s", output)
		require.Regexp(t, regexp.QuoteMeta(filepath.Base(files[0]))+`.*\d bytes`, output)
		status, output = run(t, "check", "-out", cfg.Out)
		require.Equal(t, left > 0, status != 0, "half a record remains: %s", output)
		require.NotRegexp(t, `\d\d versions: `, output, "no version is missing")
	}
}

// TestAnotherVersionIsNoDamage: what another version of the program has written is neither repaired
// nor removed.
func TestAnotherVersionIsNoDamage(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 66, Hosts: 2, Pages: 3})
	cfg := testConfig(t, web)
	cfg.Delay = time.Millisecond
	crawlWeb(t, web, cfg)
	later := []byte("SPNHOST9\x05\x00\x00\x00later")
	sum := crc32.Checksum(later, crc32.MakeTable(crc32.Castagnoli))
	change(t, filepath.Join(cfg.Out, cockpit.HostsName), func([]byte) []byte {
		return binary.LittleEndian.AppendUint32(later, sum)
	})
	before, err := os.ReadFile(filepath.Join(cfg.Out, cockpit.HostsName))
	require.NoError(t, err)
	for _, command := range []string{"check", "repair"} {
		status, output := run(t, command, "-out", cfg.Out)
		require.Equal(t, 1, status)
		require.Contains(t, output, "NOT READ")
		require.Contains(t, output, "SPNHOST9")
		after, err := os.ReadFile(filepath.Join(cfg.Out, cockpit.HostsName))
		require.NoError(t, err)
		require.Equal(t, before, after)
	}
	_, err = newCrawler(cfg, on(web))
	require.ErrorContains(t, err, "SPNHOST9")
}

// TestAFullDiskIsNoDamage: check does not take it for a fault, and repair keeps what is there.
func TestAFullDiskIsNoDamage(t *testing.T) {
	if args := os.Getenv("ON_A_FULL_DISK"); args != "" {
		limitFileSize(t, 120) // room for crawl.holder
		os.Exit(command(t.Context(), strings.Fields(args), os.Stdout, os.Stdout))
	}
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no limit on file sizes on this system")
	}
	web := serve(t, webtest.Options{Seed: 67, Hosts: 2, Pages: 5})
	cfg := testConfig(t, web)
	crawlWeb(t, web, cfg)
	_, before := run(t, "check", "-out", cfg.Out)
	require.Contains(t, before, "all sound")
	index, err := filepath.Glob(filepath.Join(cfg.Out, stage.PagesDir, "ids-*"))
	require.NoError(t, err)
	for _, damaged := range []bool{false, true} {
		if damaged {
			require.NoError(t, os.Truncate(index[0], 0))
		}
		for _, name := range []string{"check", "repair"} {
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAFullDiskIsNoDamage$")
			child.Env = append(os.Environ(), "ON_A_FULL_DISK="+name+" -out "+cfg.Out)
			out, err := child.CombinedOutput()
			require.Error(t, err, "%s", out)
			require.Contains(t, string(out), "pages            ")
			require.Equal(t, damaged, strings.Contains(strings.ToLower(string(out)), "damaged"), "%s", out)
		}
	}
	status, output := run(t, "repair", "-out", cfg.Out)
	require.Zero(t, status, output)
	require.Contains(t, output, " 10 pages kept, at least 0 lost")
	_, after := run(t, "check", "-out", cfg.Out)
	require.Equal(t, before, strings.Replace(after, "filters          none", "filters          sound", 1))
}

// TestDamagedCachesAreDiscarded with a warning: their contents can be fetched again.
func TestDamagedCachesAreDiscarded(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 66, Hosts: 2, Pages: 3})
	cfg := testConfig(t, web)
	cfg.ByRank = true
	crawlWeb(t, web, cfg)
	caches := []string{cockpit.HostsName, cockpit.RulesName, cockpit.OrderName, cockpit.StateName, cockpit.FiltersName}
	for _, name := range caches {
		require.NoError(t, os.WriteFile(filepath.Join(cfg.Out, name), []byte("{nonsense"), 0o600))
	}
	status, output := run(t, "check", "-out", cfg.Out)
	require.Equal(t, 1, status)
	c, err := newCrawler(cfg, on(web))
	require.NoError(t, err)
	for _, name := range caches {
		require.Regexp(t, regexp.QuoteMeta(name)+` +DAMAGED`, output)
		require.Contains(t, strings.Join(c.Warnings, "\n"), filepath.Join(cfg.Out, name))
	}
	require.NoError(t, c.close())
	status, output = run(t, "check", "-out", cfg.Out)
	require.Zero(t, status, output)
}
