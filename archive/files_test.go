package archive

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// openMemory opens an archive in memory, with one compressor and without compression by default,
// because tests open thousands of archives and compressors are large.
func openMemory(t testing.TB, opts Options) (*store, *memory) {
	t.Helper()
	if opts.Level == 0 {
		opts.Level = -1
	}
	if opts.Compressors == 0 {
		opts.Compressors = 1
	}
	m := newMemory()
	a, err := open(m, opts)
	require.NoError(t, err)
	return a, m
}

// at returns the record at a location, read by offset and length alone.
func at(t testing.TB, contents map[string][]byte, loc Location) stored {
	t.Helper()
	data, found := contents[loc.File]
	if !found {
		data, found = contents[loc.File+unfinished]
	}
	require.True(t, found, "no file of %+v", loc)
	records, err := readFile(data[loc.Offset : loc.Offset+loc.Length])
	require.NoError(t, err, "%+v", loc)
	require.Len(t, records, 1, "%+v", loc)
	return records[0]
}

func TestAppendWritesAllFields(t *testing.T) {
	a, m := openMemory(t, Options{Level: 6})
	c := page("http://a.test/x?y=%20", "the body")
	c.Truncated = "length"
	loc, err := a.Append(c)
	require.NoError(t, err)
	require.NoError(t, a.Close())

	records, err := readFile(m.contents()[loc.File])
	require.NoError(t, err)
	require.Len(t, records, 3)
	info, request, response := records[0], records[1], records[2]
	for _, record := range records[1:] {
		require.Equal(t, info.fields["WARC-Record-ID"], record.fields["WARC-Warcinfo-ID"])
	}

	require.Equal(t, "warcinfo", info.kind())
	require.Equal(t, loc.File, info.fields["WARC-Filename"])
	require.Equal(t, "application/warc-fields", info.fields["Content-Type"])
	require.Equal(t, []string{"WARC-Type", "WARC-Record-ID", "WARC-Date", "WARC-Filename",
		"WARC-Block-Digest", "Content-Type", "Content-Length"}, info.names)

	require.Equal(t, string(c.Request), string(request.block))
	require.Equal(t, "application/http;msgtype=request", request.fields["Content-Type"])
	require.Equal(t, []string{"WARC-Type", "WARC-Record-ID", "WARC-Warcinfo-ID", "WARC-Date",
		"WARC-Target-URI", "WARC-IP-Address", "WARC-Concurrent-To", "WARC-Block-Digest",
		"Content-Type", "Content-Length"}, request.names)
	require.NoError(t, samePair(&request, &response))

	require.Equal(t, string(c.Head)+"the body", string(response.block))
	require.Equal(t, []string{"WARC-Type", "WARC-Record-ID", "WARC-Warcinfo-ID", "WARC-Date",
		"WARC-Target-URI", "WARC-IP-Address", "WARC-Concurrent-To", "WARC-Block-Digest",
		"WARC-Payload-Digest", "WARC-Truncated", "Content-Type", "Content-Length"}, response.names)
	require.Equal(t, "2026-11-03T03:05:06.007008Z", response.fields["WARC-Date"])
	require.Equal(t, "http://a.test/x?y=%20", response.fields["WARC-Target-URI"])
	require.Equal(t, "192.0.2.1", response.fields["WARC-IP-Address"])
	require.Equal(t, "length", response.fields["WARC-Truncated"])
	require.Equal(t, "application/http;msgtype=response", response.fields["Content-Type"])
	require.Equal(t, sha1Of(c.Body), response.fields["WARC-Payload-Digest"])

	require.Equal(t, Location{loc.File, response.offset, response.length}, loc)
	ids := []string{info.fields["WARC-Record-ID"], request.fields["WARC-Record-ID"],
		response.fields["WARC-Record-ID"]}
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(ids))), 3)
}

