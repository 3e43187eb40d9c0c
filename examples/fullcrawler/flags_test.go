package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/internal/memnet"
	"github.com/spinneret-go/spinneret/revisit"
)

func TestByteCounts(t *testing.T) {
	for text, want := range map[string]cockpit.ByteCount{
		"0": 0, "12": 12, "12B": 12, "3KB": 3000, "3kb": 3000, "1.5 GB": 15e8, "512MiB": 512 << 20, "2TiB": 2 << 40,
	} {
		var b cockpit.ByteCount
		require.NoError(t, b.Set(text), text)
		require.Equal(t, want, b, text)
	}
	for _, text := range []string{"", "GB", "-1", "1e30", "12 parsecs", "NaN"} {
		var b cockpit.ByteCount
		require.ErrorContains(t, b.Set(text), "want a number of bytes", text)
	}
}

// TestUnitsReadWhatTheyPrint: exactly, so that a value can be copied from the help into a command.
func TestUnitsReadWhatTheyPrint(t *testing.T) {
	for bytes, want := range map[cockpit.ByteCount]string{
		0: "0", 7: "7B", 1000: "1KB", 1024: "1KiB", 512 << 20: "512MiB", 20e9: "20GB", 1 << 30: "1GiB", 1<<30 + 1: "1073741825B",
	} {
		require.Equal(t, want, bytes.String())
		var again cockpit.ByteCount
		require.NoError(t, again.Set(want))
		require.Equal(t, bytes, again)
	}
	const day = 24 * time.Hour
	for duration, want := range map[time.Duration]string{
		0: "0s", 500 * time.Millisecond: "500ms", 5 * time.Second: "5s", 3 * time.Minute: "3m", time.Hour: "1h",
		90 * time.Minute: "1h30m", time.Hour + time.Second: "1h0m1s", 400 * day: "400d", 36 * time.Hour: "1d12h",
	} {
		span := cockpit.Span(duration)
		require.Equal(t, want, span.String())
		var again cockpit.Span
		require.NoError(t, again.Set(want))
		require.Equal(t, span, again)
	}
	var half cockpit.Span
	require.NoError(t, half.Set("0.5d"))
	require.Equal(t, "12h", half.String())
	for _, text := range []string{"", "d", "1", "1d2", "3 days", "1e9d", "99999999999d", "1.2.3d", "-1d", "-1s"} {
		require.ErrorContains(t, new(cockpit.Span).Set(text), "want a duration", text)
	}
}

