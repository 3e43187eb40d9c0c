package urlkey

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestURLKey(t *testing.T) {
	for _, tt := range []struct{ name, url, surt string }{
		{"domain", "https://www.example.com/a?b=C", "com,example,www)/a?b=C"},
		{"port", "http://example.com:8080/", "com,example:8080)/"},
		{"a default port", "https://example.com:443/", "com,example)/"},
		{"the default port of another scheme", "http://example.com:443/", "com,example:443)/"},
		{"an empty port", "http://example.com:/", "com,example)/"},
		{"single label", "http://localhost/", "localhost)/"},
		{"root dot", "http://example.com./a", "com,example)/a"},
		{"digits in a name", "http://1.2.3.a/", "a,3,2,1)/"},
		{"IPv4", "http://192.0.2.1:81/a.b", "192.0.2.1:81)/a.b"},
		{"IPv6", "http://[2001:db8::1]:81/", "[2001:db8::1]:81)/"},
		{"IPv6 without a port", "http://[2001:db8::1]/", "[2001:db8::1])/"},
		{"the host repeated in the path", "http://a.b/a.b", "b,a)/a.b"},
		{"no path", "http://a.b", "b,a)/"},
		{"a query and no path", "http://a.b?c", "b,a)/?c"},
		{"upper case", "HTTP://A.b/C", "b,a)/C"},
		{"raw characters", "http://a.b/ä?ö", "b,a)/%C3%A4?%C3%B6"},
		{"raw bytes", "http://a.b/\xe4", "b,a)/%E4"},
		{"escapes", "http://a.b/%c3%a4", "b,a)/%c3%a4"},
		{"user and fragment", "http://u:p@a.b/c#d", "b,a)/c"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			key, long := Of(tt.url)
			scheme, _, _ := strings.Cut(strings.ToLower(tt.url), ":")
			require.Equal(t, tt.surt+"\x00"+scheme, key)
			require.Empty(t, long)
		})
	}
	key, long := Of("dns:example.com")
	require.Equal(t, "dns:example.com", key)
	require.Empty(t, long)
}

func TestLongURLsHaveShortKeys(t *testing.T) {
	long := "http://a.test/" + strings.Repeat("x", 5000)
	one, whole := Of(long + "1")
	require.Equal(t, long+"1", whole)
	two, _ := Of(long + "2")
	require.NotEqual(t, one, two)
	require.Less(t, len(one), MaxLen+10)
	require.True(t, strings.HasPrefix(one, "test,a)/xxx"))

	key, whole := Of(strings.Repeat("s", 5000) + "://a.test/#x")
	require.Equal(t, strings.Repeat("s", 5000)+"://a.test/", whole)
	require.Len(t, key, MaxLen)
}

// The URL of a key has the same key, and the key is in the range of its URL as a prefix.
func FuzzURLKey(f *testing.F) {
	for _, url := range []string{
		"http://a.b:80/c?d#e", "https://[::1]:8/", "dns:a.b", "http://1.2.3.4", "x://@/",
		"http://a.b.:x/", "x://0::", "http://a:80:80", "x://)0", "x://0..#", "x://...0.", "x://.[",
	} {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, url string) {
		if !utf8.ValidString(url) || strings.ContainsFunc(url, unicode.IsControl) {
			t.Skip()
		}
		key, long := Of(url)
		require.LessOrEqual(t, len(key), MaxLen+1+maxScheme)
		require.True(t, inSpans(key, []Span{All}))
		if long != "" {
			again, same := Of(long)
			require.Equal(t, []string{key, long}, []string{again, same})
			return
		}
		again, long := Of(URL(key))
		require.Empty(t, long)
		require.Equal(t, key, again, "%q", URL(key))
		require.True(t, inSpans(key, Prefix(url)))
	})
}

func inSpans(key string, spans []Span) bool {
	for _, s := range spans {
		if key >= s.Low && key < s.High {
			return true
		}
	}
	return false
}

func TestSpans(t *testing.T) {
	urls := []string{
		"http://a.test/", "https://a.test/b/c", "http://b.a.test/", "http://a.test:81/b",
		"http://aa.test/", "http://a.tes/", "http://c.b.a.test:82/x", "http://a.test/b",
	}
	for _, tt := range []struct {
		name  string
		spans []Span
		want  []string
	}{
		{"a host", Host("A.test"), []string{urls[0], urls[1], urls[3], urls[7]}},
		{"a site", Site("a.test"),
			[]string{urls[0], urls[1], urls[2], urls[3], urls[6], urls[7]}},
		{"a directory", Prefix("http://a.test/b/"), []string{urls[1]}},
		{"a prefix", Prefix("http://a.test/b"), []string{urls[1], urls[7]}},
		{"everything", []Span{All}, urls},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, url := range urls {
				if key, _ := Of(url); inSpans(key, tt.spans) {
					got = append(got, url)
				}
			}
			require.Equal(t, tt.want, got)
		})
	}
}
