package archive

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/internal/zdict"
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
		require.LessOrEqual(t, a.dicts.size, maxDictBytes)
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
	require.LessOrEqual(t, len(d.of), maxDictNames)
	require.Equal(t, len(one), d.size, "all files share one dictionary")
	_, known := d.get("0")
	require.False(t, known)
	got, known := d.get(fmt.Sprint(3*maxDictNames - 1))
	require.True(t, known)
	require.Equal(t, one, got)
}

// A file with a dictionary is one whatever it is called.
func TestDictionaryOfAFileOfAnyName(t *testing.T) {
	var plain bytes.Buffer
	encodeAll(t, &plain, warc.None, response("http://a.test/", wholeSecond, okHead+"body"))
	data := withDict(t, plain.Bytes(), encoderDict(t))
	for _, name := range []string{"a.warc.zst", "a.warc.ZST", "a.warc.zstd", "a.warc"} {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		a := openDir(t, t.TempDir(), Options{})
		_, err := a.Import(path)
		require.NoError(t, err)
		v, err := a.At("http://a.test/", time.Time{})
		require.NoError(t, err)
		require.Equal(t, "body", body(t, a, v), name)
	}
}

// encoderDict returns a dictionary of the pages of random histories.
func encoderDict(t testing.TB) []byte {
	dict, err := builtDict()
	require.NoError(t, err)
	return dict
}

// withDict returns a file without compression as a zstd file with a dictionary, as other programs
// write it.
func withDict(t testing.TB, plain, dict []byte) []byte {
	t.Helper()
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderDict(dict), zstd.WithEncoderConcurrency(1))
	require.NoError(t, err)
	out := zdict.Append(nil, dict)
	for rec, err := range warc.NewReader(bytes.NewReader(plain), warc.ReaderOptions{}).Records() {
		require.NoError(t, err)
		require.NoError(t, rec.Close())
		out = enc.EncodeAll(plain[rec.Offset:rec.Offset+rec.Length], out)
	}
	return out
}

// dictDir replaces the gzip files of a closed archive by zstd files with a dictionary.
func dictDir(t testing.TB, dir string, dict []byte) (names []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	for _, path := range paths {
		if file, found := strings.CutSuffix(path, ".gz"); found {
			f, err := os.Open(path)
			require.NoError(t, err)
			z, err := gzip.NewReader(f)
			require.NoError(t, err)
			plain, err := io.ReadAll(z)
			require.NoError(t, errors.Join(err, f.Close()))
			require.NoError(t, os.WriteFile(file+".zst", withDict(t, plain, dict), 0o600))
			names = append(names, filepath.Base(file)+".zst")
		}
		require.NoError(t, os.Remove(path))
	}
	return names
}

// builtDict builds the dictionary once, as that is slow.
var builtDict = sync.OnceValues(func() ([]byte, error) {
	var samples [][]byte
	for _, v := range randomVisits(rand.New(rand.NewPCG(0, 0)), 100) {
		c := v.capture()
		samples = append(samples, slices.Concat(c.Request, c.Head, c.Body))
	}
	return zstd.BuildDict(zstd.BuildDictOptions{
		ID: 99, Contents: samples, History: slices.Concat(samples[:20]...),
	})
})

// The dictionary of an imported file is found although it was not there, or not whole, when the file was
// read before.
func TestDictionaryOfAGrowingFile(t *testing.T) {
	var plain bytes.Buffer
	encodeAll(t, &plain, warc.None, response("http://a.test/", wholeSecond, okHead+"body"))
	data := withDict(t, plain.Bytes(), encoderDict(t))
	for _, size := range []int{0, 2} {
		path := filepath.Join(t.TempDir(), "a.warc.zst")
		require.NoError(t, os.WriteFile(path, data[:size], 0o600))
		a := openDir(t, t.TempDir(), Options{})
		_, err := a.Import(path)
		require.Equal(t, size == 0, err == nil)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		found, err := a.Import(path)
		require.NoError(t, err)
		require.Equal(t, 1, found.Versions, size)
		v, err := a.At("http://a.test/", time.Time{})
		require.NoError(t, err)
		require.Equal(t, "body", body(t, a, v))
		require.NoError(t, a.Close())
	}
}