func TestFlagsFromAFile(t *testing.T) {
	file := write(t, "\ufeff# how we crawl\r\n\r\nagent filebot\r\n-delay 7s\nforever\n\ttexts # words only\n"+
		"depth=7\nscope =\tdomain\nsitemaps = false\ncontact https://me.example/#bot and more\n")
	cfg, err := cockpit.ParseFlags([]string{"-config", file, "-delay", "9s", "www.example.org"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, "filebot", cfg.Agent)
	require.Equal(t, "https://me.example/#bot and more", cfg.Contact)
	require.True(t, cfg.Forever)
	require.True(t, cfg.Texts)
	require.False(t, cfg.Sitemaps)
	require.Equal(t, 7, cfg.Filter.MaxDepth)
	require.Equal(t, urlfilter.Domain, cfg.Reach)
	require.Equal(t, 9*time.Second, cfg.Delay, "the command line wins")

	for text, want := range map[string]string{
		"agent filebot\nforevr\n":  `:2: unknown flag -forevr (did you mean -forever?)`,
		"\n\ndelay soon\n":         `:3: -delay "soon": `,
		"delay\n":                  `:1: -delay needs a value`,
		"forever maybe # or not\n": `:1: -forever "maybe": `,
	} {
		bad := write(t, text)
		_, err = cockpit.ParseFlags([]string{"-config", bad}, io.Discard)
		require.ErrorContains(t, err, bad+want)
	}
}

// TestFlagsMayFollowURLs: flags are recognized anywhere on the command line.
func TestFlagsMayFollowURLs(t *testing.T) {
	cfg, err := cockpit.ParseFlags([]string{"127.0.0.1:1", "-dry-run", "http://127.0.0.2/", "-depth", "3"}, io.Discard)
	require.NoError(t, err)
	require.True(t, cfg.DryRun)
	require.Equal(t, 3, cfg.Filter.MaxDepth)
	require.Equal(t, []string{"http://127.0.0.1:1/", "http://127.0.0.2/"}, cfg.Seeds)
	dir := t.TempDir()
	status, output := run(t, "127.0.0.1:9", "-out", dir, "-dry-run")
	require.Zero(t, status)
	require.Contains(t, output, "1 host, 0 pages known")
	require.Empty(t, tree(t, dir))
	status, output = run(t, "explain", "a.test", "-out", filepath.Join(dir, "none"))
	require.Equal(t, 1, status)
	require.Contains(t, output, "no crawl here", "the flag after the URL is effective")
}

// TestInvalidCommandLines: among others, a misspelt command is not crawled as a host of that name.
func TestInvalidCommandLines(t *testing.T) {
	hosts := write(t, "127.0.0.2 intranet")
	for want, args := range map[string][]string{
		`did you mean "check"?`:                             {"chekc"},
		`did you mean "snapshot"?`:                          {"snapshto", "-at", "2026-01-01"},
		"commands: check, erase, explain":                   {"crossword"},
		"check is a command, and takes only its own flags":  {"-delay", "1s", "check"},
		`check takes no arguments: "mydir"`:                 {"check", "mydir"},
		`snapshot takes no arguments: "www.x.org"`:          {"-out", "x", "snapshot", "www.x.org"},
		`repair takes no arguments: "months"`:               {"repair", "months"},
		`-respect-signals "foo,train-ai": "foo" is none of`: {"-respect-signals", "foo,train-ai"},
		"-memory 5 B is too little":                         {"-memory", "5"},
		`"-fresh" is not a URL`:                             {"--", "-fresh"},
		`unknown flag -forevr (did you mean -forever?)`:     {"-forevr"},
		"unknown flag -listn (did you mean -listen?)":       {"serve", "-listn", "127.0.0.1:0"},
		`-delay "-1s": want a duration`:                     {"-delay", "-1s"},
		"-delay 0s is too short":                            {"-delay", "0", "-contact", "me@example.org", "a.example"},
		"-delay 500ms is too short":                         {"-delay", "500ms", "-contact", "me@example.org", "a.example"},
		"-pace is for the built-in web":                     {"-pace", "5", "-contact", "me@example.org", "a.example"},
		"-timeout 0s: want more than 0":                     {"-timeout", "0"},
		"-max-body 0: want more than 0":                     {"-max-body", "0"},
		`-dns "ns.test": want an IP`:                        {"-dns", "ns.test"},
		"-price 0: want more than 0":                        {"-price", "0"},
		"-most 1m: want at least -least, 1h":                {"-most", "1m"},
		`-pages "many": want a whole number`:                {"-pages", "many"},
		`-pages "1e99": want a whole number`:                {"-pages", "1e99"},
		`-price "x": want a number`:                         {"-price", "x"},
		`-forever "maybe": want true or false`:              {"-forever=maybe"},
		`-time "soon": want a duration such as`:             {"-time", "soon"},
		`-memory "12 parsecs": want a number of bytes`:      {"-memory", "12 parsecs"},
		"-out needs a value: `directory`":                   {"-out"},
		`:2: -time "10x": want a duration such as`:          {"-config", write(t, "forever\ntime 10x")},
	} {
		status, output := run(t, args...)
		require.Equal(t, 2, status, "%q", args)
		require.Contains(t, output, want, "%q", args)
		require.LessOrEqual(t, strings.Count(output, "\n"), 1, "one line is enough: %s", output)
	}
	for _, args := range [][]string{
		{"localhost"}, {"-hosts", hosts, "intranet"}, {"http://intranet/", "-contact", "me@example.org"},
		{"-delay", "0", "127.0.0.1:8080"}, {"-pace", "5"}, {"-pace", "5", "127.0.0.1:8080"},
		{"-delay", "0", "-own", "-contact", "me@example.org", "a.example"},
	} {
		_, err := cockpit.ParseFlags(args, io.Discard)
		require.NoError(t, err, "%q", args)
	}
}

// TestDefaultDirectories: the built-in web and real sites have separate directories.
func TestDefaultDirectories(t *testing.T) {
	for want, args := range map[string][]string{
		cockpit.DemoOut: nil, cockpit.DefaultOut: {"127.0.0.1:8080"}, "x": {"-out", "x"},
	} {
		cfg, err := cockpit.ParseFlags(args, io.Discard)
		require.NoError(t, err)
		require.Equal(t, want, cfg.Out)
	}
}

// TestADryRunTriesFilesAndAddresses: it leaves nothing behind.
func TestADryRunTriesFilesAndAddresses(t *testing.T) {
	file := write(t, "")
	log := filepath.Join(t.TempDir(), "log")
	for want, args := range map[string][]string{
		"-listen: listen tcp: address 99999": {"-listen", "127.0.0.1:99999"},
		"-log: open " + file:                 {"-log", filepath.Join(file, "log")},
		"0 pages known":                      {"-log", log, "-listen", "127.0.0.1:0"},
	} {
		_, output := run(t, append(args, "-dry-run", "-out", filepath.Join(t.TempDir(), "none"))...)
		require.Contains(t, output, want)
		require.NoFileExists(t, log)
	}
}

// TestCommandsMayFollowFlags: a container's entry point has flags.
func TestCommandsMayFollowFlags(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "check")
	for _, args := range [][]string{{"check"}, {"serve", "-listen", "127.0.0.1:0"}, {"explain", "a.test"}} {
		status, output := run(t, append([]string{"-out", dir}, args...)...)
		require.Equal(t, 1, status)
		require.Contains(t, output, dir, args[0])
	}
	for _, word := range []string{"version", "-version", "--version", "help", "-h"} {
		status, output := run(t, "-out", dir, word)
		require.Zero(t, status, output)
		require.Contains(t, output, "fullcrawler", word)
	}
	status, output := run(t, "scan", "-out", dir, "-filter", "check")
	require.Equal(t, 1, status)
	require.NotContains(t, output, "arguments", "the first command counts")
	require.NoDirExists(t, dir)
}

