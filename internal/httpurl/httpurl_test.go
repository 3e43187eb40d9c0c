package httpurl_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/httpurl"
)

func TestRequested(t *testing.T) {
	for want, u := range map[string]*url.URL{
		"http://a.test/b%63?d": {Scheme: "http", Host: "a.test", Path: "/bc", RawPath: "/b%63", RawQuery: "d", Fragment: "e"},
		"http://a.test/":       {Scheme: "http", Host: "a.test", Path: "/", User: url.UserPassword("me", "secret")},
		"http://a.test/%2F?q":  {Scheme: "http", Host: "a.test", Opaque: "/%2F", RawQuery: "q"},
		"http://b.test/c":      {Scheme: "http", Host: "a.test", Opaque: "//b.test/c"},
	} {
		require.Equal(t, want, httpurl.Requested(u))
	}
}

func TestIsServer(t *testing.T) {
	for _, tt := range []struct {
		url, addr string
		want      bool
	}{
		{"http://a.test/", "a.test:80", true},
		{"https://A.test/", "a.test:443", true},
		{"https://a.test:8443/", "a.test:8443", true},
		{"http://[::1]/", "[::1]:80", true},
		{"http://bücher.test/", "xn--bcher-kva.test:80", true},
		{"http://bücher.test/", "proxy.test:80", false},
		{"http://a.test/", "proxy.test:80", false},
		{"http://a.test/", "a.test:8080", false},
		{"http://a.test/", "a.test", false},
	} {
		u, err := url.Parse(tt.url)
		require.NoError(t, err)
		require.Equal(t, tt.want, httpurl.IsServer(tt.addr, u), "%s %s", tt.url, tt.addr)
	}
}
