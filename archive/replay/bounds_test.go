package replay

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Many short links in a page with a long URL take no more work than a document may.
func TestWorkOfLinksIsBounded(t *testing.T) {
	long := strings.Repeat("u", 60_000)
	for _, page := range []string{"http://a.test/" + long, "http://" + long + "/"} {
		base, err := parseURL(page)
		require.NoError(t, err)
		l := &linker{base: base, page: page, left: 1 << 30}
		n := 0
		for ; n < 10_000; n++ {
			if _, ok := l.rewrite("#a", asLink); !ok {
				break
			}
		}
		require.InDelta(t, maxWork/60_000, n, 2)
	}
}

// A list does not repeat a prefix of any length.
func TestPrefixesAreBounded(t *testing.T) {
	v := New(archiveOf(t, htmlAt(monday, "http://a.test/", "x")), Options{})
	prefix := "/browse?prefix=http://a.test/" + strings.Repeat("(", 1000) + strings.Repeat("/", 60)
	require.Equal(t, http.StatusOK, ask(t, v, prefix).Code)
	prefix += strings.Repeat("(", maxPrefix)
	require.Equal(t, http.StatusBadRequest, ask(t, v, prefix).Code)
}

// A NUL takes three bytes when it is rewritten, so it counts as three.
func TestNULsCountAsWhatTheyBecome(t *testing.T) {
	const url = "http://a.test/"
	for n, kind := range map[int]string{300: "text/html; charset=utf-8", 400: "text/plain; charset=UTF-8"} {
		v := New(archiveOf(t, htmlAt(monday, url, "<style>"+strings.Repeat("\x00", n))), Options{})
		v.maxRewrite = 1000
		w := ask(t, v, v.replayOf(monday, url), "Sec-Fetch-Dest", "iframe")
		require.Equal(t, strings.ToLower(kind), strings.ToLower(w.Header().Get("Content-Type")), n)
	}
}