// TestZeroDelay: with -delay 0 there is no delay, rather than the scheduler's default.
func TestZeroDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := serve(t, webtest.Options{Seed: 53, Hosts: 1, Pages: 20, Network: memnet.New()})
		cfg := politeConfig(t, web)
		cfg.Delay = 0
		start := time.Now()
		crawlWeb(t, web, cfg)
		require.Greater(t, len(web.Log()), 10)
		require.Less(t, time.Since(start), time.Second)
	})
}

func TestSeedsFromStandardInput(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	before := os.Stdin
	os.Stdin = r
	t.Cleanup(func() { os.Stdin = before })
	go func() {
		_, _ = io.WriteString(w, "\ufeffhttp://127.0.0.1/\r\n# and\nhttp://127.0.0.2/\n")
		_ = w.Close()
	}()
	cfg, err := cockpit.ParseFlags([]string{"-seeds", "-"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, []string{"http://127.0.0.1/", "http://127.0.0.2/"}, cfg.Seeds)
}

func TestPolicies(t *testing.T) {
	for name, want := range map[string]revisit.Policy{
		"bayes": revisit.Bayes{Price: 2, Min: time.Hour, Max: time.Minute},
		"mle":   revisit.MLE{Alpha: 2, Min: time.Hour, Max: time.Minute},
		"aimd":  revisit.AIMD{Min: time.Hour, Max: time.Minute},
		"36h":   revisit.Every(36 * time.Hour),
		"feed": func() revisit.Policy {
			feed := revisit.Feed()
			feed.Price, feed.Min, feed.Max = 2, time.Hour, time.Minute
			return feed
		}(),
	} {
		got, err := cockpit.ParsePolicy(name, 2, time.Hour, time.Minute)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, name := range []string{"", "sometimes", "-3h"} {
		_, err := cockpit.ParsePolicy(name, 0, 0, 0)
		require.ErrorContains(t, err, "want bayes", name)
	}
}

// TestMemoryWithoutALimit: with a limit of 0, the garbage collector would run all the time.
func TestMemoryWithoutALimit(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	args := []string{"-memory", "0", "-pages", "1", "-delay", "1ms", "-out", t.TempDir()}
	require.Zero(t, command(t.Context(), args, io.Discard, io.Discard))
	require.Equal(t, int64(math.MaxInt64), debug.SetMemoryLimit(-1))
}

// TestTheBuiltInWebKeepsItsClock: -fresh removes the pages before the clock is set.
func TestTheBuiltInWebKeepsItsClock(t *testing.T) {
	cfg := cockpit.Config{Out: t.TempDir(), Pace: 5, Fresh: true, Queue: 1, Concurrency: 1, Bounds: fetch.Loopback}
	dir, err := cfg.Claim()
	require.NoError(t, err)
	web, err := cfg.ServeDemo(io.Discard)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, web.Close()) })
	file := filepath.Join(cfg.Out, cockpit.BeganName)
	require.NoError(t, os.WriteFile(file, []byte("2026-11-01T00:00:00Z 5\n"), 0o600))
	c, err := openCrawler(dir, cfg, on(web))
	require.NoError(t, err)
	require.NoError(t, c.close())
	require.Equal(t, time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), c.Clock.Began.UTC())
}