func TestBlockOfResponse(t *testing.T) {
	const ok, chunks = "HTTP/1.1 200 OK\r\n", "Transfer-Encoding: chunked\r\n\r\n"
	tests := []struct {
		name, request, head, body string
		want                      string // what follows the head in the block
	}{
		{"a body is unchanged", "", ok + "\r\n", "body", "body"},
		{"an empty body", "", ok + "Content-Length: 0\r\n\r\n", "", ""},
		{"a compressed body", "",
			ok + "Content-Encoding: gzip\r\n\r\n", "\x1f\x8b\x00", "\x1f\x8b\x00"},
		{"a truncated body keeps its Content-Length", "",
			ok + "Content-Length: 999\r\n\r\n", "abc", "abc"},
		{"chunks become one chunk", "", ok + chunks, "some body of 27 bytes here!",
			"1b\r\nsome body of 27 bytes here!\r\n0\r\n\r\n"},
		{"an empty chunked body", "", ok + chunks, "", "0\r\n\r\n"},
		{"304 has no body", "", "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n", "", ""},
		{"304 with Transfer-Encoding has no body", "",
			"HTTP/1.1 304 Not Modified\r\n" + chunks, "", ""},
		{"a response to HEAD has no body", "HEAD / HTTP/1.1\r\n\r\n", ok + chunks, "", ""},
		{"a body that looks like the end of a record", "", ok + "\r\n",
			"\r\n\r\nWARC/1.1\r\nWARC-Type: response\r\n\r\n",
			"\r\n\r\nWARC/1.1\r\nWARC-Type: response\r\n\r\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, m := openMemory(t, Options{})
			c := page("http://a.test/", tt.body)
			c.Request, c.Head = []byte(tt.request), []byte(tt.head)
			loc, err := a.Append(c)
			require.NoError(t, err)
			record := at(t, m.contents(), loc)
			require.Equal(t, tt.head+tt.want, string(record.block))
			require.Equal(t, sha1Of([]byte(tt.body)), record.fields["WARC-Payload-Digest"])
			_, err = readCaptures(m.contents()[loc.File+unfinished])
			require.NoError(t, err)
		})
	}
}

