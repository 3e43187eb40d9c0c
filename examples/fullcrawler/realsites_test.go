package main

import (
	"bytes"
	"io/fs"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/temoto/robotstxt"
	"golang.org/x/net/html"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/fetch/webtest"
)

// TestRealSites crawls real websites, stored as DIR/HOST/PATH, and compares the result with a
// second crawler that shares no code with the first: it parses pages into trees, resolves links
// with net/url, and uses another robots.txt parser.
func TestRealSites(t *testing.T) {
	dir := os.Getenv("SPINNERET_SITES")
	if dir == "" {
		t.Skip("SPINNERET_SITES names no directory of static sites, one folder for each host")
	}
	web := serve(t, webtest.Options{Static: dir})
	cfg := testConfig(t, web)
	cfg.Delay = 10 * time.Millisecond
	cfg.Reach = urlfilter.Host
	cfg.MaxBody = 64 << 20
	cfg.Seeds = nil
	for host := range web.Hosts() {
		cfg.Seeds = append(cfg.Seeds, host.URL()+entry(t, filepath.Join(dir, host.Name)))
	}
	c := crawlWeb(t, web, cfg)
	log := web.Log() // before the second crawler adds to it
	counts := map[string]int{}
	got := map[string]int{}
	for _, r := range log {
		counts[r.URL()]++
		if r.Status == http.StatusOK && r.Path != "/robots.txt" {
			got[r.URL()] = r.Status
		}
	}
	for url, n := range counts {
		require.Equal(t, 1, n, "requests for %s", url)
	}
	require.Empty(t, webtest.Violations(log,
		func(string) time.Duration { return cfg.Delay },
		func(netip.Addr) time.Duration { return cfg.Delay }))

	second := newWalker(web)
	for _, seed := range cfg.Seeds {
		second.walk(t, seed)
	}
	require.Equal(t, slices.Sorted(maps.Keys(second.pages)), slices.Sorted(maps.Keys(got)))
	t.Logf("%d pages of %d hosts, each fetched once; fates: %v", len(got), len(cfg.Seeds), c.Tally.Sum().Fates)
}

// entry returns the path of the first page to crawl: the highest index.html, or else the first
// page.
func entry(t *testing.T, site string) string {
	var best string
	better := func(path string) bool {
		isIndex, hadIndex := strings.HasSuffix(path, "/index.html"), strings.HasSuffix(best, "/index.html")
		if isIndex != hadIndex {
			return isIndex
		}
		return strings.Count(path, "/") < strings.Count(best, "/")
	}
	err := filepath.WalkDir(site, func(path string, _ fs.DirEntry, err error) error {
		if path = filepath.ToSlash(path); strings.HasSuffix(path, ".html") && (best == "" || better(path)) {
			best = path
		}
		return err
	})
	require.NoError(t, err)
	require.NotEmpty(t, best, "no page in %s", site)
	return strings.TrimPrefix(best, filepath.ToSlash(site)+"/")
}

// A walker is the second crawler: a single goroutine without delays.
type walker struct {
	client *http.Client
	met    map[string]bool
	pages  map[string]bool // with status 200
	rules  map[string]*robotstxt.Group
}

func newWalker(web *webtest.Web) *walker {
	return &walker{
		client: &http.Client{
			Transport:     &http.Transport{DialContext: web.Dial},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		met:   map[string]bool{},
		pages: map[string]bool{},
		rules: map[string]*robotstxt.Group{},
	}
}

func (w *walker) walk(t *testing.T, seed string) {
	base, err := url.Parse(seed)
	require.NoError(t, err)
	queue := []*url.URL{base}
	for len(queue) > 0 {
		u := queue[0]
		queue = queue[1:]
		u.Fragment, u.RawFragment = "", ""
		if u.Path == "" {
			u.Path = "/"
		}
		if u.Scheme != "http" || u.Host != base.Host || w.met[u.String()] || !w.allowed(t, u) {
			continue
		}
		w.met[u.String()] = true
		status, header, body := w.get(t, u.String())
		if to, err := u.Parse(header.Get("Location")); status/100 == 3 && err == nil {
			queue = append(queue, to)
		}
		if status != http.StatusOK {
			continue
		}
		w.pages[u.String()] = true
		if strings.HasPrefix(header.Get("Content-Type"), "text/html") {
			queue = append(queue, treeLinks(t, u, body)...)
		}
	}
}

func (w *walker) get(t *testing.T, url string) (int, http.Header, []byte) {
	resp, err := w.client.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	var body bytes.Buffer
	_, err = body.ReadFrom(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, resp.Header, body.Bytes()
}

func (w *walker) allowed(t *testing.T, u *url.URL) bool {
	if w.rules[u.Host] == nil {
		status, _, body := w.get(t, "http://"+u.Host+"/robots.txt")
		data, err := robotstxt.FromStatusAndBytes(status, body)
		require.NoError(t, err)
		w.rules[u.Host] = data.FindGroup("spinneret")
	}
	return w.rules[u.Host].Test(u.RequestURI())
}

// pageRels are the link types that lead to pages.
var pageRels = []string{
	"canonical", "alternate", "next", "prev", "author", "help", "license", "search", "privacy-policy",
	"terms-of-service", "index", "contents", "start", "top", "up", "first", "last",
}

// treeLinks finds the links of a page in its tree.
func treeLinks(t *testing.T, page *url.URL, body []byte) (links []*url.URL) {
	tree, err := html.Parse(bytes.NewReader(body))
	require.NoError(t, err)
	base := page
	for node := range tree.Descendants() {
		attr := map[string]string{}
		for _, a := range node.Attr {
			attr[a.Key] = strings.Trim(a.Val, " \t\n\f\r")
		}
		ref, ok := "", false
		switch node.Data {
		case "base":
			if href, err := page.Parse(attr["href"]); err == nil && attr["href"] != "" {
				base = href
			}
		case "a", "area":
			ref, ok = attr["href"]
		case "frame", "iframe":
			ref, ok = attr["src"]
		case "link":
			rel := strings.Fields(strings.ToLower(attr["rel"]))
			if slices.ContainsFunc(rel, func(r string) bool {
				return slices.Contains(pageRels, r)
			}) && !slices.Contains(rel, "stylesheet") {
				ref, ok = attr["href"]
			}
		case "meta":
			if strings.EqualFold(attr["http-equiv"], "refresh") {
				_, ref, ok = strings.Cut(attr["content"], "url=")
			}
		}
		ref = strings.ReplaceAll(ref, `\`, "/") // as browsers do
		if u, err := base.Parse(ref); ok && node.Type == html.ElementNode && err == nil {
			links = append(links, u)
		}
	}
	return links
}
