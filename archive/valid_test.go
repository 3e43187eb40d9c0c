package archive

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// validAt returns the bodies of the pages that were valid at a time, by URL.
func validAt(t testing.TB, a *Archive, at time.Time) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for found, err := range a.All() {
		require.NoError(t, err)
		v, err := a.At(found.URL, at)
		if !errors.Is(err, ErrNotFound) {
			require.NoError(t, err)
		}
		if _, done := pages[v.URL]; !done && v.Content != (Location{}) && v.ContentStatus == 200 {
			text, err := a.Body(v)
			require.NoError(t, err)
			pages[v.URL] = string(text)
		}
	}
	return pages
}

// validIn is validAt for a model.
func (m model) validIn(at time.Time) map[string]string {
	pages := map[string]string{}
	for _, v := range m {
		list := m.of(v.url)
		i := len(list) - 1
		for i >= 0 && list[i].at.After(at) {
			i--
		}
		if i < 0 || list[i].status != 200 && list[i].status != 304 {
			continue
		}
		if text, known := content(list, i); known {
			pages[v.url] = text
		}
	}
	return pages
}

// Random histories at random times.
func TestAtMatchesModelAtRandomTimes(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 5))
		a, m := randomArchive(t, seed, []int{100, 150, 150, 1000}[seed], Options{MaxFile: 5000})
		for range 20 {
			at := m[0].at.Add(time.Duration(r.Int64N(int64(m[len(m)-1].at.Sub(m[0].at)))))
			require.Equal(t, m.validIn(at), validAt(t, a, at), "seed %d", seed)
		}
		require.NoError(t, a.Close())
		for v, err := range a.All() {
			require.ErrorIs(t, err, ErrClosed)
			require.Zero(t, v)
		}
	}
}

// The ContentStatus of a 304 is that of the version that it repeats, which may be a redirect.
func TestContentStatus(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{})
	hour := func(n int) time.Time { return someTime.Add(time.Duration(n) * time.Hour) }
	for i, status := range []int{200, 304, 301, 304, 404} {
		_, err := a.Append(visit{"http://a.test/", hour(i), status, fmt.Sprint(i)}.capture())
		require.NoError(t, err)
	}
	versions, err := a.Versions("http://a.test/")
	require.NoError(t, err)
	for i, want := range []int{200, 200, 301, 301, 404} {
		require.Equal(t, want, versions[i].ContentStatus)
		v, err := a.At("http://a.test/", hour(i))
		require.NoError(t, err)
		require.Equal(t, want, v.ContentStatus)
	}
	require.NoError(t, a.Close())
}