// TestAnEarlySIGHUP may discover seeds before the crawl runs. An error then ends the crawl.
func TestAnEarlySIGHUP(t *testing.T) {
	web := serve(t, webtest.Options{Hosts: 1, Pages: 2})
	c, err := newCrawler(testConfig(t, web), on(web))
	require.NoError(t, err)
	require.NoError(t, c.Pages.Close())
	c.discover(web.Reachable()[0], stage.Item{})
	require.Error(t, context.Cause(c.ending))
	require.ErrorIs(t, c.run(t.Context()), context.Cause(c.ending))
}

func TestDryRunFetchesNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "crawl")
	var out, log bytes.Buffer
	args := []string{"-dry-run", "-out", dir, "-delay", "2s", "http://127.0.0.1:9/", "http://127.0.0.2:9/x"}
	require.Zero(t, command(t.Context(), args, &out, &log), log.String())
	require.Contains(t, out.String(), "2 hosts, 0 pages known")
	require.Contains(t, out.String(), "at most 43200 a day")
	require.NoDirExists(t, dir)

	web := serve(t, webtest.Options{Seed: 4, Hosts: 3, Pages: 6})
	cfg := testConfig(t, web)
	cfg.Pages = 4
	c, err := newCrawler(cfg, on(web))
	require.NoError(t, err)
	require.ErrorIs(t, c.run(t.Context()), cockpit.ErrPageLimit)
	requests := len(web.Log())
	out.Reset()
	require.NoError(t, cockpit.DryRun(cfg, &out))
	require.Regexp(t, `3 hosts, \d\d pages known, \d+ never visited, \d+ due now`, out.String())
	require.Len(t, web.Log(), requests)
}

