package warc

import (
	"bytes"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/internal/zdict"
)

// counted counts the bytes read from a file, including those read again.
type counted struct {
	*bytes.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

// Hostile damage costs bounded work: a file is read again a few times, not once for each of its
// bytes. The last records after the damage are found.
func TestHostileDamage(t *testing.T) {
	const size = 128 << 10
	good := plain("WARC-Type: response\r\n", "block")
	zipped := string(write(t, packing{EncoderOptions: EncoderOptions{}}, 1).data)
	fill := func(text string) string { return strings.Repeat(text, size/len(text)) }
	for _, tt := range []struct{ name, file, last string }{
		{"headers without end", "WARC/1.0\n" + fill("A: WARC/1.0\n"), good},
		{"headers without a length", "WARC/1.0\n" +
			fill(strings.Repeat("A: WARC/1.0\n", 5000)+"\n"), good},
		{"headers with a wrong length", "WARC/1.0\n" +
			fill(strings.Repeat("A: WARC/1.0\n", 5000)+"Content-Length: 1\n\nxxx"), good},
		{"blocks that extend beyond the end",
			fill("WARC/1.0\nContent-Length: 99999999999\n\n"), good},
		{"starts of members", fill("\x1f\x8b\x08\x1f"), zipped},
	} {
		t.Run(tt.name, func(t *testing.T) {
			src := &counted{Reader: bytes.NewReader([]byte(tt.last + tt.file + "\r\n\r\n" +
				strings.Repeat(tt.last, 3)))}
			r := NewReader(src, ReaderOptions{Salvage: true})
			last := int64(0)
			for rec, err := range r.Records() {
				if err != nil {
					require.ErrorIs(t, err, ErrDamaged)
					continue
				}
				last = rec.Offset
			}
			require.Equal(t, src.Size()-int64(len(tt.last)), last)
			require.LessOrEqual(t, src.n, int64(maxAgain+(2*againFactor+3)*size))
		})
	}
}

// A value on many lines takes linear time and memory.
func TestValueOnManyLines(t *testing.T) {
	header := []byte("WARC/1.0\nA: b" + strings.Repeat("\n c", 100_000) + "\n")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, fields, err := parseHeader(header, nil)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Len(t, fields[0].Value, 200_001)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(20*len(header)))
}

// After the end, Next keeps returning io.EOF, however the file ends.
func TestNextAfterTheEnd(t *testing.T) {
	for name, o := range codings() {
		var empty bytes.Buffer
		e, err := o.encoder()
		require.NoError(t, err)
		switch o.Compression {
		case Gzip:
			e.gz.Reset(&empty)
			require.NoError(t, e.gz.Close())
		case Zstd:
			empty.Write(e.zs.EncodeAll(nil, nil))
			empty.WriteString("\x50\x2a\x4d\x18\x00\x00\x00\x00")
		}
		file := append(write(t, o, 1).data, empty.Bytes()...)
		r := NewReader(bytes.NewReader(file), ReaderOptions{})
		_, err = r.Next()
		require.NoError(t, err)
		for range 3 {
			_, err = r.Next()
			require.Equal(t, io.EOF, err, name)
		}
		r.Close()
	}
}

// A body is decoded from chunks exactly if chunked is the last coding in the list of all fields.
func TestCodingsOfAMessage(t *testing.T) {
	const chunked, plainBody = "4\r\nbody\r\n0\r\n\r\n", "body"
	for _, tt := range []struct{ name, status, codings, want string }{
		{"two fields", "HTTP/1.1 200 OK", "gzip\r\nTransfer-Encoding: chunked", plainBody},
		{"a list", "HTTP/1.1 200 OK", "gzip, chunked", plainBody},
		{"a list with an empty element", "HTTP/1.1 200 OK", "chunked,", plainBody},
		{"an empty field", "HTTP/1.1 200 OK", "chunked\r\nTransfer-Encoding:", plainBody},
		{"a coding with that suffix", "HTTP/1.1 200 OK", "unchunked", chunked},
		{"not the last", "HTTP/1.1 200 OK", "chunked\r\nTransfer-Encoding: gzip", chunked},
		{"a status without a body", "HTTP/1.1 204 No Content", "chunked", chunked},
		{"HTTP/1.0", "HTTP/1.0 200 OK", "chunked", chunked},
		{"HTTP/2", "HTTP/2 200", "chunked", chunked},
	} {
		t.Run(tt.name, func(t *testing.T) {
			block := tt.status + "\r\nTransfer-Encoding: " + tt.codings + "\r\n\r\n" + chunked
			rec, err := NewReader(strings.NewReader(plain("", block)), ReaderOptions{}).Next()
			require.NoError(t, err)
			h, err := rec.HTTP()
			require.NoError(t, err)
			got, err := io.ReadAll(h.Body)
			require.NoError(t, err)
			require.Equal(t, tt.want, string(got))
		})
	}
}