func TestLargeBodies(t *testing.T) {
	random := make([]byte, 10<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	zeros := make([]byte, 5<<20)
	a, m := openMemory(t, Options{Level: 1})
	for _, body := range [][]byte{zeros, random, random[:100], random[:maxBuffered-200]} {
		c := page("http://a.test/", "")
		c.Body = body
		loc, err := a.Append(c)
		require.NoError(t, err)
		require.True(t, bytes.HasSuffix(at(t, m.contents(), loc).block, body))
	}
	e := <-a.encoders
	require.Less(t, cap(e.buf), 3*maxBuffered/2, "the buffer of a compressor is bounded")
}

func TestLevels(t *testing.T) {
	body := strings.Repeat("the quick brown fox jumps over the lazy dog, ", 200)
	length := func(level int) int64 {
		a, err := open(newMemory(), Options{Level: level, Compressors: 1})
		require.NoError(t, err)
		loc, err := a.Append(page("http://a.test/", body))
		require.NoError(t, err)
		return loc.Length
	}
	require.Greater(t, length(-1), int64(len(body)))
	require.Less(t, length(1), int64(len(body)/4))
	// The compressed size of the random ID varies.
	require.InDelta(t, length(6), length(0), 20)
	require.Less(t, length(9), int64(len(body)/4))
}

func TestFilesRollOver(t *testing.T) {
	for _, max := range []int64{1, 2000, 5000} {
		t.Run(fmt.Sprintf("max=%d", max), func(t *testing.T) {
			a, m := openMemory(t, Options{MaxFile: max})
			want := map[string]Location{}
			for i := range 30 {
				url := fmt.Sprintf("http://a.test/%d", i)
				loc, err := a.Append(page(url, strings.Repeat("x", i*50)))
				require.NoError(t, err)
				want[url] = loc
			}
			require.NoError(t, a.Close())

			files, err := a.Files()
			require.NoError(t, err)
			got := map[string]Location{}
			for i, name := range files {
				data := m.contents()[name]
				captures, err := readCaptures(data)
				require.NoError(t, err)
				for _, c := range captures {
					got[c.fields["WARC-Target-URI"]] = Location{name, c.offset, c.length}
				}
				last := captures[len(captures)-1]
				require.Less(t, last.offset-1200, max, "%s was already full", name)
				if i < len(files)-1 {
					require.GreaterOrEqual(t, int64(len(data)), max, "%s is not full", name)
				}
			}
			require.Equal(t, want, got)
		})
	}
}

func TestNegativeMaxFileMeansOneFile(t *testing.T) {
	a, m := openMemory(t, Options{MaxFile: -1})
	for range 5 {
		_, err := a.Append(page("http://a.test/", "x"))
		require.NoError(t, err)
	}
	require.Len(t, m.contents(), 1)
}

func TestFileNames(t *testing.T) {
	m := newMemory()
	m.files["README"] = &memFile{dir: m}
	m.files["old.warc.gz"] = &memFile{dir: m}
	m.files["x-99999999999999999-00000-0123456789ab.warc.gz"] = &memFile{dir: m} // no time is later
	a, err := open(m, Options{MaxFile: 1})
	require.NoError(t, err)
	require.Len(t, m.contents(), 3, "Open creates no file")
	for range 3 {
		_, err := a.Append(page("http://a.test/", "x"))
		require.NoError(t, err)
	}

	files, err := a.Files()
	require.NoError(t, err)
	require.Len(t, files, 5)
	require.Equal(t, "old.warc.gz", files[0])
	for i, name := range files[1:4] {
		pattern := fmt.Sprintf(`^spinneret-\d{17}-%05d-[0-9a-f]{12}\.warc\.gz$`, i)
		if i == 2 {
			pattern = strings.Replace(pattern, "$", `\.open$`, 1)
		}
		require.Regexp(t, regexp.MustCompile(pattern), name)
	}
	require.NoError(t, a.Close())
	files, err = a.Files()
	require.NoError(t, err)
	require.NotContains(t, files[3], unfinished)
}

func TestArchiveWithoutCapturesLeavesNoFile(t *testing.T) {
	a, m := openMemory(t, Options{})
	_, err := a.Append(Capture{})
	require.ErrorIs(t, err, ErrInvalid)
	require.NoError(t, a.Close())
	require.Empty(t, m.contents())
	require.Zero(t, a.Stats())
}

func TestClosedArchive(t *testing.T) {
	a, m := openMemory(t, Options{})
	_, err := a.Append(page("http://a.test/", "x"))
	require.NoError(t, err)
	require.NoError(t, a.Close())
	before := m.contents()
	require.NoError(t, a.Close(), "a second time")
	_, err = a.Append(page("http://a.test/", "x"))
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, a.Sync(), ErrClosed)
	require.Equal(t, before, m.contents())
	require.EqualValues(t, 1, a.Stats().Captures, "Stats works after Close")
}

func TestStats(t *testing.T) {
	a, m := openMemory(t, Options{})
	c := page("http://a.test/", "x")
	_, err := a.Append(c)
	require.NoError(t, err)
	c.Request = nil
	_, err = a.Append(c)
	require.NoError(t, err)

	stats := a.Stats()
	var packed int64
	for _, data := range m.contents() {
		records, err := readFile(data)
		require.NoError(t, err)
		for _, record := range records[1:] {
			packed += record.length
		}
	}
	require.Equal(t, Stats{Captures: 2, Bytes: packed}, stats)
}