func TestListsAreReloaded(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 4, Hosts: 3, Pages: 6})
	cfg := testConfig(t, web)
	cfg.Filter.Deny = new(urlfilter.List)
	cfg.DenyFile, cfg.SeedFile, cfg.OverrideFile = write(t, ""), write(t, ""), write(t, "")
	cfg.Reach = urlfilter.Host
	require.NoError(t, cfg.ReadOverrides())
	require.NoError(t, cfg.ReadDeny())
	c, err := newCrawler(cfg, on(web))
	require.NoError(t, err)
	defer c.close()
	c.Cfg.LogFile = filepath.Join(t.TempDir(), "log")
	hide, err := c.Show(nil, io.Discard)
	require.NoError(t, err)
	defer hide()
	require.NoError(t, os.Rename(c.Cfg.LogFile, c.Cfg.LogFile+".1"))
	const url = "http://h00002.vweb.test/"
	require.Equal(t, stage.OutOfScope, c.Filter.Check(stage.Item{URL: url}))
	require.NoError(t, os.WriteFile(cfg.SeedFile, []byte(url+"\nmailto:x\n"), 0o600))
	c.reload()
	require.Empty(t, c.Filter.Check(stage.Item{URL: url}))
	found, err := c.commit()
	require.NoError(t, err)
	require.True(t, found, "the new seed")
	require.NoError(t, os.WriteFile(cfg.DenyFile, []byte("h00002.vweb.test\n"), 0o600))
	c.reload()
	require.Equal(t, stage.Denied, c.Filter.Check(stage.Item{URL: url}))
	require.NoError(t, os.WriteFile(cfg.DenyFile, []byte("a b c\n"), 0o600))
	c.reload()
	require.Equal(t, stage.Denied, c.Filter.Check(stage.Item{URL: url}), "a bad list changes nothing")
	var said []string
	c.Say = func(text string) { said = append(said, text) }
	require.NoError(t, os.WriteFile(cfg.OverrideFile, []byte("a.test of\n"), 0o600))
	c.reload()
	require.Contains(t, strings.Join(said, "\n"), `cannot reload the overrides, so nothing of it changes`)
	const other = "http://h00001.vweb.test/"
	require.NoError(t, os.WriteFile(cfg.SeedFile, []byte(other+"\n"), 0o600))
	require.NoError(t, os.WriteFile(cfg.OverrideFile, []byte("h00001.vweb.test delay=1m\n"), 0o600))
	c.reload()
	require.Empty(t, c.Filter.Check(stage.Item{URL: other}))
	require.Equal(t, time.Minute, cfg.Overrides.Of("h00001.vweb.test").Delay)
	require.NoError(t, os.WriteFile(cfg.OverrideFile, []byte("h00001.vweb.test off\n"), 0o600))
	c.reload()
	require.Equal(t, stage.SwitchedOff, c.Filter.Check(stage.Item{URL: other}))
	log, err := os.ReadFile(c.Cfg.LogFile)
	require.NoError(t, err)
	require.Equal(t, 6, strings.Count(string(log), `"msg":"reloaded"`), "a log that was moved away is opened anew")
}

