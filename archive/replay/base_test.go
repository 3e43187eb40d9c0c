package replay

import (
	"html"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A handler with a Base responds like one at the root, except for the prefix of its addresses. The
// test follows the links of both from their start pages.
func TestBase(t *testing.T) {
	const base = "/my/archive"
	a := archiveOf(t, site()...)
	root, mounted := New(a, Options{}), New(a, Options{Base: base + "/"})
	mounted.key = root.key
	mounted.now = func() time.Time { return days(300) }
	root.now = mounted.now
	address := regexp.MustCompile(`(?:href|src|action)="(/[^"]*)"`)
	todo, seen := []string{"/"}, map[string]bool{}
	for len(todo) > 0 {
		page := todo[0]
		todo = todo[1:]
		if seen[page] {
			continue
		}
		seen[page] = true
		want, got := ask(t, root, page), ask(t, mounted, base+page)
		require.Equal(t, want.Code, got.Code, page)
		if to := want.Header().Get("Location"); to != "" {
			require.Equal(t, base+to, got.Header().Get("Location"), page)
			todo = append(todo, to)
			continue
		}
		policy := "Content-Security-Policy"
		require.Equal(t, want.Header().Get(policy),
			strings.ReplaceAll(got.Header().Get(policy), base+replayPath, replayPath), page)
		body := got.Body.String()
		require.NotContains(t, body, base+base, page)
		rooted := strings.ReplaceAll(body, base, "")
		require.Equal(t, want.Body.String(), rooted, page)
		if strings.HasPrefix(page, rawPath) {
			continue // the archived bytes
		}
		for _, found := range address.FindAllStringSubmatch(body, -1) {
			next, ok := strings.CutPrefix(html.UnescapeString(found[1]), base)
			require.True(t, ok, "%s in %s", found[1], page)
			if len(todo) < 300 {
				todo = append(todo, strings.Split(next, "#")[0])
			}
		}
	}
	require.Greater(t, len(seen), 50)

	for address, code := range map[string]int{
		base: 200, base + "?page=1": 200, base + "/": 200, base + "/none": 404,
		"/": 404, "/my/archives/": 404, "/static/viewer.css": 404, base + "/static/viewer.css": 200,
	} {
		require.Equal(t, code, ask(t, mounted, address).Code, address)
	}
	r := httptest.NewRequest("GET", "http://evil.test"+base+"/", nil)
	w := httptest.NewRecorder()
	mounted.ServeHTTP(w, r)
	require.Equal(t, 421, w.Code)
}

func TestTitle(t *testing.T) {
	_, words := tree(t, siteHandler(t, Options{Title: "The <Mill>"}), 200, "/")
	require.Contains(t, words, "The <Mill>")
	_, words = tree(t, siteHandler(t, Options{}), 200, versionsAddress(millHome))
	require.Contains(t, words, "Archive")
}
