package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch/webtest"
)

// run runs the program.
func run(t *testing.T, args ...string) (status int, output string) {
	t.Helper()
	var out bytes.Buffer
	status = command(t.Context(), args, &out, &out)
	return status, out.String()
}

// tree lists a directory with the sizes of its files.
func tree(t *testing.T, dir string) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && !d.IsDir() {
			names = append(names, fmt.Sprint(path, " ", info.Size()))
		}
		return err
	}))
	return names
}

// TestARunningCrawlIsLeftAlone: a second process in its directory names the process that holds it,
// and changes nothing.
func TestARunningCrawlIsLeftAlone(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 40, Hosts: 3, Pages: 4})
	cfg := testConfig(t, web)
	crawlWeb(t, web, cfg)
	c, err := newCrawler(cfg, on(web))
	require.NoError(t, err)
	defer c.close()
	require.NoError(t, c.dir.Announce("http://127.0.0.1:8080/"))
	before := tree(t, cfg.Out)
	for _, args := range [][]string{
		{"-fresh", cfg.Seeds[0]}, {cfg.Seeds[0]}, {"check"}, {"repair"}, {"explain", cfg.Seeds[0]},
	} {
		flags := []string{"-out", cfg.Out}
		if strings.HasPrefix(args[0], "-") || strings.Contains(args[0], ":") {
			flags = append(flags, "-contact", "me@example.org")
			args = append(flags, args...)
		} else {
			args = append(args[:1:1], append(flags, args[1:]...)...)
		}
		status, output := run(t, args...)
		require.Equal(t, 1, status, "%q", args)
		require.Contains(t, output, fmt.Sprint("process ", os.Getpid(), " (crawl"), "%q", args)
		require.Contains(t, output, "http://127.0.0.1:8080/", "%q", args)
		require.Equal(t, args[0] == "check", strings.Contains(output, "0 faults"), "the archive is checked: %s", output)
	}
	require.Equal(t, before, tree(t, cfg.Out))
}

// TestADryRunDuringARewrite of the pages, as after SIGHUP for a shorter list, leaves the new pages alone.
func TestADryRunDuringARewrite(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 41, Hosts: 3, Pages: 4})
	cfg := testConfig(t, web)
	known := crawlWeb(t, web, cfg).Pages.Stats().Records
	d, err := cfg.Claim()
	require.NoError(t, err)
	defer d.Close()
	options := cockpit.PagesOptions(cfg, stage.Clock{Began: time.Now(), Pace: 1})
	err = stage.RewritePages(cfg.Out, options, func(stage.Item, *stage.State) stage.Rewrite {
		require.ErrorIs(t, cockpit.DryRun(cfg, io.Discard), cockpit.ErrHeld)
		return stage.KeepDue
	})
	require.NoError(t, err)
	pages := openPagesOf(t, cfg)
	require.Equal(t, known, pages.Stats().Records)
	require.NoError(t, pages.Close())
}

// TestArchivesAreReadBesideACrawl: what reads only the archive runs beside a crawl, and shows what it
// has written so far. The viewer sees what comes later, too.
func TestArchivesAreReadBesideACrawl(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 44, Hosts: 3, Pages: 4})
	cfg := testConfig(t, web)
	crawlWeb(t, web, cfg)
	c, err := newCrawler(cfg, on(web))
	require.NoError(t, err)
	defer c.close()
	before := tree(t, cfg.Out)
	for want, args := range map[string][]string{
		"http://h00000.vweb.test/": {"snapshot"}, "killed its worker": {"scan", "-workers", "1", "false"},
		"": {"export", "cdxj", filepath.Join(t.TempDir(), "x")},
	} {
		_, output := run(t, append(args[:1:1], append([]string{"-out", cfg.Out}, args[1:]...)...)...)
		require.Contains(t, output, want, "%q", args)
		require.NotContains(t, output, "another process", "%q", args)
	}
	require.Equal(t, before, tree(t, cfg.Out), "nothing is written")

	base := viewer(t, cfg.Out)
	require.Contains(t, visible(t, base, "h00000.vweb.test"), "h00000.vweb.test")
	_, err = c.Store.Append(capture("http://later.test/"))
	require.NoError(t, err)
	require.Contains(t, visible(t, base, "later.test"), "later.test")
}

// TestAnyArchiveIsServed: the viewer opens an archive that a program has made with the library.
func TestAnyArchiveIsServed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	status, output := run(t, "serve", "-out", dir, "-listen", "127.0.0.1:0")
	require.Equal(t, 1, status)
	require.Contains(t, output, "no archive here")
	a, err := archive.Open(dir, archive.Options{})
	require.NoError(t, err)
	defer a.Close()
	_, err = a.Append(capture("http://a.test/"))
	require.NoError(t, err)
	require.Contains(t, visible(t, viewer(t, dir), "a.test"), "a.test")
}

func capture(url string) archive.Capture {
	return archive.Capture{URL: url, Time: time.Now(), Body: []byte("x"),
		Head: []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")}
}

// viewer runs serve until the test ends, and returns its address.
func viewer(t *testing.T, dir string) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	in, out := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		status := command(ctx, []string{"serve", "-out", dir, "-listen", "127.0.0.1:0"}, out, out)
		_ = out.CloseWithError(fmt.Errorf("serve has ended with status %d", status))
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	line, err := bufio.NewReader(in).ReadString('\n')
	require.NoError(t, err, line)
	_, base, found := strings.Cut(strings.TrimSpace(line), "http://")
	require.True(t, found, line)
	return "http://" + base
}

