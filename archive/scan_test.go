package archive

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/allen"
	"github.com/spinneret-go/spinneret/archive/scan"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// scanChild is an environment variable that makes the test binary a worker.
const scanChild = "SPINNERET_ARCHIVE_SCAN"

// read is the work of the workers: it returns the body of the only record.
func read(data []byte) ([]byte, error) {
	r := warc.NewReader(bytes.NewReader(data), warc.ReaderOptions{Verify: true})
	defer r.Close()
	rec, err := r.Next()
	if err != nil {
		return nil, err
	}
	h, err := rec.HTTP()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(h.Body)
}

// serveScan is a worker.
func serveScan() {
	for in := bufio.NewReader(os.Stdin); ; {
		var id, metaSize, size int
		if _, err := fmt.Fscanf(in, "DOC %d %d %d\n", &id, &metaSize, &size); err != nil {
			return
		}
		both := make([]byte, metaSize+size)
		_, err := io.ReadFull(in, both)
		must(err)
		var m metadata
		must(json.Unmarshal(both[:metaSize], &m))
		text, err := read(both[metaSize:])
		must(err)
		out := fmt.Sprintf("%s %d %s", m.URL, m.Time.UnixMicro(), text)
		fmt.Printf("OK %d %d\n%s", id, len(out), out)
	}
}

// Workers of both kinds get every document of a snapshot, with all compressions.
func TestScanMatchesSnapshot(t *testing.T) {
	starters := map[string]scan.Work{
		"function": scan.Func(func(doc *scan.Document) ([]byte, error) {
			v := doc.Value.(Version)
			text, err := read(doc.Data)
			return fmt.Appendf(nil, "%s %d %s", v.URL, v.Time.UnixMicro(), text), err
		}),
		"process": scan.Command(os.Args[0]),
	}
	t.Setenv(scanChild, "1") // of the processes
	for i, opts := range []Options{{MaxFile: 6000}, {Compression: warc.Zstd}, {}} {
		a, m := randomArchive(t, uint64(i), 80, opts)
		if i == 2 { // with a dictionary
			require.NoError(t, a.Close())
			dictDir(t, a.dir, encoderDict(t))
			a = openDir(t, a.dir, Options{})
			t.Cleanup(func() { require.NoError(t, a.Close()) })
		}
		for name, start := range starters {
			if testing.Short() && name == "process" {
				continue
			}
			s, err := a.Snapshot(Query{Relations: allen.Found})
			require.NoError(t, err)
			var got []string
			for result, err := range s.Scan(t.Context(), start, scan.Options{Workers: 2}) {
				require.NoError(t, err)
				require.NoError(t, result.Err)
				got = append(got, string(result.Out))
			}
			slices.Sort(got)
			want := naive(m, Query{Relations: allen.Found}, func(string) bool { return true })
			require.Equal(t, want, got, name)
			require.NoError(t, s.Close())
		}
	}
}

// A document that cannot be read is a result with an error.
func TestScanOfLostFiles(t *testing.T) {
	a, _ := randomArchive(t, 3, 60, Options{MaxFile: 3000})
	s, err := a.Snapshot(Query{Relations: allen.Found})
	require.NoError(t, err)
	names, err := a.Files()
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(a.dir, names[0])))
	lost, n := 0, 0
	work := scan.Func(func(doc *scan.Document) ([]byte, error) { return read(doc.Data) })
	for result, err := range s.Scan(t.Context(), work, scan.Options{}) {
		require.NoError(t, err)
		n++
		if v := result.Value.(Version); v.Content.File == names[0] {
			require.True(t, errors.Is(result.Err, os.ErrNotExist))
			lost++
		} else {
			require.NoError(t, result.Err)
		}
	}
	require.Equal(t, s.Len(), n)
	require.Positive(t, lost)
	require.NoError(t, s.Close())
}

// A filter program reads decoded bodies.
func TestScanByFilter(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{})
	text := strings.Repeat("text ", 1000)
	codings := []string{"", "Content-Encoding: gzip\r\n", "Transfer-Encoding: chunked\r\n"}
	for i, coding := range codings {
		body := []byte(text)
		if i == 1 {
			body = gzipped(t, body)
		}
		_, err := a.Append(Capture{URL: fmt.Sprint("http://a.test/", i), Time: someTime, Body: body,
			Head: []byte("HTTP/1.1 200 OK\r\n" + coding + "\r\n")})
		require.NoError(t, err)
	}
	s, err := a.Snapshot(Query{})
	require.NoError(t, err)
	n := 0
	for result, err := range s.Scan(t.Context(), scan.Filter("wc", "-c"), scan.Options{}) {
		require.NoError(t, errors.Join(err, result.Err))
		require.Equal(t, "5000", strings.TrimSpace(string(result.Out)))
		n++
	}
	require.Equal(t, 3, n)
	require.NoError(t, errors.Join(s.Close(), a.Close()))
}
