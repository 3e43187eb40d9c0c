package pagerank

import (
	"bytes"
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