// A date whose year does not have four digits in UTC is invalid: JSON and the indexes of other
// tools cannot represent it.
func TestDatesBeyondFourDigits(t *testing.T) {
	for _, value := range []string{"0000-01-01T00:30:00+01:00", "9999-12-31T23:30:00-01:00"} {
		_, ok := Field{Value: value}.Date()
		require.False(t, ok, value)
	}
	for _, value := range []string{"0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z"} {
		_, ok := Field{Value: value}.Date()
		require.True(t, ok, value)
	}
}

// Records that violate the standard are rejected.
func TestEncodeRejectsInvalidRecords(t *testing.T) {
	e, err := NewEncoder(EncoderOptions{Compression: None})
	require.NoError(t, err)
	date := func(year int) time.Time { return time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC) }
	for name, change := range map[string]func(*Head){
		"no type":                 func(h *Head) { h.Type = "" },
		"no date":                 func(h *Head) { h.Date = time.Time{} },
		"no target":               func(h *Head) { h.TargetURI = "" },
		"a warcinfo's target":     func(h *Head) { h.Type = "warcinfo" },
		"no profile":              func(h *Head) { h.Type = "revisit" },
		"a second type":           func(h *Head) { h.Extra = []Field{{"warc-type", "request"}} },
		"a second ID":             func(h *Head) { h.Extra = []Field{{"WARC-Record-ID", "<a:1>"}} },
		"a second date":           func(h *Head) { h.Extra = []Field{{"WARC-Date", "2026-01-01"}} },
		"a second length":         func(h *Head) { h.Extra = []Field{{"content-length", "3"}} },
		"a second target":         func(h *Head) { h.Extra = []Field{{"WARC-Target-URI", "b:c"}} },
		"a field twice in Extra":  func(h *Head) { h.Extra = []Field{{"A", "1"}, {"a", "2"}} },
		"an invalid name":         func(h *Head) { h.Extra = []Field{{"A/B", "1"}} },
		"NUL in a URI":            func(h *Head) { h.TargetURI = "http://a.test/\x00" },
		"NUL in RefersToURI":      func(h *Head) { h.RefersToURI = "http://a.test/\x00" },
		"a space in a URI":        func(h *Head) { h.TargetURI = "http://a.test/ b" },
		"a control character":     func(h *Head) { h.Extra = []Field{{"A", "\x01"}} },
		"a protocol's line break": func(h *Head) { h.Protocols = []string{"h2\r\nA: b"} },
		"a year of five digits":   func(h *Head) { h.Date = date(10000) },
		"a negative year":         func(h *Head) { h.RefersToDate = date(-1) },
	} {
		var out bytes.Buffer
		h := Head{Type: "resource", Date: someTime, TargetURI: "http://a.test/"}
		_, _, err := e.Encode(&out, &h, []byte("block"))
		require.NoError(t, err)
		change(&h)
		_, _, err = e.Encode(&out, &h, []byte("block"))
		require.ErrorIs(t, err, ErrInvalid, name)
	}
	for name, extra := range map[string][]Field{
		"fields that may be repeated": {{"WARC-Concurrent-To", "<a:1>"},
			{"WARC-Concurrent-To", "<a:2>"}},
		"a digest of another kind": {{"WARC-Payload-Digest", "sha256:x"}},
	} {
		h := Head{Type: "resource", Date: someTime, TargetURI: "http://a.test/", Extra: extra}
		_, _, err := e.Encode(io.Discard, &h, []byte("block"))
		require.NoError(t, err, name)
	}
}

// The version line is a literal of the grammar, which ignores case.
func TestCaseOfTheVersionLine(t *testing.T) {
	text := plain("WARC-Type: metadata\r\n", "one")
	for _, version := range []string{"warc/1.1", "Warc/1.0", "WARC/1.1"} {
		again := version + text[len(version):]
		for _, file := range []string{again + text, text + again, again} {
			requireRecords(t, NewReader(strings.NewReader(file), ReaderOptions{}),
				strings.Count(file, "metadata"))
		}
	}
}

// With Require, an otherwise valid record without the ID is damage.
func TestRequire(t *testing.T) {
	w := write(t, packing{EncoderOptions: EncoderOptions{}}, 3)
	other := write(t, packing{EncoderOptions: EncoderOptions{}}, 12).offsets
	data := write(t, packing{EncoderOptions: EncoderOptions{}}, 12).data[other[8]:other[11]]
	file := slices.Concat(w.data, data, w.data[w.offsets[1]:])
	r := NewReader(bytes.NewReader(file), ReaderOptions{})
	r.Require(w.entries[0].head.ID.String())
	records, damage, err := readAll(t, r)
	require.NoError(t, err)
	require.Len(t, damage, 1)
	require.EqualValues(t, len(w.data), damage[0].Offset)
	require.Len(t, records, 5)
}

