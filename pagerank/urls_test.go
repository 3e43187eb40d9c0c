package pagerank

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNamesAreThoseOfAMap compares with a map, for strings of all lengths that begin alike or not.
func TestNamesAreThoseOfAMap(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 40))
		var n names
		ids, list := map[string]uint32{}, []string{}
		_, ok := n.lookup("")
		require.False(t, ok)
		for range 6000 {
			name := fmt.Sprintf("http://%d.test/%s", r.IntN(30), strings.Repeat("a/", r.IntN(9))+fmt.Sprint(r.IntN(200)))
			switch r.IntN(40) {
			case 0:
				name = strings.Repeat(string(rune('a'+r.IntN(3))), r.IntN(longestURL))
			case 1:
				name = name[:r.IntN(len(name))]
			}
			want, known := ids[name]
			got, found := n.lookup(name)
			require.Equal(t, known, found)
			id, added := n.add(name)
			require.Equal(t, !known, added)
			if !known {
				want = uint32(len(list))
				ids[name] = want
				list = append(list, name)
			} else {
				require.Equal(t, want, got)
			}
			require.Equal(t, want, id)
			back := r.IntN(len(list))
			require.Equal(t, list[back], string(n.bytes(uint32(back))))
		}
		for i := range 40 { // blocks that are larger than a slab
			name := strings.Repeat(string(rune('a'+i)), longestURL)
			id, added := n.add(name)
			require.True(t, added)
			require.Equal(t, name, string(n.bytes(id)))
			list = append(list, name)
		}
		var all []string
		n.all(func(name []byte) bool { all = append(all, string(name)); return true })
		require.Equal(t, list, all)
		require.Equal(t, len(list), n.n)
	}
}

func TestHostsOfURLs(t *testing.T) {
	for url, want := range map[string]string{
		"http://a.test/":                 "a.test",
		"http://a.test":                  "a.test",
		"https://A.Test:8443/x":          "a.test",
		"http://user:secret@a.test:80?q": "a.test",
		"http://[::1]:80/":               "[::1]",
		"http://[::1]/a:b":               "[::1]",
		"http://a.test#b@c/":             "a.test",
		"mailto:x@a.test":                "",
		"":                               "",
		`http://a.test\x`:                "a.test",
		"http://a.test/http://b.test/":   "a.test",
		"http://xn--bcher-kva.test/%2e":  "xn--bcher-kva.test",
		"http://a.test:/":                "a.test",
	} {
		require.Equal(t, want, hostOf(url), "%q", url)
	}
}

// urlOf names the pages of a web on 40 hosts.
func urlOf(id uint32) string { return fmt.Sprintf("http://h%d.test/p/%d", id%40, id) }

func urlsOf(ids []uint32) (urls []string) {
	for _, id := range ids {
		urls = append(urls, urlOf(id))
	}
	return urls
}

// TestURLsComeAsTheirIdsDo crawls the same web by URL and by the ids that the URLs get.
func TestURLsComeAsTheirIdsDo(t *testing.T) {
	g, u := testWeb(3000, 12), NewURLs(Options{})
	f := New(Options{Host: func(id uint32) uint32 {
		host, _ := u.hosts.lookup(hostOf(u.URL(id)))
		return host
	}})
	require.True(t, u.Discover(urlOf(0)))
	f.Discover(0)
	for url, ok := u.Next(); ok; url, ok = u.Next() {
		id, more := f.Next()
		require.True(t, more)
		require.Equal(t, u.URL(id), url)
		require.InDelta(t, f.Score(id), u.Frontier().Score(id), 1e-12)
		links := g.Links(number(url))
		u.Fetched(url, urlsOf(links))
		ids := make([]uint32, len(links))
		for i, link := range links {
			ids[i], _ = u.ID(urlOf(link))
		}
		f.Fetched(id, ids)
	}
	_, more := u.Next()
	require.False(t, more)
	require.Zero(t, pending(u))
	id, ok := u.ID(urlOf(3))
	require.True(t, ok)
	require.Equal(t, urlOf(3), u.URL(id))
	require.Empty(t, u.URL(1<<31))
	require.Greater(t, u.Stats().Bytes, u.Frontier().Stats().Bytes)
	requireLaw(t, u.Frontier())
}

