package replay

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
)

// history is the content of a random archive.
type history struct {
	urls   []string
	visits []visit
}

func randomHistory(seed uint64) (h history) {
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range 6 {
		h.urls = append(h.urls, fmt.Sprintf("http://a.example/%d", i))
	}
	h.urls = append(h.urls, "https://a.example/0", "https://b.example/only")
	for i, minutes := range random.Perm(60) {
		v := htmlAt(monday.Add(time.Duration(minutes)*time.Minute),
			h.urls[random.IntN(len(h.urls))], fmt.Sprintf("<p>%d", i))
		if random.IntN(6) == 0 {
			v.status = 500
		}
		h.visits = append(h.visits, v)
	}
	slices.SortFunc(h.visits, func(a, b visit) int { return a.at.Compare(b.at) })
	return h
}

// best returns the visit that a replay must show: the last one up to a time, or else the first one
// after it. In both cases the URL itself takes precedence over the other scheme.
func (h *history) best(url string, at time.Time) *visit {
	other := "https" + strings.TrimPrefix(url, "http")
	if strings.HasPrefix(url, "https:") {
		other = "http" + strings.TrimPrefix(url, "https")
	}
	for _, u := range []string{url, other} {
		for _, v := range slices.Backward(h.visits) {
			if v.url == u && !v.at.After(at) {
				return &v
			}
		}
	}
	for _, u := range []string{url, other} {
		for _, v := range h.visits {
			if v.url == u {
				return &v
			}
		}
	}
	return nil
}

// The replayed version at any time is the one that a search of all visits finds.
func TestReplayIsTheNearestVersion(t *testing.T) {
	for seed := range uint64(5) {
		h := randomHistory(seed)
		v := New(archiveOf(t, h.visits...), Options{})
		for _, url := range append(h.urls, "http://b.example/only", "http://c.example/") {
			for minutes := -1; minutes < 62; minutes += 3 {
				moment := monday.Add(time.Duration(minutes) * time.Minute)
				w := ask(t, v, v.replayOf(moment, url))
				want := h.best(url, moment)
				if want == nil {
					require.Equal(t, http.StatusNotFound, w.Code, "seed %d, %s", seed, url)
					continue
				}
				require.Equal(t, want.body, w.Body.String(), "seed %d, %s at %v", seed, url, moment)
				require.Equal(t, want.status, w.Code)
				require.Equal(t, stamp(want.at), w.Header().Get("Memento-Datetime"))
			}
		}
	}
}

// below returns the names that a listing of a directory must have: the first segment of each path
// below it.
func below(urls []string, prefix string) (names []string) {
	seen := map[string]bool{}
	for _, url := range urls {
		scheme, rest, _ := strings.Cut(url, "://")
		name, ok := strings.CutPrefix(rest, prefix)
		if !ok {
			continue
		}
		path, _, _ := strings.Cut(name, "?")
		if slash := strings.IndexByte(path, '/'); slash >= 0 {
			name, scheme = name[:slash+1], ""
		}
		if !seen[scheme+name] {
			seen[scheme+name] = true
			names = append(names, name)
		}
	}
	return names
}

// A listing has the names of all URLs, for any size of its pages.
func TestListingsAreComplete(t *testing.T) {
	words := []string{"a", "b", "a/b", "a/", "b/a/c", "a?x", "a?x/y", "b/?z", "a-b", "a.b", "a%20b",
		"c",
		"a0", "a/0", "", "?", "?a/b", "A", "c/c/c/c"}
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 1))
		var urls []string
		var visits []visit
		for _, word := range words {
			for _, scheme := range []string{"http", "https"} {
				if random.IntN(2) == 0 {
					continue
				}
				url := scheme + "://h.example/" + word
				urls = append(urls, url)
				for range 1 + random.IntN(3) {
					visits = append(visits, htmlAt(days(random.IntN(50)), url, "x"))
				}
			}
		}
		v := New(archiveOf(t, visits...), Options{})
		for _, prefix := range []string{"h.example/", "h.example/a/", "h.example/b/",
			"h.example/none/"} {
			for _, size := range []int{1, 2, 3, 7, 100} {
				require.ElementsMatch(t, below(urls, prefix), listed(t, v, prefix, size),
					"seed %d, %s by %d", seed, prefix, size)
			}
		}
	}
}

// listed returns the names on all pages of a listing.
func listed(t *testing.T, v *Handler, prefix string, size int) (names []string) {
	t.Helper()
	after := ""
	for {
		l := &listing{prefix: prefix, after: after, size: size, left: maxListed}
		require.NoError(t, v.list(t.Context(), l, "http://"+prefix, time.Time{}))
		items, more := l.end()
		require.LessOrEqual(t, len(items), size)
		for _, it := range items {
			names = append(names, it.Name)
			after = it.key
		}
		if !more {
			return names
		}
		require.NotEmpty(t, items)
	}
}

// Concurrent requests and appends, for the race detector.
func TestConcurrentRequestsAndAppends(t *testing.T) {
	a := archiveOf(t, site()...)
	v := New(a, Options{})
	var group sync.WaitGroup
	group.Go(func() {
		for i := range 50 {
			_, err := a.Append(archive.Capture{URL: millHome, Time: days(10 + i),
				Head: []byte("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"),
				Body: fmt.Appendf(nil, "<p>%d", i)})
			if err != nil {
				t.Error(err)
			}
		}
	})
	for range 4 {
		group.Go(func() {
			for range 5 {
				for _, address := range []string{"/", versionsAddress(millHome),
					browseAddress(millHome, time.Time{}),
					diffAddress(millHome, days(0), time.Time{}),
					at(viewPath, time.Time{}, millHome), v.replayOf(time.Time{}, millHome),
					v.replayOf(days(3), millHome+"logo.png")} {
					if w := ask(t, v, address); w.Code != http.StatusOK {
						t.Errorf("%s: %d", address, w.Code)
					}
				}
			}
		})
	}
	group.Wait()
	require.Equal(t, "<p>49", ask(t, v, v.replayOf(time.Time{}, millHome)).Body.String())
}

// After the archive is closed, all pages return a server error.
func TestClosedArchive(t *testing.T) {
	a, err := archive.Open(t.TempDir(), archive.Options{})
	require.NoError(t, err)
	require.NoError(t, a.Close())
	v := New(a, Options{})
	for _, address := range []string{"/", versionsAddress(millHome),
		browseAddress(millHome, days(0)), at(viewPath, days(0), millHome),
		v.replayOf(days(0), millHome), v.rawOf(days(0), millHome),
		diffAddress(millHome, days(0), days(1))} {
		require.GreaterOrEqual(t, ask(t, v, address).Code, 500, address)
	}
}
