package weburl_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
)

func TestHostAndSite(t *testing.T) {
	for _, tt := range []struct{ name, url, host, site string }{
		{"domain", "https://www.example.com/a", "www.example.com", "example.com"},
		{"port", "https://www.example.com:8443/a", "www.example.com", "example.com"},
		{"no path", "https://example.com", "example.com", "example.com"},
		{"query before any slash", "https://example.com?a/b:c", "example.com", "example.com"},
		{"colon in the path", "https://example.com/a:b", "example.com", "example.com"},
		{"second-level suffix", "https://a.b.example.co.uk/", "a.b.example.co.uk", "example.co.uk"},
		{"private suffix", "https://a.b.github.io/", "a.b.github.io", "b.github.io"},
		{"public suffix itself", "https://co.uk/", "co.uk", "co.uk"},
		{"root dot", "https://www.example.com./", "www.example.com.", "example.com"},
		{"empty label", "https://a..com/", "a..com", "a..com"},
		{"single label", "http://localhost:80/", "localhost", "localhost"},
		{"unlisted", "http://www.host.invalid/", "www.host.invalid", "host.invalid"},
		{"IPv4", "http://192.0.2.1:80/", "192.0.2.1", "192.0.2.1"},
		{"IPv6", "http://[2001:db8::1]:80/", "2001:db8::1", "2001:db8::1"},
		{"IPv6 without a port", "http://[::]/", "::", "::"},
		{"not a URL", "example.com", "", ""},
		{"nothing", "", "", ""},
		{"unclosed bracket", "http://[::1", "::1", "::1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.host, weburl.Host(tt.url))
			require.Equal(t, tt.site, weburl.Site(tt.url))
		})
	}
}

func TestSURT(t *testing.T) {
	for _, tt := range []struct{ name, url, want string }{
		{"domain", "https://www.example.com/a?b=C", "com,example,www)/a?b=C"},
		{"port", "http://example.com:8080/", "com,example:8080)/"},
		{"single label", "http://localhost/", "localhost)/"},
		{"root dot", "http://example.com./a", "com,example)/a"},
		{"digits in a name", "http://1.2.3.a/", "a,3,2,1)/"},
		{"IPv4", "http://192.0.2.1:81/a.b", "192.0.2.1:81)/a.b"},
		{"IPv6", "http://[2001:db8::1]:81/", "[2001:db8::1]:81)/"},
		{"the host again in the path", "http://a.b/a.b", "b,a)/a.b"},
		{"no path", "http://a.b", "b,a)"},
		{"nothing", "", ")"},
		{"unclosed bracket", "http://[::1", "::1)"},
	} {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, weburl.SURT(tt.url)) })
	}
}

// TestSURTKeysAreUnique checks that canonical URLs of one scheme have different keys.
func TestSURTKeysAreUnique(t *testing.T) {
	urls := map[string]string{}
	for _, url := range realURLs(t) {
		if !strings.HasPrefix(url, "http:") {
			continue
		}
		key := weburl.SURT(url)
		if other, found := urls[key]; found && other != url {
			t.Errorf("%q and %q have the same key", other, url)
		}
		urls[key] = url
		require.Len(t, key, len(url)-len("http://")+len(")"))
	}
	require.Greater(t, len(urls), 3000)
}

// realURLs returns the canonical forms of a collection of URLs from the web.
func realURLs(t testing.TB) (urls []string) {
	t.Helper()
	for line := range strings.Lines(string(readZstd(t, "urls-scoop.txt.zst"))) {
		if url, err := weburl.Canonical(line); err == nil {
			urls = append(urls, url)
		}
	}
	return urls
}

// TestPublicSuffixVectors runs the vectors of publicsuffix.org, which have the registrable domain
// of a host, or null.
func TestPublicSuffixVectors(t *testing.T) {
	checked := 0
	for line := range strings.Lines(string(readData(t, "suites/publicsuffix/tests.txt"))) {
		fields := strings.Fields(line)
		if len(fields) != 2 || strings.HasPrefix(line, "//") || fields[0] == "null" {
			continue
		}
		url, err := weburl.Canonical("http://" + fields[0] + "/")
		require.NoError(t, err)
		want := weburl.Host("http://" + fields[1] + "/")
		if fields[1] == "null" {
			want = weburl.Host(url)
		} else if canonical, err := weburl.Canonical("http://" + fields[1] + "/"); err == nil {
			want = weburl.Host(canonical) // some vectors are not in punycode
		}
		require.Equal(t, want, weburl.Site(url), line)
		checked++
	}
	require.Greater(t, checked, 50)
}
