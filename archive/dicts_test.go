package archive

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// Files that begin with large, well compressed dictionaries do not exhaust memory.
func TestDictionariesAreBounded(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{})
	before := heap()
	var paths []string
	for i := range 6 {
		dict := append(encoderDict(t), bytes.Repeat([]byte{byte(i)}, maxDictBytes/4)...)
		enc, err := warc.NewEncoder(warc.EncoderOptions{Compression: warc.None})
		require.NoError(t, err)
		out := &bytes.Buffer{}
		_, _, err = enc.Encode(out, &warc.Head{Type: "response", Date: someTime,
			TargetURI: fmt.Sprintf("http://%d.test/", i), ContentType: "application/http"},
			[]byte("HTTP/1.1 200 OK\r\n\r\nbody"))
		require.NoError(t, err)
		paths = append(paths, filepath.Join(t.TempDir(), "x.warc.zst"))
		require.NoError(t, os.WriteFile(paths[i], withDict(t, out.Bytes(), dict), 0o644))
	}
	for range 2 {
		_, err := a.Import(paths...)
		require.NoError(t, err)
		for i := range paths {
			v, err := a.At(fmt.Sprintf("http://%d.test/", i), time.Time{})
			require.NoError(t, err)
			require.Equal(t, "body", body(t, a, v))
		}
		require.LessOrEqual(t, a.dicts.size(), maxDictBytes)
	}
	require.Less(t, heap(), before+3*maxDictBytes)
	require.NoError(t, a.Close())
}

// The list of files is bounded too.
func TestNamesOfDictionariesAreBounded(t *testing.T) {
	var d dicts
	one := []byte("dictionary")
	for i := range 3 * maxDictNames {
		got := d.put(fmt.Sprint(i), bytes.Clone(one))
		require.Equal(t, one, got)
	}
	require.Len(t, d.recent, maxDictNames)
	require.Equal(t, len(one), d.size(), "all files share one dictionary")
	_, known := d.get("0")
	require.False(t, known)
	got, known := d.get(fmt.Sprint(3*maxDictNames - 1))
	require.True(t, known)
	require.Equal(t, one, got)
}