func TestConcurrentAppends(t *testing.T) {
	const goroutines, each = 8, 40
	a, m := openMemory(t, Options{Compressors: 3, MaxFile: 20_000, SyncEvery: 5000, Level: 1})
	a.buffered = 3000 // some are written without the buffer
	var mu sync.Mutex
	want := map[string]Location{}
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range each {
				url := fmt.Sprintf("http://a.test/%d/%d", g, i)
				loc, err := a.Append(page(url, strings.Repeat(url, i*6)))
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				want[url] = loc
				mu.Unlock()
				if i%10 == 0 { // other methods are safe during appends
					files, err := a.Files()
					if err != nil || len(files) == 0 || a.Stats().Captures == 0 || a.Sync() != nil {
						t.Error("no files, no captures or no sync")
					}
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, a.Close())

	got := map[string]Location{}
	for name, data := range m.contents() {
		captures, err := readCaptures(data)
		require.NoError(t, err)
		for _, c := range captures {
			url := c.fields["WARC-Target-URI"]
			got[url] = Location{name, c.offset, c.length}
			body := c.block[len(page("", "").Head):]
			require.Empty(t, bytes.ReplaceAll(body, []byte(url), nil))
		}
	}
	require.Equal(t, want, got)
	require.EqualValues(t, goroutines*each, a.Stats().Captures)
}

// A slow compressor must not block Close. Its capture is refused afterwards.
func TestCloseDuringAppend(t *testing.T) {
	a, m := openMemory(t, Options{})
	e := <-a.encoders // Append cannot go on
	done := make(chan error)
	go func() {
		_, err := a.Append(page("http://a.test/", "x"))
		done <- err
	}()
	require.NoError(t, a.Close())
	a.encoders <- e
	require.ErrorIs(t, <-done, ErrClosed)
	require.Empty(t, m.contents())
}

func TestAppendAllocatesLittle(t *testing.T) {
	m := newMemory()
	a, err := open(m, Options{Compressors: 1})
	require.NoError(t, err)
	c := page("http://a.test/", strings.Repeat("some text of a page, ", 1000))
	c.Head = []byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
	_, err = a.Append(c) // begins the file, grows the buffers
	require.NoError(t, err)
	for _, f := range m.files {
		f.data = slices.Grow(f.data, 1<<20)
	}
	allocs := testing.AllocsPerRun(50, func() { _, err = a.Append(c) })
	require.NoError(t, err)
	require.LessOrEqual(t, allocs, 5.0)
}

// TestFilesCanBeOpened requires that all files listed by Files can be read, even the one that is
// being written.
func TestFilesCanBeOpened(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{MaxFile: 1 << 10})
	for i := range 4 {
		body := strings.Repeat(fmt.Sprint(i), 3000)
		_, err := a.Append(page(fmt.Sprintf("http://a.test/%d", i), body))
		require.NoError(t, err)
	}
	names, err := a.Files()
	require.NoError(t, err)
	last := names[len(names)-1]
	require.True(t, strings.HasSuffix(last, unfinished), "no file is being written: %q", names)
	captures := 0
	for _, name := range names {
		f, err := a.OpenFile(name)
		require.NoError(t, err)
		data, err := io.ReadAll(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		found, err := readCaptures(data)
		require.NoError(t, err)
		captures += len(found)
	}
	require.Equal(t, 4, captures)
	require.NoError(t, a.Close())
}

// A callback that appends needs a compressor, though there is but one.
func TestFinishedAppends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a *Archive
		told := 0
		a, err := OpenOn(vfs.NewMem(), Options{Compressors: 1, MaxFile: 1, Finished: func(string) {
			if told++; told == 1 {
				loc, err := a.Append(page("http://log.test/", "uploaded"))
				require.NoError(t, err)
				_, err = a.AppendMetadata(loc, warc.Field{Name: "bucket", Value: "b"})
				require.NoError(t, err)
				require.NoError(t, a.Sync())
			}
		}})
		require.NoError(t, err)
		for i := range 3 {
			_, err := a.Append(page(fmt.Sprint("http://a.test/", i), "x"))
			require.NoError(t, err)
		}
		require.Positive(t, told)
		require.NoError(t, a.Close())
		require.Equal(t, 5, told)
	})
}
