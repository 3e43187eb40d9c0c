package archive

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Whatever the files were called, the last erasure counts.
func TestTombstonesOfAnyPrefix(t *testing.T) {
	for _, prefix := range []string{"spinneret", "zzz"} {
		dir := t.TempDir()
		a := openDir(t, dir, Options{})
		for i := range 4 {
			c := page(fmt.Sprintf("http://a.test/%d", i), strings.Repeat(fmt.Sprint(i), 100))
			_, err := a.Append(c)
			require.NoError(t, err)
		}
		erase := func(i int) {
			_, err := a.Erase(t.Context(), Selection{URL: fmt.Sprintf("http://a.test/%d", i)}, "r")
			require.NoError(t, err)
		}
		erase(0)
		require.NoError(t, a.Close())
		names := warcNames(t, dir)
		last := names[len(names)-1]
		require.NoError(t, os.Rename(last, filepath.Join(dir, strings.Replace(filepath.Base(last), "spinneret", prefix, 1))))
		a = openDir(t, dir, Options{Reindex: true})
		erase(1)
		faults, _ := verify(t, a)
		require.Empty(t, faults)
		require.NoError(t, a.Close())
	}
}

func TestARemovedImportIsReportedOnce(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	b := openDir(t, other, Options{})
	_, err := b.Append(page("http://a.test/", "x"))
	require.NoError(t, err)
	require.NoError(t, b.Close())
	path := warcNames(t, other)[0]
	a := openDir(t, dir, Options{})
	_, err = a.Import(path)
	require.NoError(t, err)
	require.NoError(t, a.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, importsName), nil, 0o600))
	for n := range 3 {
		a = openDir(t, dir, Options{Reindex: true})
		require.Len(t, a.Recovered().Missing, max(1-n, 0))
		require.NoError(t, a.Close())
	}
}

func TestALostFileOfAnErasureIsMissing(t *testing.T) {
	dir := t.TempDir()
	a := openDir(t, dir, Options{Share: true})
	for i := range 2 {
		c := page(fmt.Sprintf("http://a.test/%d", i), strings.Repeat("same ", 100))
		c.Time = someTime.Add(time.Duration(i) * time.Hour)
		_, err := a.Append(c)
		require.NoError(t, err)
	}
	c := Selection{URL: "http://a.test/0"}
	_, err := a.Erase(t.Context(), c, "r")
	require.NoError(t, err)
	names := warcNames(t, dir)
	require.NoError(t, os.Remove(names[len(names)-1]))
	require.Len(t, a.Missing(), 1)
	require.NoError(t, a.Close())
}
