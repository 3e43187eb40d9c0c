package replay

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamesOfTheViewer(t *testing.T) {
	v := siteHandler(t, Options{Hosts: []string{"Crawler.Example"}})
	for _, tt := range []struct {
		host string
		want bool
	}{
		{"127.0.0.1:8080", true}, {"127.0.0.1", true}, {"127.8.9.1:80", true}, {"[::1]:8080", true},
		{"[::1]", true}, {"localhost:8080", true}, {"LOCALHOST", true}, {"x.localhost:1", true},
		{"crawler.example:8080", true}, {"CRAWLER.example", true},
		{"", false}, {"evil.example", false}, {"evil.example:8080", false},
		{"192.168.1.2:80", false}, {"8.8.8.8", false},
		{"localhost.evil.example", false}, {"127.0.0.1.evil.example:80", false},
		{"notlocalhost", false}, {"localhost:80;script-src *", false}, {"x y.localhost:80", false},
		{"x;y.localhost:80", false}, {"[::1%25eth0]:80", false}, {"localhost:", false},
		{"crawler.example.evil.example", false}, {"0.0.0.0:80", false}, {"2130706433:80", false},
	} {
		require.Equal(t, tt.want, v.knows(tt.host), tt.host)
	}
}

func TestRejectedRequests(t *testing.T) {
	v := siteHandler(t, Options{})
	page := v.replayOf(days(0), millHome)
	for _, tt := range []struct {
		name, method, address string
		fields                []string
		code                  int
	}{
		{"a foreign host", "GET", "/", []string{"Host", "evil.example"}, 421},
		{"a foreign host for a page", "GET", page, []string{"Host", "evil.example"}, 421},
		{"POST", "POST", "/go", nil, 405},
		{"a preflight request", "OPTIONS", page, nil, 405},
		{"PUT", "PUT", page, nil, 405},
		{"DELETE", "DELETE", "/", nil, 405},
		{"TRACE", "TRACE", "/", nil, 405},
		{"a service worker", "GET", "/static/viewer.js", []string{"Service-Worker", "script"}, 403},
		{"an archived service worker", "GET", page, []string{"Service-Worker", "script"}, 403},
		{"an image on another website", "GET", "/static/icon.svg", []string{"Sec-Fetch-Site",
			"cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}, 403},
		{"a frame on another website", "GET", "/", []string{"Sec-Fetch-Site", "cross-site",
			"Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
		{"a script of an archived page", "GET", "/versions?url=" + millHome,
			[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors",
				"Sec-Fetch-Dest", "empty"}, 403},
		{"a script of another website, over plain HTTP", "GET", "/", []string{"Origin",
			"http://evil.example"}, 403},
		{"a link on another website", "GET", "/", []string{"Sec-Fetch-Site", "cross-site",
			"Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
		{"a guess at the replay path", "GET", strings.Replace(page, ownerIn(page), "guess", 1), nil, 404},
		{"the replay path without a token", "GET", "/replay//latest/" + millHome, nil, 404},
		{"an absolute URL, as to a proxy", "GET", "http://127.0.0.1:8080" + page, nil, 404},
		{"a list of files", "GET", "/static/", nil, 404},
		{"a file outside the directory", "GET", "/static/../viewer.go", nil, 404},
		{"anything else", "GET", "/etc/passwd", nil, 404},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(tt.method, tt.address, nil)
			r.Host = "127.0.0.1:8080"
			for i := 0; i < len(tt.fields); i += 2 {
				if tt.fields[i] == "Host" {
					r.Host = tt.fields[i+1]
				}
				r.Header.Set(tt.fields[i], tt.fields[i+1])
			}
			w := httptest.NewRecorder()
			v.ServeHTTP(w, r)
			require.Equal(t, tt.code, w.Code)
			require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
			require.NotEmpty(t, w.Header().Get("Content-Security-Policy"))
		})
	}
}

// The response to HEAD has the header of GET.
func TestHead(t *testing.T) {
	v := siteHandler(t, Options{})
	server := httptest.NewServer(v)
	defer server.Close()
	for _, address := range []string{"/", v.replayOf(days(0), millHome),
		v.replayOf(days(1), millHome+"logo.png"), v.rawOf(days(1), millHome+"logo.png")} {
		get, err := http.Get(server.URL + address)
		require.NoError(t, err)
		require.NoError(t, get.Body.Close())
		head, err := http.Head(server.URL + address)
		require.NoError(t, err)
		require.NoError(t, head.Body.Close())
		require.Equal(t, get.StatusCode, head.StatusCode, address)
		for _, field := range []string{"Content-Type", "Content-Security-Policy", "Cache-Control"} {
			require.Equal(t, get.Header.Get(field), head.Header.Get(field), address)
		}
	}
}

func TestPolicies(t *testing.T) {
	const base = "http://127.0.0.1:8080"
	address := func(v *Handler) string { return v.replayOf(days(0), millHome) }
	frame := []string{"Sec-Fetch-Dest", "iframe", "Sec-Fetch-Mode", "navigate"}

	v := siteHandler(t, Options{})
	own := policyOf(ask(t, v, "/").Header().Get("Content-Security-Policy"))
	require.Equal(t, "'none'", own["default-src"])
	require.Equal(t, "'self'", own["script-src"])
	require.Equal(t, "'none'", own["frame-ancestors"])
	require.Equal(t, base+"/replay/", own["frame-src"])

	still := policyOf(ask(t, v, address(v), frame...).Header().Get("Content-Security-Policy"))
	require.Equal(t, "'none'", still["script-src"])
	require.Equal(t, "'none'", still["connect-src"])
	require.Equal(t, "'none'", still["form-action"])
	require.Equal(t, "'none'", still["worker-src"])
	require.NotContains(t, still["sandbox"], "allow-scripts")
	require.NotContains(t, still["sandbox"], "allow-same-origin")
	require.Contains(t, still["sandbox"], "allow-top-navigation-by-user-activation")
	for _, name := range []string{"img-src", "style-src", "font-src", "media-src", "frame-src",
		"object-src"} {
		require.Contains(t, still[name], base+"/replay/"+ownerIn(address(v))+"/", name)
		require.NotContains(t, still[name], "*", name)
		require.NotContains(t, still[name], "self", name)
	}

	v = siteHandler(t, Options{Scripts: true})
	running := policyOf(ask(t, v, address(v), frame...).Header().Get("Content-Security-Policy"))
	require.Equal(t, "allow-scripts", running["sandbox"])
	require.Equal(t, base+v.replayOf(days(0), "http://www.example.org/"),
		running["connect-src"])
	alone := policyOf(ask(t, v, address(v)).Header().Get("Content-Security-Policy"))
	require.Equal(t, "'none'", alone["script-src"], "outside a frame no script runs")
}

// A host name may have characters that end a directive or a policy.
func TestPolicyIsNotEndedByAHost(t *testing.T) {
	for _, host := range []string{"a;sandbox", "a,b", "a'b", "a*"} {
		url := "http://" + host + ".example/"
		v := New(archiveOf(t, htmlAt(days(0), url, "<p>")), Options{Scripts: true})
		csp := ask(t, v, v.replayOf(days(0), url), "Sec-Fetch-Dest", "iframe",
			"Sec-Fetch-Mode", "navigate").Header().Get("Content-Security-Policy")
		require.NotContains(t, csp, host)
		require.Equal(t, "'none'", policyOf(csp)["connect-src"])
		require.Equal(t, "allow-scripts", policyOf(csp)["sandbox"])
	}
}

// Policies cannot name IPv6 addresses.
func TestPolicyForIPv6(t *testing.T) {
	v := siteHandler(t, Options{})
	r := httptest.NewRequest(http.MethodGet, v.replayOf(days(0), millHome), nil)
	r.Host = "[::1]:8080"
	w := httptest.NewRecorder()
	v.ServeHTTP(w, r)
	require.Equal(t, "'self' data: blob:",
		policyOf(w.Header().Get("Content-Security-Policy"))["img-src"])
}

// No response sets a cookie, lets the browser send a referrer, or gives other websites access.
func TestHeadersOfAllResponses(t *testing.T) {
	v := siteHandler(t, Options{})
	for _, address := range []string{"/", "/go?url=x", versionsAddress(millHome),
		"/static/viewer.css", browseAddress(millHome, days(1)),
		diffAddress(millHome, days(0), days(2)),
		at(viewPath, days(0), millHome), at(viewPath, days(0), millHome+"none"),
		v.rawOf(days(0), millHome), v.replayOf(days(0), millHome), "/none",
		v.replayOf(days(0), millHome+"logo.png"), v.replayOf(days(0), millHome+"none")} {
		h := ask(t, v, address).Header()
		require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"), address)
		require.Equal(t, "no-referrer", h.Get("Referrer-Policy"), address)
		require.NotEmpty(t, h.Get("Permissions-Policy"), address)
		require.NotEmpty(t, h.Get("Cross-Origin-Resource-Policy"), address)
		require.Contains(t, h.Get("Content-Security-Policy"), "default-src 'none'", address)
		require.Empty(t, h.Values("Set-Cookie"), address)
		if !strings.HasPrefix(address, replayPath) {
			require.Equal(t, "same-origin", h.Get("Cross-Origin-Resource-Policy"), address)
			require.Equal(t, "same-origin", h.Get("Cross-Origin-Opener-Policy"), address)
			require.Empty(t, h.Get("Access-Control-Allow-Origin"), address)
		}
	}
}

// Without a seal an address tells nothing of what is in the archive, not even in which spelling.
func TestAnAddressWithoutASealTellsNothing(t *testing.T) {
	v := New(archiveOf(t, htmlAt(days(0), "http://a.example/?q={x}", "y")), Options{})
	w := ask(t, v, replayPath+"o/s/latest/http://a.example/?q=%7Bx%7D", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document")
	require.Equal(t, viewPath+"latest/http://a.example/?q=%7Bx%7D", w.Header().Get("Location"))
}
