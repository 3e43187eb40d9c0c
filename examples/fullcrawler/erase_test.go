package main

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/scheduler"
)

// forgettable is a site with pages whose URLs contain "xq7", which can be searched for.
func forgettable() *fakeSite {
	return &fakeSite{addr: loopback, serve: func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			fmt.Fprintf(w, "User-agent: *\nCrawl-delay: 0.05\nDisallow: /closed\n# of %s\n", r.Host)
		case "/old":
			http.Redirect(w, r, "http://xq7.test/moved", http.StatusMovedPermanently)
		case "/copy", "/xq7-page":
			fmt.Fprint(w, "<p>the same text in two places")
		default:
			fmt.Fprintf(w, "<p>%s%s<p><a href=/sub>next</a>", r.Host, strings.ReplaceAll(r.URL.Path, "xq7", ""))
		}
	}}
}

// crawlForgettable crawls pages of the site three times, a month apart, so that all files of a crawl
// exist. What follows happens later, in real time.
func crawlForgettable(t *testing.T) (cfg cockpit.Config, s *fakeSite) {
	t.Helper()
	dir := t.TempDir()
	s = forgettable()
	synctest.Test(t, func(t *testing.T) {
		cfg = siteConfig(t, "http://a.test/", "http://a.test/copy", "http://a.test/xq7-page", "http://a.test/old",
			"http://a.test/xq7-dir/1", "http://a.test/xq7-dir/2", "http://xq7.test/", "http://www.xq7.test/deep",
			"http://b.test/")
		cfg.Out, cfg.ByRank, cfg.LedgerSize = dir, true, 500
		for range 3 {
			crawlSite(t, cfg, s.network(t, loopback("").String()))
			time.Sleep(30 * 24 * time.Hour)
		}
	})
	cfg.Delay = time.Millisecond
	return cfg, s
}

// naming returns the files of a crawl that contain a text. Records of the archive are decompressed;
// the contents of other pages do not count.
func naming(t *testing.T, dir, text string) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, ".warc.gz") {
			return err
		}
		bytes, err := os.ReadFile(path)
		if strings.Contains(string(bytes), text) {
			names = append(names, entry.Name())
		}
		return err
	}))
	for _, r := range readArchive(t, dir) {
		if strings.Contains(r.url, text) || r.url != "http://a.test/old" && strings.Contains(string(r.block), text) {
			names = append(names, "record of "+r.url)
		}
	}
	return names
}

var toErase = []string{"xq7.test", "http://a.test/xq7-dir/*", "https://a.test/xq7-page"}

// TestErasedPagesAreInNoFile: what was erased is in no file of the crawl, the rest of the crawl is what
// it was, and a crawl that goes on does not fetch it again.
func TestErasedPagesAreInNoFile(t *testing.T) {
	cfg, s := crawlForgettable(t)
	before := naming(t, cfg.Out, "xq7")
	require.Greater(t, len(before), 8, "%q", before)
	copies := len(versionsOf(t, cfg.Out, "http://a.test/copy"))
	require.Positive(t, copies)
	rotated, err := filepath.Glob(filepath.Join(cfg.Out, "fates-*"))
	require.NoError(t, err)
	require.NotEmpty(t, rotated)
	require.NoError(t, os.WriteFile(filepath.Join(cfg.Out, "pages.damaged"), nil, 0o666))
	paused, err := stage.AppendEntries(nil, slices.Values([]string{"b.test", "www.xq7.test"}))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(cfg.Out, cockpit.PausedName), paused, 0o600))

	status, output := run(t, append([]string{"erase", "-out", cfg.Out, "-reason", "asked by mail"}, toErase...)...)
	require.Zero(t, status, output)
	require.Contains(t, output, "asked by mail")
	require.Contains(t, output, "pages            8 pages erased")
	require.Contains(t, output, filepath.Join(cfg.Out, "pages.damaged")+": this command does not read it")
	require.NotContains(t, output, "index")
	require.Equal(t, []string{cockpit.ErasedName}, naming(t, cfg.Out, "xq7"))
	status, output = run(t, "check", "-out", cfg.Out)
	require.Zero(t, status, output)

	status, output = run(t, append([]string{"erase", "-out", cfg.Out}, toErase...)...)
	require.Zero(t, status, output)
	require.Contains(t, output, "0 lines added")
	require.Contains(t, output, "0 versions erased, 0 files rewritten")
	require.Contains(t, output, "0 lines erased")

	require.Len(t, versionsOf(t, cfg.Out, "http://a.test/copy"), copies)
	require.NoError(t, os.Remove(filepath.Join(cfg.Out, cockpit.PausedName)))
	requests := len(s.requested("xq7"))
	c := crawlSite(t, cfg, s.network(t, loopback("").String()))
	require.Len(t, s.requested("xq7"), requests)
	require.Positive(t, c.Tally.Sum().Fates[stage.Unchanged], "the others are known as before")
	require.Equal(t, []string{cockpit.ErasedName, cockpit.FiltersName}, naming(t, cfg.Out, "xq7"))
	require.Empty(t, versionsOf(t, cfg.Out, "http://a.test/xq7-page"))
}