// A broken dictionary is damage; a file without a dictionary is not.
func TestReadDict(t *testing.T) {
	dict := someDict()
	whole := zdict.Append(nil, dict)
	broken := zdict.Append(nil, []byte("\x28\xb5\x2f\xfdxxxxxxxx"))
	for _, tt := range []struct {
		name, file string
		want       []byte
		damaged    bool
	}{
		{"a dictionary", string(whole) + "rest", dict, false},
		{"an empty file", "", nil, false},
		{"a file without one", "WARC/1.0\r\n", nil, false},
		{"truncated", string(whole[:len(whole)/2]), nil, true},
		{"truncated in its header", string(whole[:6]), nil, true},
		{"too large", zdict.Magic + "\xff\xff\xff\xff", nil, true},
		{"broken compression", string(broken), nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := NewReader(nil, ReaderOptions{}).ReadDict(strings.NewReader(tt.file))
			require.Equal(t, tt.damaged, err != nil)
			if tt.damaged {
				require.ErrorIs(t, err, ErrDamaged)
			}
			require.Equal(t, tt.want, got)
		})
	}
}

// A header or a head has at most a thousand lines, in any coding.
func TestLinesAreLimited(t *testing.T) {
	fields := func(n int) string { return strings.Repeat("a:\n", n) }
	for _, tt := range []struct {
		name, file string
		sound      bool
	}{
		{"a header", plain(fields(900), "block"), true},
		{"a header with too many lines", plain(fields(MaxLines+1), "block"), false},
		{"a header with too many continuation lines",
			plain("a:\n"+strings.Repeat(" b\n", MaxLines), "block"), false},
		{"a head", plain("", "HTTP/1.1 200 OK\n"+fields(900)+"\n"), true},
		{"a head with too many lines", plain("", "HTTP/1.1 200 OK\n"+fields(MaxLines)+"\n"), false},
	} {
		r := NewReader(strings.NewReader(tt.file), ReaderOptions{})
		rec, err := r.Next()
		if err == nil && strings.Contains(tt.name, "head") && !strings.Contains(tt.name, "header") {
			_, err = rec.HTTP()
		}
		if tt.sound {
			require.NoError(t, err, tt.name)
		} else {
			require.ErrorIs(t, err, ErrDamaged, tt.name)
		}
	}
}

// A member that expands beyond the ratio is damage before all of it is decompressed.
func TestRatioIsLimited(t *testing.T) {
	zs, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	member := zs.EncodeAll([]byte(plain("", strings.Repeat("a", 64<<20))), nil)
	require.Less(t, len(member), 16<<10)
	for _, ratio := range []int64{0, 1000, 1 << 20} {
		r := NewReader(nil, ReaderOptions{})
		r.ResetAt(bytes.NewReader(member), 0, int64(len(member)))
		r.SetMaxRatio(ratio)
		rec, err := r.Next()
		require.NoError(t, err)
		n, err := io.Copy(io.Discard, rec)
		if ratio != 1000 {
			require.NoError(t, err)
			require.EqualValues(t, 64<<20, n)
			continue
		}
		require.ErrorIs(t, err, ErrDamaged)
		require.Less(t, n, ratio*int64(len(member))+freeExpanded+bodyBuffer)
		r.Close()
	}
}

// Only the first dictionary of a file costs memory: a small file can announce thousands, each of 16 MiB or
// broken, with a frame between them whose decoder takes 32 MiB.
func TestOneDictionaryIsTried(t *testing.T) {
	zs, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	empty := "\x28\xb5\x2f\xfd\x00\x78\x01\x00\x00"
	id := "WARC-Type: warcinfo\r\nWARC-Record-ID: <urn:a>\r\n"
	for name, head := range map[string]string{
		"broken": "\x09\x00\x00\x00", "cut": "\xff\xff\xff\x00", "with another frame": "\x00\x00\x00\x00",
	} {
		file := string(zs.EncodeAll([]byte(plain(id, "")), nil)) + strings.Repeat(zdict.Magic+head+empty, 200)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := NewReader(strings.NewReader(file), ReaderOptions{})
		records, _, err := readAll(t, r)
		runtime.ReadMemStats(&after)
		require.NoError(t, err)
		require.Len(t, records, 1)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(150<<20), name)
		r.Close()
	}
}

// Frames that need no dictionary can be salvaged, even if that of the file is broken.
func TestSalvageBesideABrokenDictionary(t *testing.T) {
	zs, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	dict := zs.EncodeAll(make([]byte, 4<<20), nil)
	dict[len(dict)-1] ^= 1
	file := zs.EncodeAll([]byte(plain("", "block")), zdict.Append(nil, dict))
	r := NewReader(bytes.NewReader(file), ReaderOptions{Salvage: true})
	defer r.Close()
	records, damage, err := readAll(t, r)
	require.NoError(t, err)
	require.Len(t, damage, 1)
	require.Len(t, records, 1)
}