func TestSubcommands(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 4, Hosts: 3, Pages: 6})
	cfg := testConfig(t, web)
	crawlWeb(t, web, cfg)
	run := func(args ...string) (out string, status int) {
		var o, log bytes.Buffer
		args = append(args[:1:1], append([]string{"-out", cfg.Out}, args[1:]...)...)
		status = command(t.Context(), args, &o, &log)
		return o.String() + log.String(), status
	}
	out, status := run("check")
	require.Zero(t, status, out)
	require.Contains(t, out, "0 faults")
	out, status = run("explain", cfg.Seeds[0])
	require.Zero(t, status, out)
	require.Contains(t, out, "last visit")
	out, status = run("snapshot", "-host", "h00000.vweb.test")
	require.Zero(t, status, out)
	n := 0
	for text := range strings.Lines(out) {
		var l cockpit.Listing
		require.NoError(t, json.Unmarshal([]byte(text), &l))
		require.Contains(t, l.URL, "h00000.vweb.test/")
		n++
	}
	require.Greater(t, n, 5)
	out, status = run("snapshot", "-at", "1999-12-31")
	require.Zero(t, status)
	require.Empty(t, out, "there were no versions yet")
	_, status = run("snapshot", "-at", "yesterday")
	require.Equal(t, 2, status)

	file := filepath.Join(t.TempDir(), "out")
	for _, form := range []string{"cdxj", "wacz"} {
		out, status = run("export", form, file)
		require.Zero(t, status, out)
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Greater(t, info.Size(), int64(1000))
		good, err := os.ReadFile(file)
		require.NoError(t, err)
		if form == "cdxj" {
			out, status = run("export", form, "-")
			require.Zero(t, status)
			require.Equal(t, string(good), out, "- is standard output")
		}
		ended, end := context.WithCancel(t.Context())
		end()
		require.Equal(t, 1, command(ended, []string{"export", form, file, "-out", cfg.Out}, io.Discard, io.Discard))
		kept, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, good, kept, "an interrupted export leaves the old file")
		require.NoFileExists(t, file+".new")
		out, status = run("export", form, t.TempDir())
		require.Equal(t, 1, status)
		require.Contains(t, out, "is not a file")
	}
	_, status = run("export", "pdf", file)
	require.Equal(t, 2, status)
	foreign := filepath.Join(t.TempDir(), "foreign.warc")
	require.NoError(t, os.WriteFile(foreign, []byte("WARC/1.0\r\nWARC-Type: resource\r\n"+
		"WARC-Record-ID: <urn:x:1>\r\nWARC-Target-URI: http://foreign.test/\r\n"+
		"WARC-Date: 2001-02-03T04:05:06Z\r\nContent-Length: 4\r\n\r\ntext\r\n\r\n"), 0o600))
	out, status = run("import", foreign)
	require.Zero(t, status, out)
	require.Contains(t, out, "1 file, 1 version, 0 bytes damaged")
	out, status = run("snapshot", "-host", "foreign.test")
	require.Zero(t, status)
	require.Contains(t, out, "http://foreign.test/")
	_, status = run("import", foreign+".none")
	require.Equal(t, 1, status)
	out, status = run("scan", "-workers", "1", "false")
	require.Equal(t, 1, status, "a program that exits immediately reads nothing")
	require.Contains(t, out, "killed its worker")
	if _, err := exec.LookPath("sleep"); err == nil {
		out, status = run("scan", "-timeout", "1ms", "sleep", "1000")
		require.Equal(t, 1, status)
		require.Contains(t, out, "no answer from sleep: without -filter it must speak the protocol")
		out, status = run("scan", "-timeout", "1ms", "-filter", "sleep", "1000")
		require.Equal(t, 1, status)
		require.Contains(t, out, "no answer from sleep: it must read its standard input, and exit")
	}
	if _, err := exec.LookPath("wc"); err == nil {
		out, status = run("scan", "-host", "foreign.test", "-filter", "wc", "-c")
		require.Zero(t, status, out)
		require.Contains(t, out, `"result":4`, "the length of the text")
	}

	victim, err := filepath.Glob(filepath.Join(cfg.Out, "*.warc.gz"))
	require.NoError(t, err)
	text, err := os.ReadFile(victim[0])
	require.NoError(t, err)
	text[len(text)/2] ^= 0x40
	require.NoError(t, os.WriteFile(victim[0], text, 0o600))
	out, status = run("check")
	require.Equal(t, 1, status, out)
	require.Contains(t, out, filepath.Base(victim[0]))

	var log bytes.Buffer
	require.Equal(t, 1, command(t.Context(), []string{"check", "-out", filepath.Join(cfg.Out, "none")}, io.Discard, &log))
	require.Contains(t, log.String(), "no crawl")
	require.Equal(t, 2, command(t.Context(), []string{"check", "-nonsense"}, io.Discard, &log))
	require.Zero(t, command(t.Context(), []string{"scan", "-h"}, io.Discard, &log))
}

func TestServe(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 4, Hosts: 2, Pages: 4})
	cfg := testConfig(t, web)
	crawlWeb(t, web, cfg)
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- command(ctx, []string{"serve", "-out", cfg.Out, "-listen", "127.0.0.1:0",
			"-names", "a.test, b.test"}, w, io.Discard)
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	require.NoError(t, err)
	_, at, found := strings.Cut(strings.TrimSpace(line), ": ")
	require.True(t, found)
	resp, err := http.Get(at)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	resp.Body.Close()
	require.Contains(t, string(text), "h00000.vweb.test")
	for name, want := range map[string]int{"a.test": 200, "b.test": 200, "c.test": 421} {
		named, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
		require.NoError(t, err)
		named.Host = name
		resp, err := http.DefaultClient.Do(named)
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, want, resp.StatusCode, name)
	}
	stop()
	require.Zero(t, <-ended)
}
