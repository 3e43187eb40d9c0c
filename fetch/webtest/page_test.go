package webtest

import (
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// offline returns a web that is computed but not served.
func offline(o Options) *Web {
	o = o.withDefaults()
	w := &Web{scheme: "http://", seed: mix(o.Seed + 1), prose: newProse(o.Seed), generated: o.Hosts, now: o.Now,
		size: float64(o.Size)}
	w.addHosts(o, nil, 1)
	return w
}

func TestPathsAreFoundAgain(t *testing.T) {
	w := offline(Options{Hosts: 3, Pages: 5000})
	seen := make(map[string]bool)
	for host := range w.hosts {
		for page := range 5000 {
			path := string(w.appendPath(nil, host, page))
			got, ok := w.findPage(host, path)
			require.True(t, ok, path)
			require.Equal(t, page, got, path)
			full := w.hosts[host].Name + path
			require.False(t, seen[full], full)
			seen[full] = true
		}
	}
	for _, p := range []string{"", "x", "/0", "/p0.html", "/p5000.html", "/p99999999999999999999"} {
		_, ok := w.findPage(0, p)
		require.False(t, ok, p)
	}
}

func TestPathsComeInAllForms(t *testing.T) {
	w := offline(Options{Hosts: 1, Pages: 500})
	all := strings.Join(slices.Collect(w.hosts[0].Pages()), "\n")
	for _, form := range []string{"/private/", "/item?id=", "&b=", "/%E2%82%AC-", "/\n", "/~"} {
		require.Contains(t, all, form)
	}
}

// No word of the vocabulary may be the path of something else.
func TestWordsDoNotCollideWithFixedPaths(t *testing.T) {
	words := newProse(0).words
	for _, dir := range []string{trapDir, goDir, privateDir, "/ghost/", "/item/"} {
		require.NotContains(t, words, strings.Trim(dir, "/"))
	}
	for _, w := range words {
		require.False(t, strings.ContainsAny(w, "0123456789"), w)
		require.Greater(t, len(w), 1, "a single letter would be a directory")
	}
}

// A page has exactly the links that appendLinks returns, in whatever form they are written.
func TestWrittenLinksAreThePlannedOnes(t *testing.T) {
	w := offline(Options{Hosts: 20, Pages: 200})
	var p page
	for host := range w.hosts {
		for number := range 50 {
			p.render(w, host, number, 0)
			want := []string{}
			for _, l := range w.appendLinks(nil, host, number) {
				want = append(want, string(w.appendURL(nil, l.host, l.page)))
			}
			self := string(w.appendURL(nil, host, number))
			got := append([]string{}, references(self, string(p.body))...)
			if strings.Contains(string(p.body), `<a href="#here">`) {
				i := slices.Index(got, self)
				got = slices.Delete(got, i, i+1)
			}
			require.Equal(t, want, got, "%s\n%s", self, p.body)
		}
	}
}

func TestLinksComeInAllForms(t *testing.T) {
	w := offline(Options{Hosts: 20, Pages: 200})
	var all strings.Builder
	var p page
	for number := range 200 {
		p.render(w, 3, number, 0)
		all.Write(p.body)
	}
	for _, form := range []string{
		`<A HREF="`, `href = '`, "rel=next\n href=", `href="//`, `href="http://`, `href="/`,
		`href="../`, `&amp;`, `&#x2F;`, `<base href="`, `mailto:`, `javascript:`, `#`,
	} {
		require.Contains(t, all.String(), form)
	}
}

func TestTextIsValidAndVaries(t *testing.T) {
	w := offline(Options{Hosts: 1, Pages: 300})
	var p page
	bodies := make(map[string]bool)
	for number := range 300 {
		p.render(w, 0, number, 0)
		require.True(t, utf8.Valid(p.body))
		bodies[string(p.body)] = true
		p.render(w, 0, number, 1)
		bodies[string(p.body)] = true
	}
	require.Len(t, bodies, 600, "all versions and pages differ")
}

func TestSizesAreLogNormal(t *testing.T) {
	w := offline(Options{Hosts: 1, Pages: 3000, Size: 10_000})
	var sizes []float64
	for number := range 3000 {
		sizes = append(sizes, float64(w.pageSize(0, number)))
	}
	slices.Sort(sizes)
	require.InEpsilon(t, 10_000, sizes[1500], 0.05)
	require.InEpsilon(t, 10_000*math.Exp(sizeSigma), sizes[2524], 0.08)

	var p page
	w = offline(Options{Hosts: 1, Pages: 100, Size: 20_000})
	for number := range 100 {
		p.render(w, 0, number, 0)
		require.InEpsilon(t, w.pageSize(0, number), len(p.body), 0.1)
	}
}

func TestRelativeReferences(t *testing.T) {
	for _, tt := range []struct{ from, target, want string }{
		{"/", "/", "./"},
		{"/", "/a.html", "a.html"},
		{"/p1.html", "/", "./"},
		{"/a/1/", "/", "../../"},
		{"/a/b/1.html", "/item?id=3", "../../item?id=3"},
		{"/q1.html?a=x/y", "/b/", "b/"},
	} {
		got := string(appendRelative(nil, []byte(tt.from), []byte(tt.target)))
		require.Equal(t, tt.want, got, "%+v", tt)
		base, err := url.Parse("http://h.test" + tt.from)
		require.NoError(t, err)
		to, err := base.Parse(got)
		require.NoError(t, err)
		require.Equal(t, "http://h.test"+tt.target, to.String())
	}
}

func TestRandomNumbersStayInRange(t *testing.T) {
	r := rng(3)
	var count [7]int
	for range 7000 {
		count[r.below(7)]++
		u := r.unit()
		require.Greater(t, u, 0.0)
		require.Less(t, u, 1.0)
	}
	for _, n := range count {
		require.InDelta(t, 1000, n, 150)
	}
	require.Zero(t, r.below(1))
}

func FuzzFindPageIsTheInverseOfAppendPath(f *testing.F) {
	w := offline(Options{Hosts: 2, Pages: 1 << 30})
	for _, page := range []int{0, 1, 17, 4711, 1<<30 - 1} {
		f.Add(string(w.appendPath(nil, 0, page)), page)
	}
	f.Add("/p007.html", 7)
	f.Add("/p99999999999999999999.html", -1)
	f.Fuzz(func(t *testing.T, target string, page int) {
		if found, ok := w.findPage(1, target); ok {
			if back := string(w.appendPath(nil, 1, found)); back != target {
				t.Errorf("findPage(%q) = %d, whose path is %q", target, found, back)
			}
		}
		if page < 0 || page >= 1<<30 {
			return
		}
		path := string(w.appendPath(nil, 1, page))
		if found, ok := w.findPage(1, path); !ok || found != page {
			t.Errorf("findPage(%q) = %d, %t, want %d", path, found, ok, page)
		}
	})
}
