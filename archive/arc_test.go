package archive

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// arcFile returns an ARC file with a page for each text, at distinct times.
func arcFile(version int, texts ...string) string {
	var out strings.Builder
	rest := map[int]string{1: "", 2: "200 - - 0 old.arc "}[version]
	about := fmt.Sprintf("%d 0 Somebody\n", version)
	fmt.Fprintf(&out, "filedesc://old.arc 0.0.0.0 19970101000000 text/plain %s%d\n%s\n",
		rest, len(about), about)
	for i, text := range texts {
		block := "HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n" + text
		fmt.Fprintf(&out, "http://old.test/page 192.0.2.1 1997010100%02d00 text/html %s%d\n%s\n",
			i, rest, len(block), block)
	}
	return out.String()
}

// ARC files of both versions are imported like WARC files, with repeated pages.
func TestImportARC(t *testing.T) {
	for version := 1; version <= 2; version++ {
		for _, compressed := range []bool{false, true} {
			text := []byte(arcFile(version, "one", "two", "two"))
			path := filepath.Join(t.TempDir(), "old.arc")
			if compressed {
				path += ".gz"
				var out bytes.Buffer
				z := gzip.NewWriter(&out)
				// the filedesc and the rest
				for _, part := range bytes.SplitAfter(text, []byte("\n\n")) {
					z.Reset(&out)
					for i, record := range bytes.Split(part, []byte("\nhttp:")) {
						if i > 0 {
							require.NoError(t, z.Close())
							z.Reset(&out)
							record = append([]byte("http:"), record...)
						}
						_, err := z.Write(record)
						require.NoError(t, err)
					}
					require.NoError(t, z.Close())
				}
				text = out.Bytes()
			}
			require.NoError(t, os.WriteFile(path, text, 0o600))
			a := openDir(t, t.TempDir(), Options{})
			found, err := a.Import(path)
			require.NoError(t, err)
			require.Empty(t, found.Damage)
			versions, err := a.Versions("http://old.test/page")
			require.NoError(t, err)
			require.Len(t, versions, 3)
			for i, want := range []string{"one", "two", "two"} {
				require.Equal(t, want, body(t, a, versions[i]))
				require.Equal(t, time.Date(1997, 1, 1, 0, i, 0, 0, time.UTC), versions[i].Time)
				require.Equal(t, "text/html", versions[i].Media)
			}
			require.Equal(t, versions[1].Digest(), versions[2].Digest())
			_, err = a.Verify(t.Context(), func(f Fault) { t.Error(f) })
			require.NoError(t, err)
			require.NoError(t, a.Close())
		}
	}
}

// Damage in a file is reported with its position, and the records before it are imported.
func TestImportBrokenARC(t *testing.T) {
	text := arcFile(1, "one", "two")
	path := filepath.Join(t.TempDir(), "old.arc")
	require.NoError(t, os.WriteFile(path, []byte(text[:len(text)-10]), 0o600))
	a := openDir(t, t.TempDir(), Options{})
	found, err := a.Import(path)
	require.NoError(t, err)
	require.Equal(t, 1, found.Versions)
	_, err = a.Verify(t.Context(), func(f Fault) {
		require.ErrorIs(t, f.Err, warc.ErrDamaged)
		require.Equal(t, int64(strings.LastIndex(text, "http:")), f.Offset)
	})
	require.NoError(t, err)
	v, err := a.At("http://old.test/page", time.Time{})
	require.NoError(t, err)
	require.Equal(t, "one", body(t, a, v))
	require.NoError(t, a.Close())

	broken := []byte("filedesc://old.arc 0.0.0.0 1997 text/plain -1\n")
	require.NoError(t, os.WriteFile(path, broken, 0o600))
	a = openDir(t, t.TempDir(), Options{})
	_, err = a.Import(path)
	require.ErrorIs(t, err, warc.ErrDamaged)
	require.NoError(t, a.Close())
}