func versionsOf(t *testing.T, dir, url string) []archive.Version {
	t.Helper()
	a, err := archive.Open(dir, archive.Options{ReadOnly: true})
	require.NoError(t, err)
	defer a.Close()
	versions, err := a.Versions(url)
	require.NoError(t, err)
	return versions
}

// TestEraseAlsoErasesCopies: with -digest the contents are gone under any URL. With -allow a crawl may
// find the page again.
func TestEraseAlsoErasesCopies(t *testing.T) {
	cfg, s := crawlForgettable(t)
	status, output := run(t, "erase", "-out", cfg.Out, "-digest", "-allow", "http://a.test/xq7-page")
	require.Zero(t, status, output)
	require.Contains(t, output, "http://a.test/copy")
	require.Empty(t, versionsOf(t, cfg.Out, "http://a.test/copy"))
	require.NotEmpty(t, versionsOf(t, cfg.Out, "http://b.test/"))
	require.NotContains(t, strings.Join(naming(t, cfg.Out, "xq7-page"), " "), "a.test")
	require.NoFileExists(t, filepath.Join(cfg.Out, cockpit.ErasedName))
	requests := len(s.requested("/xq7-page"))
	crawlSite(t, cfg, s.network(t, loopback("").String()))
	require.Len(t, s.requested("/xq7-page"), requests+1)
}

// TestEraseLeavesOthersAlone: to erase a page or a short name takes nothing of other hosts, nor what a
// host that is still crawled has asked for.
func TestEraseLeavesOthersAlone(t *testing.T) {
	cfg, _ := crawlForgettable(t)
	ledger := filepath.Join(cfg.Out, cockpit.LedgerName)
	lines := `{"time":"2026-01-01T00:00:00Z","url":"http://h1.reddit.com/go","fate":"redirected","says":"","why":"http://h1.reddit.com/there"}
{"time":"2026-01-01T00:00:00Z","url":"http://h1.reddit.com/it","fate":"redirected","says":"","why":"http://www.t.co/there"}
{"time":"2026-01-01T00:00:00Z","url":"http://h1.reddit.com/is","fate":"unknown_host","says":"","why":"lookup T.co.: no such host"}
{"time":"2026-01-01T00:00:00Z","url":"http://h1.reddit.com/no","fate":"redirected","says":"","why":"http://t.co.uk/c.test/"}
`
	require.NoError(t, os.WriteFile(ledger, []byte(lines), 0o666))
	save := func(name string, entries ...any) {
		text, err := stage.AppendEntries(nil, slices.Values(entries))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(cfg.Out, name), text, 0o600))
	}
	save(cockpit.StateName, scheduler.Entry{Host: "b.test", RetryAfter: time.Now().Add(time.Hour)}, scheduler.Entry{Host: "t.co"})
	save(cockpit.PausedName, "b.test", "t.co", "reddit.com")
	erase := func(args ...string) (ledgerText, names string) {
		status, output := run(t, append([]string{"erase", "-out", cfg.Out}, args...)...)
		require.Zero(t, status, output)
		text, err := os.ReadFile(ledger)
		require.NoError(t, err)
		for _, name := range []string{cockpit.StateName, cockpit.PausedName} {
			state, err := os.ReadFile(filepath.Join(cfg.Out, name))
			require.NoError(t, err)
			names += string(state)
		}
		return string(text), names
	}
	_, names := erase("-allow", "t.co", "http://b.test/")
	require.Equal(t, 2, strings.Count(names, `"b.test"`))
	require.Equal(t, 2, strings.Count(names, `"t.co"`), "it is crawled again")
	text, names := erase("t.co", "http://b.test/")
	require.Equal(t, 2, strings.Count(names, `"b.test"`))
	require.NotContains(t, names, `"t.co"`)
	require.Contains(t, names, "reddit.com")
	require.Contains(t, text, "http://h1.reddit.com/there")
	require.Contains(t, text, "http://t.co.uk/c.test/")
	require.Equal(t, 2, strings.Count(text, `"why":"erased"`), text)
}

// TestErasedInEverySpelling: equivalent escapes are the same page, whoever has chosen them.
func TestErasedInEverySpelling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := &fakeSite{addr: loopback, serve: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			switch r.URL.Path { // decoded
			case "/robots.txt":
				http.NotFound(w, r)
			case "/":
				fmt.Fprint(w, "<a href=/~me/1>1</a><a href=/go>x</a><a href=/to>x</a>")
			case "/go":
				w.Header().Set("Location", "http://a.test/%7Eme/1")
				w.WriteHeader(http.StatusFound)
			case "/to":
				w.Header().Set("Location", "http://a.test/%7e%79ou")
				w.WriteHeader(http.StatusFound)
			default:
				fmt.Fprint(w, "a secret life")
			}
		}}
		cfg := siteConfig(t, "http://a.test/")
		web := site.network(t, loopback("").String())
		crawlSite(t, cfg, web)
		require.Len(t, site.requested("%7"), 2)
		status, output := run(t, "erase", "-out", cfg.Out, "http://a.test/~me/*", "http://a.test/~you")
		require.Zero(t, status, output)
		require.Contains(t, output, "3 versions erased")
		require.Contains(t, output, "3 pages erased")
		time.Sleep(400 * 24 * time.Hour)
		crawlSite(t, cfg, web)
		require.Len(t, site.requested("%7"), 2)
		require.Len(t, site.requested("/go"), 2)
		for _, r := range readArchive(t, cfg.Out) {
			require.NotContains(t, string(r.block), "secret", r.url)
		}
	})
}