func TestURLsOfHostsThatAreNotReady(t *testing.T) {
	u := NewURLs(Options{Cutoff: DL1})
	u.Fetched("http://a.test/", []string{"http://b.test/1", "http://B.TEST:80/2", "http://c.test/"})
	busy := map[string]bool{"b.test": true}
	ready := func(host string) bool { return !busy[host] }
	url, ok := u.NextReady(ready)
	require.True(t, ok)
	require.Equal(t, "http://c.test/", url)
	_, ok = u.NextReady(ready)
	require.False(t, ok)
	u.Release("nobody.test")
	busy = nil
	u.Release("b.test")
	url, ok = u.NextReady(ready)
	require.True(t, ok)
	require.Equal(t, "http://b.test/1", url)
}

func TestURLsThatAreIgnored(t *testing.T) {
	u := NewURLs(Options{Limit: 2})
	long := "http://a.test/" + strings.Repeat("x", longestURL)
	require.False(t, u.Discover(long))
	u.Fetched(long, []string{"http://b.test/"})
	require.Zero(t, pending(u))
	require.True(t, u.Discover("http://a.test/"))
	u.Fetched("http://a.test/", []string{"http://b.test/", "http://c.test/", "http://a.test/"})
	require.False(t, u.Discover("http://c.test/"))
	require.True(t, u.Discover("http://b.test/"), "there is room for what is known")
	require.Equal(t, 2, u.Stats().Known)
	require.Equal(t, 4, u.Stats().Dropped)
	u.Frontier().Fetched(7, []uint32{1})
	require.Equal(t, 2, u.Stats().Known, "ids without a URL are beyond the limit")
}

func TestWorthOfURLs(t *testing.T) {
	var u *URLs
	u = NewURLs(Options{Score: func(id uint32) float64 {
		return map[bool]float64{true: 10, false: 1}[strings.HasSuffix(u.URL(id), ".html")]
	}})
	u.Fetched("http://a.test/", []string{"http://a.test/1.png", "http://a.test/2.html"})
	url, _ := u.Next()
	require.Equal(t, "http://a.test/2.html", url)
}

// crawledURLs returns URLs with some pages fetched, some busy hosts, and newcomers.
func crawledURLs(pages int) (*URLs, webGraph) {
	g, u := testWeb(3000, 13), NewURLs(Options{})
	u.Discover(urlOf(0))
	for i := range pages {
		url, _ := u.NextReady(func(host string) bool { return host != "h7.test" && (i%5 > 0 || host != "h8.test") })
		u.Fetched(url, urlsOf(g.Links(number(url))))
	}
	return u, g
}

func number(url string) (id uint32) {
	_, _ = fmt.Sscanf(url[strings.LastIndexByte(url, '/')+1:], "%d", &id)
	return id
}

func TestSavedURLsGoOn(t *testing.T) {
	rest := func(u *URLs, g webGraph) (order []string) {
		for range u.Stats().Aside + 1 {
			u.Release("h7.test")
			u.Release("h8.test")
		}
		for url, ok := u.Next(); ok; url, ok = u.Next() {
			order = append(order, url)
			u.Fetched(url, urlsOf(g.Links(number(url))))
		}
		return order
	}
	for _, pages := range []int{0, 1, 40, 501, 1003} {
		u, g := crawledURLs(pages)
		var file bytes.Buffer
		n, err := u.WriteTo(&file)
		require.NoError(t, err)
		require.Equal(t, int64(file.Len()), n)
		got, err := ReadURLs(bytes.NewReader(file.Bytes()), Options{})
		require.NoError(t, err)
		requireLaw(t, got.Frontier())
		never, _ := crawledURLs(pages)
		want := rest(never, g)
		require.Equal(t, want, rest(u, g), "saving changes nothing")
		require.ElementsMatch(t, want, rest(got, g), "the busy host may have moved")
	}
}

func TestFilesAreReplaced(t *testing.T) {
	u, _ := crawledURLs(20)
	name := filepath.Join(t.TempDir(), "urls")
	for _, from := range []interface{ WriteFile(name string) error }{u.Frontier(), u} {
		require.NoError(t, from.WriteFile(name))
	}
	file, err := os.Open(name)
	require.NoError(t, err)
	defer file.Close()
	got, err := ReadURLs(file, Options{})
	require.NoError(t, err)
	require.Equal(t, u.urls.n, got.urls.n)
	_, err = ReadURLs(file, Options{})
	var corrupt *CorruptError
	require.ErrorAs(t, err, &corrupt, "it is at its end")
	require.Equal(t, CorruptError{name, 0, "it ends too early"}, *corrupt)
	require.Error(t, u.WriteFile(filepath.Join(name, "x", "y")))
}

