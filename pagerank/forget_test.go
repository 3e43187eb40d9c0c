package pagerank

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestForgottenURLs: nothing names them any longer, and everything else is as before.
func TestForgottenURLs(t *testing.T) {
	u, g := crawledURLs(300)
	gone := func(url string) bool { return strings.HasPrefix(url, "http://h9.test/") }
	urls, ids, scores := map[string]uint32{}, 0, []float64{}
	for id := range u.Frontier().All() {
		url := u.URL(id)
		if scores = append(scores, u.Frontier().Score(id)); gone(url) {
			ids++
			continue
		}
		urls[url] = id
	}
	require.NotZero(t, ids)
	require.Equal(t, ids, u.Forget(gone))
	require.Zero(t, u.Forget(gone), "nothing is left")
	var file bytes.Buffer
	_, err := u.WriteTo(&file)
	require.NoError(t, err)
	require.NotContains(t, file.String(), "h9.test")
	again, err := ReadURLs(&file, Options{})
	require.NoError(t, err)
	for _, u := range []*URLs{u, again} {
		requireLaw(t, u.Frontier())
		for url, id := range urls {
			got, known := u.ID(url)
			require.True(t, known)
			require.Equal(t, id, got)
			require.Equal(t, url, u.URL(id))
		}
		for id, score := range u.Frontier().All() {
			require.InDelta(t, scores[id], score, 1e-9)
			require.False(t, gone(u.URL(id)))
		}
		require.False(t, u.Discover(forgottenMark+"12"), "no URL is like that")
		for url, ok := u.Next(); ok; url, ok = u.Next() {
			require.NotEmpty(t, url)
			require.False(t, gone(url))
			u.Fetched(url, nil)
		}
		require.True(t, u.Discover("http://h9.test/p/9"), "it is as if it had never been met")
		url, ok := u.Next()
		require.True(t, ok)
		require.Equal(t, "http://h9.test/p/9", url)
		u.Fetched(url, urlsOf(g.Links(9)))
		requireLaw(t, u.Frontier())
	}
}

// TestForgetAsksBeforeItChangesAnything: the callbacks see all URLs, and a panic leaves them as they were.
func TestForgetAsksBeforeItChangesAnything(t *testing.T) {
	var u *URLs
	nameless := 0
	u = NewURLs(Options{Score: func(id uint32) float64 {
		if u.URL(id) == "" {
			nameless++
		}
		return 1
	}})
	u.Discover("http://hub.test/")
	u.Next()
	u.Fetched("http://hub.test/", []string{"http://a.test/1", "http://a.test/2", "http://a.test/3", "http://b.test/"})
	_, ok := u.NextReady(func(string) bool { return false })
	require.False(t, ok)
	u.Release("a.test") // 1 is in the queue, 2 and 3 wait for it to be visited
	require.Panics(t, func() { u.Forget(func(string) bool { panic("no answer") }) })
	asked := 0
	require.Equal(t, 1, u.Forget(func(url string) bool {
		asked++
		id, known := u.ID(url)
		require.True(t, known)
		require.Equal(t, url, u.URL(id))
		return url == "http://a.test/1"
	}))
	require.Equal(t, 5, asked)
	require.Zero(t, nameless, "2 has taken the place of 1")
	url, ok := u.Next()
	require.True(t, ok)
	require.Equal(t, "http://a.test/2", url)
}

// TestForgottenPagesCountForNoHost: neither at once nor after a restart, which knows no host of theirs.
func TestForgottenPagesCountForNoHost(t *testing.T) {
	u := NewURLs(Options{})
	visit := func(u *URLs, host string, links ...string) {
		for i := range 4 * len(links) {
			links = append(links, fmt.Sprint("http://small.test/", host, i))
		}
		u.Discover("http://" + host)
		u.Fetched("http://"+host, links)
	}
	old := []string{}
	for i := range 2 * mostDiscounted {
		old = append(old, fmt.Sprint("http://large.test/old/", i))
	}
	visit(u, "hub.test", old...)
	for _, url := range old {
		u.Fetched(url, nil)
	}
	u.Fetched("http://large.test/kept", nil)
	require.Equal(t, len(old), u.Forget(func(url string) bool { return strings.Contains(url, "/old/") }))
	var file bytes.Buffer
	_, err := u.WriteTo(&file)
	require.NoError(t, err)
	again, err := ReadURLs(&file, Options{})
	require.NoError(t, err)
	var orders [2][]string
	for i, u := range []*URLs{u, again} {
		large, _ := u.hosts.lookup("large.test")
		require.EqualValues(t, 1, u.Frontier().hosts.fetched[large])
		visit(u, "start.test", "http://large.test/new", "http://other.test/")
		for url, ok := u.Next(); ok; url, ok = u.Next() {
			orders[i] = append(orders[i], url)
		}
		requireLaw(t, u.Frontier())
	}
	require.Equal(t, orders[0], orders[1])
	require.Greater(t, len(orders[0]), len(old))
}