// TestEraseIsRepeatable: an erasure that fails in the middle is completed by the same command.
func TestEraseIsRepeatable(t *testing.T) {
	cfg, _ := crawlForgettable(t)
	args := append([]string{"erase", "-out", cfg.Out, "-digest"}, toErase...)
	broken := filepath.Join(cfg.Out, cockpit.OrderName)
	good, err := os.ReadFile(broken)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(broken, good[:len(good)/2], 0o600))
	status, output := run(t, args...)
	require.Equal(t, 1, status, output)
	require.Contains(t, output, "run the same command again for the rest")
	require.Contains(t, output, "pages            8 pages erased")
	require.Greater(t, len(naming(t, cfg.Out, "xq7")), 1)
	require.NoError(t, os.WriteFile(broken, good, 0o600))
	status, output = run(t, args...)
	require.Zero(t, status, output)
	require.Equal(t, []string{cockpit.ErasedName}, naming(t, cfg.Out, "xq7"))
}

// TestEraseRefuses what it does not understand, and a directory in use, before it changes anything.
func TestEraseRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	status, output := run(t, "-delay", "1ms", "-pages", "20", "-out", dir)
	require.Zero(t, status, output)
	before := tree(t, dir)
	for arg, want := range map[string]string{
		"": "nor a host", "com": "many owners", "co.uk": "many owners", "a.test:8080": "nor a host", "*": "URL", "http://*": "URL",
		"no host": "nor a host",
	} {
		status, output := run(t, "erase", "-out", dir, arg)
		require.Equal(t, 2, status, "%q: %s", arg, output)
		require.Contains(t, output, want, "%q", arg)
	}
	d, err := cockpit.OpenDirectory(dir, "crawl")
	require.NoError(t, err)
	status, output = run(t, "erase", "-out", dir, "http://h00001.vweb.test/")
	require.Equal(t, 1, status)
	require.Contains(t, output, fmt.Sprint("process ", os.Getpid()))
	require.Contains(t, output, "stop it first")
	require.NoError(t, d.Close())
	require.Equal(t, before, tree(t, dir))
}

// TestTheReasonIsALine, whatever is pasted: none of it is an entry of the list.
func TestTheReasonIsALine(t *testing.T) {
	cfg, _ := crawlForgettable(t)
	status, output := run(t, "erase", "-out", cfg.Out, "-reason", "Dear Sir,\r\n\nb.test\tis me\x1b.\n", "http://a.test/xq7-page")
	require.Zero(t, status, output)
	text, err := os.ReadFile(filepath.Join(cfg.Out, cockpit.ErasedName))
	require.NoError(t, err)
	require.Regexp(t, "^# .*  Dear Sir, b.test is me .\n=http://a.test/xq7-page\n=https://a.test/xq7-page\n$", string(text))
	require.Empty(t, versionsOf(t, cfg.Out, "http://a.test/xq7-page"))
}

// TestExportsInTheDirectory are kept, and the command says so.
func TestExportsInTheDirectory(t *testing.T) {
	cfg, _ := crawlForgettable(t)
	for _, name := range []string{"index.cdxj", "index", "index-a.warc.gz.bak"} {
		file := filepath.Join(cfg.Out, name)
		status, output := run(t, "export", "-out", cfg.Out, "cdxj", file)
		require.Zero(t, status, output)
		status, output = run(t, "erase", "-out", cfg.Out, "http://a.test/xq7-page")
		require.Zero(t, status, output)
		require.Contains(t, output, file+": this command does not read it")
	}
}

// TestAnErasedSeed: the same command goes on, although only where the seed has led is left, or another seed.
func TestAnErasedSeed(t *testing.T) {
	for n, how := range []string{"-allow=false", "-allow", "-allow=false"} {
		synctest.Test(t, func(t *testing.T) {
			another := n == 2
			s := &fakeSite{addr: loopback, serve: func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/robots.txt":
					http.NotFound(w, r)
				case r.Host == "a.test" && !another:
					http.Redirect(w, r, "http://www.a.test/", http.StatusFound)
				}
			}}
			cfg := siteConfig(t, "http://a.test/")
			web := s.network(t, loopback("").String())
			c, err := newCrawler(cfg, web)
			require.NoError(t, err)
			if another {
				time.AfterFunc(time.Second, func() { c.visitNow("http://b.test/") })
			}
			require.NoError(t, c.run(t.Context()))
			status, output := run(t, "erase", "-out", cfg.Out, how, "http://a.test/")
			require.Zero(t, status, output)
			crawlSite(t, cfg, web)
		})
	}
}