func TestBrokenURLsAreRefused(t *testing.T) {
	u, _ := crawledURLs(20)
	var file bytes.Buffer
	_, err := u.WriteTo(&file)
	require.NoError(t, err)
	for at := 0; at < file.Len(); at += 1 + at/50 {
		_, err := ReadURLs(bytes.NewReader(file.Bytes()[:at]), Options{})
		require.ErrorIs(t, err, ErrCorrupt, "cut at %d", at)
		broken := slices.Clone(file.Bytes())
		broken[at] ^= 1 << (at % 8)
		_, err = ReadURLs(bytes.NewReader(broken), Options{})
		require.Error(t, err, "byte %d", at)
	}
	_, err = ReadURLs(bytes.NewReader(file.Bytes()), Options{Limit: 10})
	require.ErrorIs(t, err, ErrOptions)
	_, err = u.WriteTo(failing{fmt.Errorf("disk")})
	require.ErrorContains(t, err, "disk")
	body := payload(file.Bytes())
	list := body[:len(body)-len(payload(saved(t, u.Frontier())))]
	other := payload(saved(t, New(Options{Host: tenPerHost})))
	_, err = ReadURLs(bytes.NewReader(forged(urlsMagic, slices.Concat(list, other))), Options{})
	require.ErrorIs(t, err, ErrCorrupt, "a frontier of other ids")
}

// FuzzReadURLs feeds lists of URLs with right checksums and an empty frontier: what loads has each
// URL once, and saves as what it was loaded from.
func FuzzReadURLs(f *testing.F) {
	u, _ := crawledURLs(3)
	var file bytes.Buffer
	if _, err := u.WriteTo(&file); err != nil {
		f.Fatal(err)
	}
	body := payload(file.Bytes())
	var frontier bytes.Buffer
	if _, err := u.Frontier().WriteTo(&frontier); err != nil {
		f.Fatal(err)
	}
	f.Add(body[:len(body)-len(payload(frontier.Bytes()))])
	f.Add([]byte("\x01\x00\x00"))
	f.Add([]byte("\x02\x00\x02\x000\x01\x011")) // both forgotten
	f.Add([]byte("\x02\x00\x02\x00x\x01\x01y"))
	f.Fuzz(func(t *testing.T, list []byte) {
		empty := NewURLs(Options{Limit: 1 << 16})
		count := 0
		if len(list) > 0 {
			count = int(list[0] & 0x7f)
		}
		empty.frontier.cover(uint64(count))
		nodes := payload(saved(t, empty.frontier))
		got, err := ReadURLs(bytes.NewReader(forged(urlsMagic, slices.Concat(list, nodes))), Options{Limit: 1 << 16})
		if err != nil {
			t.Skip()
		}
		require.Equal(t, count, got.urls.n)
		met := map[string]bool{}
		for id := range uint32(count) {
			url := got.URL(id)
			if url == "" && isForgotten(string(got.urls.bytes(id))) {
				continue
			}
			require.False(t, met[url])
			met[url] = true
			back, ok := got.ID(url)
			require.True(t, ok)
			require.Equal(t, id, back)
		}
		var again bytes.Buffer
		_, err = got.WriteTo(&again)
		require.NoError(t, err)
		twice, err := ReadURLs(bytes.NewReader(again.Bytes()), Options{Limit: 1 << 16})
		require.NoError(t, err)
		var third bytes.Buffer
		_, err = twice.WriteTo(&third)
		require.NoError(t, err)
		require.Equal(t, again.Bytes(), third.Bytes())
	})
}

// TestForgetWhileItAsks: the callback may look at the table, also at all of it.
func TestForgetWhileItAsks(t *testing.T) {
	u := NewURLs(Options{})
	for i := range 64 {
		u.Discover(fmt.Sprintf("https://h%d.example/path/%d", i, i*i))
	}
	asked := 0
	require.Zero(t, u.Forget(func(url string) bool {
		asked++
		_, known := u.ID(url)
		require.True(t, known, url)
		_, err := u.WriteTo(io.Discard)
		require.NoError(t, err)
		return false
	}))
	require.Equal(t, 64, asked)
}
