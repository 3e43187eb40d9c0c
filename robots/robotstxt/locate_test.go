package robotstxt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

var places = []struct{ name, url, want string }{
	{"path, query, fragment", "http://h.test/a/b?c#d", "http://h.test/robots.txt"},
	{"scheme and host in lower case", "HTTP://H.Test/", "http://h.test/robots.txt"},
	{"user", "http://u:p@h.test/", "http://h.test/robots.txt"},
	{"default port of http", "http://h.test:80/", "http://h.test/robots.txt"},
	{"default port of https", "https://h.test:443/", "https://h.test/robots.txt"},
	{"default port of ftp", "ftp://h.test:21/", "ftp://h.test/robots.txt"},
	{"port of the other scheme", "http://h.test:443/", "http://h.test:443/robots.txt"},
	{"empty port", "http://h.test:/", "http://h.test/robots.txt"},
	{"zeros before a port", "http://h.test:0080/", "http://h.test/robots.txt"},
	{"IPv4", "http://127.0.0.1:8080/", "http://127.0.0.1:8080/robots.txt"},
	{"IPv6", "http://[::1]/", "http://[::1]/robots.txt"},
	{"IPv6 and port", "http://[2001:DB8::1]:8080/", "http://[2001:db8::1]:8080/robots.txt"},
	{"IPv6 and default port", "https://[::1]:443/", "https://[::1]/robots.txt"},
	{"query only", "http://h.test?a", "http://h.test/robots.txt"},
	{"host beyond ASCII", "http://B\u00fccher.test/", "http://b%C3%BCcher.test/robots.txt"},
	{"broken path", "http://h.test/%zz", "http://h.test/robots.txt"},
	{"broken path of a host in capitals", "http://H.test/%zz", "http://h.test/robots.txt"},
	{"last point", "http://h.test./", "http://h.test./robots.txt"},
}

func TestLocate(t *testing.T) {
	for _, tt := range places {
		got, err := robotstxt.Locate(tt.url)
		require.NoError(t, err, "%+v", tt)
		require.Equal(t, tt.want, got, "%+v", tt)
	}
}

func TestLocateRefuses(t *testing.T) {
	for _, url := range []string{
		"", "/a", "h.test/a", "//h.test/a", "mailto:a@h.test", "file:///a", "http://", "http:///a",
		"http:h.test", "http://::", "http://:80/", "http://h.test:99999/", "http://h.test:x/",
		"http://[::1/",
		"http://h test/", "http://h.test\\x/", "javascript://h.test/",
	} {
		got, err := robotstxt.Locate(url)
		require.ErrorIs(t, err, robotstxt.ErrLocate, url)
		require.Empty(t, got, url)
	}
}
