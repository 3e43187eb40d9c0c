package webtest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// ask makes one request to a web that is not served.
func ask(w *Web, target string, header http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Host, r.RequestURI, r.Header = w.hosts[0].Name, target, header
	rec := httptest.NewRecorder()
	w.handle(rec, r)
	return rec
}

// FuzzTarget requests arbitrary targets. A target that is found must be a page or one of the few
// fixed paths, and a second request must get the same response. A page must be found.
func FuzzTarget(f *testing.F) {
	w := offline(Options{Hosts: 2, Pages: 1000})
	w.log = newRecorder(false, nil)
	for _, target := range []string{
		"/", "/robots.txt", "/robots.txt?x", "/r/17", "/r/-1", "/trap/hang", "/trap/", "*", "",
		"//", "/p17.html", "/%", "/private/0.html", "http://h00000.vweb.test/",
	} {
		f.Add(target)
	}
	for page := range 50 {
		f.Add(string(w.appendPath(nil, 0, page)))
	}
	f.Fuzz(func(t *testing.T, target string) {
		got, again := ask(w, target, http.Header{}), ask(w, target, http.Header{})
		if got.Code != again.Code || got.Body.String() != again.Body.String() {
			t.Errorf("%q has two different responses", target)
		}
		path, _, _ := strings.Cut(target, "?")
		_, page := w.findPage(0, target)
		want := page || path == robotsPath || path == robotsCopy
		if found := got.Code == http.StatusOK; found != want {
			t.Errorf("%q: status %d", target, got.Code)
		}
		if got.Code == http.StatusMovedPermanently {
			if _, ok := w.findPage(0, got.Header().Get("Location")); !ok {
				t.Errorf("%q redirects to %q", target, got.Header().Get("Location"))
			}
		}
	})
}

// FuzzConditions sends any condition together with the page's tag. The page has not changed, so the
// tag must match whatever surrounds it. Without the tag, nothing may panic.
func FuzzConditions(f *testing.F) {
	w := offline(Options{Hosts: 1})
	w.log = newRecorder(false, nil)
	tag := ask(w, "/", http.Header{}).Header().Get("Etag")
	f.Add(`"x"`, "Mon, 01 Jan 2001 00:00:00 GMT", "gzip;q=0")
	f.Add(`W/"x", "y"`, "", "gzip, br")
	f.Add("", "yesterday", ";;q=,")
	f.Fuzz(func(t *testing.T, match, since, accept string) {
		h := http.Header{"If-Modified-Since": {since}, "Accept-Encoding": {accept}}
		if match != "" {
			h.Set("If-None-Match", match)
		}
		if code := ask(w, "/", h).Code; code != 200 && code != 304 {
			t.Errorf("status %d for %q, %q", code, match, since)
		}
		h.Set("If-None-Match", match+","+tag)
		if code := ask(w, "/", h).Code; code != 304 {
			t.Errorf("status %d although %q was among the tags %q", code, tag, match)
		}
	})
}

func FuzzHostOf(f *testing.F) {
	w := offline(Options{Hosts: 9, Pages: 1})
	f.Add("H00000.vweb.test.:80")
	f.Add("www.site7.EXAMPLE")
	f.Add("::1")
	f.Add(":")
	f.Fuzz(func(t *testing.T, header string) {
		name := hostOf(header)
		if _, known := w.byName[name]; known && hostOf(name) != name {
			t.Errorf("hostOf(%q) = %q, which is not a fixed point", header, name)
		}
		if strings.ContainsAny(name, ":ABCDEFGHIJKLMNOPQRSTUVWXYZ") && !strings.Contains(header, ":") {
			t.Errorf("hostOf(%q) = %q", header, name)
		}
	})
}

// FuzzDial never reaches anything outside the web, for any address.
func FuzzDial(f *testing.F) {
	w := offline(Options{Hosts: 2})
	w.ctx = context.Background()
	for _, addr := range []string{
		"127.0.0.1:22", "[::1]:80", "h00000.vweb.test:80", ":", "", "a:b:c", "127.16.0.1:080",
	} {
		f.Add(addr)
	}
	f.Fuzz(func(t *testing.T, addr string) {
		// This web has no listener, so any connection would be to a foreign server.
		if conn, err := w.Dial(t.Context(), "tcp", addr); err == nil {
			conn.Close()
			t.Errorf("Dial(%q) connected", addr)
		}
	})
}

// FuzzChangesLastIsTheLastOfTheList compares the fast computation of a page's version with the slow
// one.
func FuzzChangesLastIsTheLastOfTheList(f *testing.F) {
	f.Add(uint64(1), int64(time.Hour), int64(time.Minute), false)
	f.Add(uint64(2), int64(-1), int64(1), true)
	f.Fuzz(func(t *testing.T, key uint64, at, mean int64, periodic bool) {
		p := process{key: rng(key), mean: time.Duration(mean), periodic: periodic}
		now := clampElapsed(time.Duration(at))
		if mean <= 0 || p.mean > maxMean/100 {
			return
		}
		want, found := time.Duration(0), false
		for change := range p.between(now-100*p.mean, now) {
			want, found = change, true
		}
		if got := p.last(now); found && got != want || got > now {
			t.Errorf("%+v: last(%d) = %d, want %d", p, now, got, want)
		}
	})
}
