package archive

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// oldIndex returns an index of version 1 with several levels and long values. The WARC file that it
// refers to is missing.
func oldIndex(t testing.TB) []byte {
	t.Helper()
	packed, err := os.ReadFile("testdata/version-1-large/index.bolt.zst")
	require.NoError(t, err)
	zs, err := zstd.NewReader(nil)
	require.NoError(t, err)
	defer zs.Close()
	data, err := zs.DecodeAll(packed, nil)
	require.NoError(t, err)
	return data
}

// requireOld requires that all entries of the old index are found, with their contents.
func requireOld(t testing.TB, a *Archive) {
	t.Helper()
	for i := range 1500 {
		url := fmt.Sprintf("http://www.host-%d.example.org/path/%d", i%37, i)
		if i%100 == 7 {
			url += "?" + strings.Repeat("long", 1500)
		}
		versions, err := a.Versions(url)
		require.NoError(t, err)
		require.Len(t, versions, 1+i%4)
		for j, v := range versions {
			require.Equal(t, url, v.URL)
			require.Equal(t, []Kind{Changed, Unchanged, Failed, Unchanged}[j], v.Kind)
			require.True(t, time.Unix(1.8e9+int64(10*i+j), 0).Equal(v.Time))
			want := versions[0].Location
			if v.Kind == Failed {
				want = v.Location
			}
			require.Equal(t, want, v.Content)
		}
		key, _ := urlkey.Of(url)
		e, found, err := a.index.changed(key, never)
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, versions[0].Location, a.location(e.address()))
	}
}

// The whole index of version 1 is converted, even if its WARC files are missing and the power fails
// at any step.
func TestConversionOfVersion1(t *testing.T) {
	data := oldIndex(t)
	files := vfs.NewMem()
	files.Put(oldIndexName, data)
	a, err := OpenOn(files, Options{})
	require.NoError(t, err)
	requireOld(t, a)
	require.Len(t, a.Missing(), 1)
	require.NoError(t, a.Close())
	require.Nil(t, files.Data(oldIndexName))
	steps := files.Steps()
	for step := 1; step <= steps; step++ {
		files := vfs.NewMem()
		files.Put(oldIndexName, data)
		files.FailAt(step, vfs.ErrPower)
		if a, err := OpenOn(files, Options{}); err == nil {
			_ = a.Close()
		}
		found := files.Crash(rand.New(rand.NewPCG(uint64(step), 1)))
		a, err := OpenOn(found, Options{})
		require.NoError(t, err)
		n := 0
		for _, err := range a.All() {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, 3750, n, "step %d", step)
		require.NoError(t, a.Close())
	}
	report, err := RepairOn(files, Options{})
	require.NoError(t, err)
	require.Len(t, report.Missing, 1)
}

// A broken index of version 1 is refused, or converted if the damage is not detectable.
func TestBrokenIndexOfVersion1(t *testing.T) {
	data := oldIndex(t)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 60 {
		broken := append([]byte(nil), data...)
		if i%2 == 0 {
			broken = broken[:r.IntN(len(broken))]
		} else {
			for range 200 {
				broken[r.IntN(len(broken))] ^= 1 << r.IntN(8)
			}
		}
		files := vfs.NewMem()
		files.Put(oldIndexName, broken)
		a, err := OpenOn(files, Options{})
		if err != nil {
			require.True(t, errors.Is(err, ErrIndex), "%v", err)
			require.NotNil(t, files.Data(oldIndexName), "it is kept for Repair")
			_, err = RepairOn(files, Options{})
			require.NoError(t, err)
			require.Nil(t, files.Data(oldIndexName))
			continue
		}
		require.NoError(t, a.Close())
	}
}