// visible returns the start page of a viewer once it names a host.
func visible(t *testing.T, base, host string) (page string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		resp, err := http.Get(base)
		require.NoError(t, err)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		resp.Body.Close()
		if page = string(text); strings.Contains(page, ">"+host+"<") {
			return page
		}
	}
	return page
}

// TestTheLivePageOffersTheCommands: the live page of a running crawl returns what they would print.
func TestTheLivePageOffersTheCommands(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 41, Hosts: 3, Pages: 4})
	cfg := testConfig(t, web)
	crawlWeb(t, web, cfg)
	c, err := newCrawler(cfg, on(web))
	require.NoError(t, err)
	defer c.close()
	at, err := c.Listen("127.0.0.1:0")
	require.NoError(t, err)
	get := func(url string) (status int, text string) {
		resp, err := http.Get(url)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(body)
	}
	const explain = "api/explain?q=http://h00000.vweb.test/"
	for path, want := range map[string]string{explain: "last visit", "archive/": "h00000.vweb.test"} {
		status, text := get(at + path)
		require.Contains(t, text, want, path)
		require.Equal(t, 200, status, path)
	}

	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+explain, nil)
	require.NoError(t, err)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, http.StatusForbidden, resp.StatusCode)
}

// TestNoCrawlHere: in a directory without a crawl, commands say so and create nothing.
func TestNoCrawlHere(t *testing.T) {
	t.Parallel()
	empty, foreign := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(foreign, "letter.txt"), []byte("Dear"), 0o600))
	missing := filepath.Join(empty, "missing")
	for _, dir := range []string{missing, empty, foreign} {
		for _, args := range [][]string{
			{"check"}, {"repair"}, {"explain", "a.test"}, {"serve", "-listen", "127.0.0.1:0"},
			{"export", "cdxj", filepath.Join(empty, "x")}, {"snapshot"}, {"scan", "true"},
		} {
			before := tree(t, filepath.Dir(dir))
			status, output := run(t, append([]string{args[0], "-out", dir}, args[1:]...)...)
			require.Equal(t, 1, status, "%q", args)
			require.Regexp(t, regexp.QuoteMeta(dir)+": no (crawl|archive) here", output, "%q", args)
			require.Equal(t, before, tree(t, filepath.Dir(dir)), "%q", args)
		}
	}
	require.NoDirExists(t, missing)
}

// TestForgetIsAllOrNothing interrupts -fresh between its steps.
func TestForgetIsAllOrNothing(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 43, Hosts: 3, Pages: 4})
	cfg := testConfig(t, web)
	want := crawlWeb(t, web, cfg).Pages.Stats().Records
	at := filepath.Join(cfg.Out, stage.PagesDir)
	require.NoError(t, os.Rename(at, at+".gone"))
	require.NoError(t, os.RemoveAll(filepath.Join(at+".gone", "lock"))) // half of it removed
	require.Equal(t, want, crawlWeb(t, web, cfg).Pages.Stats().Records)
	require.NoDirExists(t, at+".gone")
}

// TestARefusedCrawlLeavesNoTrace, whether its filters are wider or narrower than those of the crawl.
func TestARefusedCrawlLeavesNoTrace(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 44, Hosts: 3, Pages: 4})
	cfg := testConfig(t, web)
	cfg.HostPages = 100
	crawlWeb(t, web, cfg)
	before := requested(web)
	for _, pages := range []int{10, 1000} {
		other := cfg
		other.Seeds, other.HostPages = []string{"http://h00002.vweb.test/nowhere"}, pages
		_, err := newCrawler(other, on(web))
		require.ErrorIs(t, err, cockpit.ErrOtherSeeds)
		c, err := newCrawler(cfg, on(web))
		require.NoError(t, err)
		require.Empty(t, c.Warnings)
		require.NoError(t, c.run(t.Context()))
		require.Equal(t, before, requested(web), "no page is due")
	}
}

// TestACrawlOfOtherSeeds: the directory of a crawl refuses a crawl of entirely different seeds.
func TestACrawlOfOtherSeeds(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 44, Hosts: 3, Pages: 4})
	cfg := testConfig(t, web)
	cfg.Reach = urlfilter.Host
	crawlWeb(t, web, cfg)
	first := cfg.Seeds
	cfg.Seeds = []string{"http://h00002.vweb.test/"}
	_, err := newCrawler(cfg, on(web))
	require.ErrorIs(t, err, cockpit.ErrOtherSeeds)
	for _, option := range []string{first[0], "-out", "-fresh"} {
		require.ErrorContains(t, err, option)
	}
	cfg.Seeds = append(cfg.Seeds, first...)
	crawlWeb(t, web, cfg)
	require.Positive(t, requested(web)["http://h00002.vweb.test/"], "another seed may be added")
	cfg.Seeds, cfg.Fresh = cfg.Seeds[:1], true
	crawlWeb(t, web, cfg)
}
