package weburl_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	whatwg "github.com/spinneret-go/spinneret/internal/weburl"
)

func TestCanonical(t *testing.T) {
	for _, tt := range []struct{ name, input, want string }{
		{"already canonical", "https://a.test:8080/b/c?d=e&f", "https://a.test:8080/b/c?d=e&f"},
		{"fragment", "https://a.test/b#c", "https://a.test/b"},
		{"empty fragment", "https://a.test/b#", "https://a.test/b"},
		{"user name and password", "https://u:p@a.test/", "https://a.test/"},
		{"user name only", "https://u@a.test/", "https://a.test/"},
		{"case of scheme and host", "HTTPS://A.Test/B", "https://a.test/B"},
		{"default port", "https://a.test:443/", "https://a.test/"},
		{"default port of the other scheme", "https://a.test:80/", "https://a.test:80/"},
		{"empty path", "https://a.test", "https://a.test/"},
		{"empty path and a query", "https://a.test?b", "https://a.test/?b"},
		{"empty query stays", "https://a.test/?", "https://a.test/?"},
		{"order of the query stays", "https://a.test/?b&a", "https://a.test/?b&a"},
		{"escapes stay", "https://a.test/%7e%7E~", "https://a.test/%7e%7E~"},
		{"dot segments", "https://a.test/b/./../c", "https://a.test/c"},
		{"spaces and line breaks", " https://a.test/b\r\n c ", "https://a.test/b%20c"},
		{"international", "https://Bücher.test/ü", "https://xn--bcher-kva.test/%C3%BC"},
		{"address", "http://0x7f.1:0080/", "http://127.0.0.1/"},
		{"same length, not the same", "http:\\\\a.test/b", "http://a.test/b"},
		{"maximum length", longURL(weburl.MaxLength), longURL(weburl.MaxLength)},
		{"short without its fragment", longURL(weburl.MaxLength) + "#x", longURL(weburl.MaxLength)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := weburl.Canonical(tt.input)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

// TestResolve only covers the combination of parsing and Canonical, which have tests of their own.
func TestResolve(t *testing.T) {
	const page = "HTTPS://u:p@A.test:443/b/c?d#e"
	for _, tt := range []struct{ name, base, link, want string }{
		{"relative", page, "e", "https://a.test/b/e"},
		{"parent", page, "../e?f#g", "https://a.test/e?f"},
		{"fragment of the page", page, "#top", "https://a.test/b/c?d"},
		{"nothing", page, "", "https://a.test/b/c?d"},
		{"query", page, "?x y", "https://a.test/b/c?x%20y"},
		{"other host", page, `\\Other.test\x y`, "https://other.test/x%20y"},
		{"absolute", page, " http://b.test:80/ ", "http://b.test/"},
		{"scheme without slashes", page, "https:x", "https://a.test/b/x"},
		{"absolute on a local page", "file:///a/b", "https://b.test", "https://b.test/"},
		{"line break", page, "/a\n/b", "https://a.test/a/b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := weburl.Resolve(tt.base, tt.link)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
	for _, tt := range []struct {
		base, link string
		want       error
	}{
		{"not a URL", "https://a.test/", weburl.ErrInvalid},
		{page, "https://a b/", weburl.ErrInvalid},
		{"mailto:a@b.test", "c", weburl.ErrInvalid},
		{page, "mailto:a@b.test", weburl.ErrScheme},
		{"file:///a/b", "c", weburl.ErrScheme},
		{page, longURL(weburl.MaxLength + 1), weburl.ErrTooLong},
	} {
		_, err := weburl.Resolve(tt.base, tt.link)
		require.ErrorIs(t, err, tt.want, "Resolve(%q, %q)", tt.base, tt.link)
	}
}

func longURL(length int) string {
	const start = "https://a.test/"
	return start + strings.Repeat("x", length-len(start))
}

func TestCanonicalRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, input string
		want        error
	}{
		{"nothing", "", weburl.ErrInvalid},
		{"relative", "/a", weburl.ErrInvalid},
		{"bad host", "https://a b/", weburl.ErrInvalid},
		{"bad port", "https://a:x/", weburl.ErrInvalid},
		{"mail address", "mailto:a@b.test", weburl.ErrScheme},
		{"script", "javascript:void(0)", weburl.ErrScheme},
		{"file", "file:///etc/passwd", weburl.ErrScheme},
		{"ftp", "ftp://a.test/", weburl.ErrScheme},
		{"too long", longURL(weburl.MaxLength + 1), weburl.ErrTooLong},
		{"too long once encoded", longURL(weburl.MaxLength-1) + "ü", weburl.ErrTooLong},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := weburl.Canonical(tt.input)
			require.ErrorIs(t, err, tt.want)
			require.Empty(t, got)
			require.True(t, strings.HasPrefix(err.Error(), "weburl: "), err)
		})
	}
}

func TestCanonicalURLsDoNotAllocate(t *testing.T) {
	for _, url := range []string{
		canonicalURL,
		"http://192.0.2.1:8080/?",
		"https://[2001:db8::1]/.well-known/x",
		longURL(weburl.MaxLength),
	} {
		require.Zero(t, testing.AllocsPerRun(10, func() {
			if got, err := weburl.Canonical(url); got != url || err != nil {
				t.Errorf("Canonical(%q) = %q, %v", url, got, err)
			}
		}), url)
	}
}

func readData(t testing.TB, name string) []byte {
	t.Helper()
	dir := os.Getenv("SPINNERET_DATA")
	if dir == "" {
		dir = "../../../shared/data"
	}
	data, err := os.ReadFile(filepath.Join(dir, name))
	if os.IsNotExist(err) {
		t.Skipf("no %s: set SPINNERET_DATA to the directory with the test data", name)
	}
	require.NoError(t, err)
	return data
}

func readZstd(t testing.TB, name string) []byte {
	t.Helper()
	decoder, err := zstd.NewReader(nil)
	require.NoError(t, err)
	defer decoder.Close()
	data, err := decoder.DecodeAll(readData(t, name), nil)
	require.NoError(t, err)
	return data
}

// TestRealURLs checks the laws of Canonical and Steps for URLs from the web.
func TestRealURLs(t *testing.T) {
	for i, url := range realURLs(t) {
		if i%8 != 0 {
			continue
		}
		if again, err := weburl.Canonical(url); err != nil || again != url {
			t.Errorf("Canonical(%q) = %q, %v", url, again, err)
		}
		clean, err := allSteps.Canonical(url)
		if twice, again := allSteps.Canonical(clean); err != nil || again != nil || twice != clean {
			t.Errorf("%q becomes %q, %v, and then %q, %v", url, clean, err, twice, again)
		}
	}
}

func FuzzCanonicalIsIdempotent(f *testing.F) {
	f.Add("HTTP://u:p@Example.COM:80/a/../b?x=1#f")
	f.Add("https:\\\\[::FFFF:1.2.3.4]:0444//%2e/\xff?'")
	f.Add("http://é%41.1.%e3%80%82/?")
	f.Add("https://a.test/" + strings.Repeat("ü", 40))
	f.Fuzz(func(t *testing.T, in string) {
		_, _ = weburl.Host(in), weburl.Site(in) // any result is fine, but they must not panic
		once, err := weburl.Canonical(in)
		if err != nil {
			t.Skip()
		}
		if twice, err := weburl.Canonical(once); err != nil || twice != once {
			t.Errorf("Canonical(%q) = %q, then %q, %v", in, once, twice, err)
		}
		if len(once) > weburl.MaxLength {
			t.Errorf("Canonical(%q) has %d bytes", in, len(once))
		}
		u, err := whatwg.Parse(once, nil)
		if err != nil || u.String() != once || u.Username+u.Password != "" || u.HasFragment {
			t.Errorf("Canonical(%q) = %q, which parses to %+v, %v", in, once, u, err)
		}
		if host := weburl.Host(once); host == "" || host != strings.Trim(u.Host, "[]") {
			t.Errorf("Host(%q) = %q, want %q", once, host, u.Host)
		}
		if site := weburl.Site(once); !strings.HasSuffix(strings.TrimSuffix(u.Host, "."), site) &&
			u.Host != "["+site+"]" {
			t.Errorf("Site(%q) = %q", once, site)
		}
	})
}

const canonicalURL = "https://www.example.test/articles/2026/11/index.html?id=12345&page=2"

func BenchmarkCanonical(b *testing.B) {
	for _, bb := range []struct{ name, url string }{
		{"canonical", canonicalURL},
		{"fragment", canonicalURL + "#top"},
		{"messy", " HTTPS://u@WWW.Example.test:443/articles/./x/../2026/Ü ber.html?id='1'#top "},
		{"international", "https://www.bücher.test/2026/index.html"},
		{"relative", "/articles/2026/11/index.html"},
	} {
		b.Run("url="+bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = weburl.Canonical(bb.url)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "urls/s")
		})
	}
}
