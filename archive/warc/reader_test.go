package warc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/internal/zdict"
)

// copied is a copy of a record.
type copied struct {
	offset, length int64
	fields         Fields
	block          string
}

// readAll returns all records and the reported damage, up to the end or a failure.
func readAll(t testing.TB, r *Reader) (records []copied, damage []*DamageError, failure error) {
	t.Helper()
	defer r.Close()
	for rec, err := range r.Records() {
		var block []byte
		c := copied{}
		if err == nil {
			c.offset, c.fields = rec.Offset, append(Fields(nil), rec.Fields()...)
			block, err = io.ReadAll(rec)
			c.block = string(block)
		}
		if err == nil {
			err = rec.Close()
			c.length = rec.Length
		}
		var d *DamageError
		switch {
		case errors.As(err, &d):
			damage = append(damage, d)
		case err != nil:
			return records, damage, err
		default:
			records = append(records, c)
		}
	}
	return records, damage, nil
}

func requireRecords(t testing.TB, r *Reader, n int) []copied {
	t.Helper()
	records, damage, err := readAll(t, r)
	require.NoError(t, err)
	require.Empty(t, damage)
	require.Len(t, records, n)
	return records
}

func requireSame(t testing.TB, want entry, got copied) {
	t.Helper()
	require.Equal(t, string(want.block), got.block)
	require.Equal(t, want.head.TargetURI, got.fields.URI("WARC-Target-URI"))
	require.Equal(t, want.head.Type, got.fields.Type())
}

func TestReaderReadsWhatEncoderWrote(t *testing.T) {
	for name, o := range codings() {
		t.Run(name, func(t *testing.T) {
			w := write(t, o, 30)
			sources := map[string]io.Reader{
				"seekable":     bytes.NewReader(w.data),
				"a stream":     io.MultiReader(bytes.NewReader(w.data)),
				"byte by byte": iotest.OneByteReader(bytes.NewReader(w.data)),
			}
			for source, r := range sources {
				records := requireRecords(t, NewReader(r, ReaderOptions{Verify: true}), 30)
				for i, got := range records {
					require.Equal(t, w.offsets[i], got.offset, source)
					require.Equal(t, w.offsets[i+1]-w.offsets[i], got.length, source)
					requireSame(t, w.entries[i], got)
				}
			}
		})
	}
}

func TestReadingByAddress(t *testing.T) {
	for name, o := range codings() {
		w := write(t, o, 10)
		r := NewReader(nil, ReaderOptions{Dict: o.Dict, Verify: true})
		for i := len(w.entries) - 1; i >= 0; i-- {
			r.ResetAt(bytes.NewReader(w.data), w.offsets[i], w.offsets[i+1]-w.offsets[i])
			rec, err := r.Next()
			require.NoError(t, err, name)
			require.Equal(t, w.offsets[i], rec.Offset)
			block, err := io.ReadAll(rec)
			require.NoError(t, err)
			require.Equal(t, string(w.entries[i].block), string(block))
			_, err = r.Next()
			require.Equal(t, io.EOF, err)
		}
		r.Close()
	}
}

// Records are skipped if they are not read, or only in part.
func TestUnreadRecords(t *testing.T) {
	for name, o := range codings() {
		w := write(t, o, 8)
		r := NewReader(bytes.NewReader(w.data), ReaderOptions{Verify: true})
		n := 0
		for rec, err := range r.Records() {
			require.NoError(t, err, name)
			require.Equal(t, w.entries[n].head.TargetURI, rec.Get("warc-target-uri"))
			if n%2 == 1 { // read a part
				_, _ = rec.Read(make([]byte, 3))
			}
			n++
		}
		require.Equal(t, 8, n)
	}
}

func plain(header, block string) string {
	return fmt.Sprintf("WARC/1.0\r\n%sContent-Length: %d\r\n\r\n%s\r\n\r\n",
		header, len(block), block)
}

func TestTolerance(t *testing.T) {
	const field = "WARC-Type: response\r\n"
	good := plain(field, "block")
	tests := []struct {
		name, file string
		want       []string // blocks
	}{
		{"an empty file", "", nil},
		{"only blank lines", "\r\n\n\r\n", nil},
		{"no blank lines at the end", strings.TrimRight(good, "\r\n"), []string{"block"}},
		{"too many blank lines", good + "\r\n\r\n" + good, []string{"block", "block"}},
		{"too few blank lines", strings.TrimRight(good, "\r\n") + "\n" + good,
			[]string{"block", "block"}},
		{"no blank lines", strings.TrimRight(good, "\r\n") + good, []string{"block", "block"}},
		{"bare LF", strings.ReplaceAll(good, "\r\n", "\n"), []string{"block"}},
		{"a later version", strings.ReplaceAll(good, "1.0", "2.7"), []string{"block"}},
		{"an early version", strings.ReplaceAll(good, "1.0", "0.17"), []string{"block"}},
		{"a block that looks like a record", plain(field, good), []string{good}},
		{"a block of line breaks", plain(field, "\r\n\r\n") + good, []string{"\r\n\r\n", "block"}},
		{"an empty block", plain(field, "") + good, []string{"", "block"}},
		{"the length twice", plain("content-length: 5\r\n", "block"), []string{"block"}},
		{"spaces around the colon", plain("A : b \r\n", "block"), []string{"block"}},
		{"an unknown digest", plain("WARC-Block-Digest: crc:1\r\n", "block"), []string{"block"}},
		{"an invalid sum", plain("WARC-Block-Digest: sha1:1\r\n", "block"), []string{"block"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := NewReader(strings.NewReader(tt.file), ReaderOptions{Verify: true})
			var got []string
			for _, rec := range requireRecords(t, r, len(tt.want)) {
				got = append(got, rec.block)
			}
			require.Equal(t, tt.want, got)
		})
	}
}

func TestDamageIsReportedAndSkipped(t *testing.T) {
	good := plain("WARC-Type: response\r\n", "block")
	bad := func(header string) string { return "WARC/1.0\r\n" + header + "\r\n\r\nblock\r\n\r\n" }
	gz := string(write(t, packing{EncoderOptions: EncoderOptions{}}, 1).data)
	zs := string(write(t, packing{EncoderOptions: EncoderOptions{Compression: Zstd}}, 1).data)
	noSum := "WARC-Block-Digest: sha1:" + strings.Repeat("A", 32) + "\r\n"
	tests := []struct {
		name, damage, says string
		good               string // a record of the same kind
	}{
		{"garbage", "garbage\r\n", "neither a record", good},
		{"no length", bad("WARC-Type: response"), "Content-Length", good},
		{"a negative length", bad("Content-Length: -1"), "Content-Length", good},
		{"a length of words", bad("Content-Length: five"), "Content-Length", good},
		{"a length that overflows", bad("Content-Length: 99999999999999999999"), "Content", good},
		{"two lengths", bad("Content-Length: 5\r\nContent-Length: 6"), "Content-Length", good},
		{"a length too short", bad("Content-Length: 3"), "followed by something other", good},
		{"no field", bad("Content-Length: 5\r\nfield"), "not a field", good},
		{"a leading continuation", bad(" Content-Length: 5"), "continuation line", good},
		{"no version", strings.Replace(good, "1.0", "x", 1), "no version line", good},
		{"a wrong digest", plain(noSum, "block"), "digest", good},
		{"a wrong digest of an empty block", plain(noSum, ""), "digest", good},
		{"a header too long", bad("A: " + strings.Repeat("x", 1<<20)), "too long", good},
		{"gzip, truncated", gz[:len(gz)-20], "", gz},
		{"gzip, changed", gz[:30] + "\xff\xff\xff\xff" + gz[34:], "", gz},
		{"gzip, checksum changed", gz[:len(gz)-8] + "\xff\xff" + gz[len(gz)-6:], "checksum", gz},
		{"garbage after gzip", "\x1f\x8bgarbage", "neither a record", gz},
		{"zstd, truncated", zs[:len(zs)-20], "", zs},
		{"zstd, checksum changed", zs[:len(zs)-4] + "\xff\xff" + zs[len(zs)-2:], "CRC", zs},
		{"zstd, a reserved kind of block", zs[:8] + "\x07\x00\x00", "", zs},
		{"a truncated dictionary", zdict.Magic + "\xff\xff\x00\x00xx", "the middle", zs},
		{"a dictionary too large", zdict.Magic + "\xff\xff\xff\xffxx", "too large", zs},
		{"ARC", "filedesc://IAH-1.arc 0.0.0.0 text/plain 1\r\n", "neither a record", good},
	}
	for _, tt := range tests {
		for _, before := range []string{"", tt.good} {
			t.Run(fmt.Sprintf("%s/before=%d", tt.name, len(before)), func(t *testing.T) {
				opts := ReaderOptions{Verify: true, Name: "f", Salvage: true}
				file := before + tt.damage + tt.good
				records, damage, err := readAll(t, NewReader(strings.NewReader(file), opts))
				require.NoError(t, err)
				require.Len(t, damage, 1)
				require.EqualValues(t, len(before), damage[0].Offset)
				require.ErrorContains(t, damage[0], tt.says)
				require.ErrorContains(t, damage[0], fmt.Sprintf("warc: f: byte %d: ", len(before)))
				last := records[len(records)-1]
				require.EqualValues(t, len(before+tt.damage), last.offset, "the next record")
			})
		}
	}
}

// A changed byte loses only the record that contains it, and truncation only those that are cut.
func TestDamageLosesOneRecord(t *testing.T) {
	for name, o := range codings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := write(t, o, 4)
			r := NewReader(nil, ReaderOptions{Verify: true, Dict: o.Dict})
			step := max(1, len(w.data)/400) // plain files are long
			first := int(w.offsets[0])
			if name == "gzip-stored" {
				first += 3 // without the magic, stored headers would look like plain records
			}
			for at := first; at < len(w.data); at += step {
				broken := bytes.Clone(w.data)
				broken[at] ^= 1 << (at % 8)
				requireLost(t, w, r, broken, int64(at))
				requireLost(t, w, r, w.data[:at], int64(at))
			}
		})
	}
}

// requireLost requires all records except the one that contains at, and those after the end.
func requireLost(t *testing.T, w *written, r *Reader, data []byte, at int64) {
	t.Helper()
	r.reset(bytes.NewReader(data))
	r.SetSalvage(at < w.offsets[1]) // without the warcinfo record, its ID is unknown
	records, damage, err := readAll(t, r)
	require.NoError(t, err)
	found := map[int64]copied{}
	for _, rec := range records {
		found[rec.offset] = rec
	}
	for i, e := range w.entries {
		start, end := w.offsets[i], w.offsets[i+1]
		if start <= at && at < end {
			if len(damage) == 0 && start < at { // a bit without effect
				require.NotEmpty(t, records)
			}
			continue
		}
		if end > int64(len(data)) {
			continue
		}
		got, ok := found[start]
		require.True(t, ok, "byte %d of %d: record %d is lost: %v", at, len(data), i, damage)
		requireSame(t, e, got)
	}
}

// A stream cannot seek back, but records after the damage are found.
func TestDamagedStream(t *testing.T) {
	for name, o := range codings() {
		w := write(t, o, 12)
		broken := bytes.Clone(w.data)
		for i := range 6 {
			broken[w.offsets[1]+int64(i)] = 'x'
		}
		r := NewReader(io.MultiReader(bytes.NewReader(broken)), ReaderOptions{Verify: true})
		records, damage, err := readAll(t, r)
		require.NoError(t, err, name)
		require.NotEmpty(t, damage, name)
		require.GreaterOrEqual(t, len(records), 9, name)
	}
}

func TestMembersWithManyOrNoRecords(t *testing.T) {
	pack := func(texts ...string) string {
		var out bytes.Buffer
		e, err := NewEncoder(EncoderOptions{})
		require.NoError(t, err)
		for _, text := range texts {
			e.gz.Reset(&out)
			_, _ = e.gz.Write([]byte(text))
			_ = e.gz.Close()
		}
		return out.String()
	}
	good := plain("WARC-Type: response\r\n", "block")
	records := requireRecords(t, NewReader(strings.NewReader(
		pack("", good+good, "", good)+strings.Repeat(pack(""), 1000)), ReaderOptions{}), 3)
	require.Zero(t, records[0].length, "no address")
	require.Zero(t, records[1].length)
	require.Equal(t, records[0].offset, records[1].offset)
	require.Positive(t, records[2].length)

	_, damage, err := readAll(t,
		NewReader(strings.NewReader(pack(good+"garbage")), ReaderOptions{}))
	require.NoError(t, err)
	require.Len(t, damage, 1)
}

// A failing disk is neither damage nor the end of the file.
func TestFailureOfTheSource(t *testing.T) {
	fire := errors.New("disk on fire")
	for name, o := range codings() {
		w := write(t, o, 3)
		for at := 0; at < len(w.data); at += 1 + len(w.data)/100 {
			src := io.MultiReader(bytes.NewReader(w.data[:at]), iotest.ErrReader(fire))
			records, damage, err := readAll(t, NewReader(src, ReaderOptions{Name: "f"}))
			require.ErrorIs(t, err, fire, "%s %d", name, at)
			require.ErrorContains(t, err, "read f: ")
			require.Empty(t, damage)
			require.LessOrEqual(t, len(records), 3)
		}
	}
}

// namedReader has a Name, which errors include.
type namedReader struct{ io.Reader }

func (namedReader) Name() string { return "its-own-name" }

func TestNameOfTheSource(t *testing.T) {
	r := NewReader(namedReader{strings.NewReader("garbage")}, ReaderOptions{})
	_, err := r.Next()
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "its-own-name")
	_, err = r.Next()
	require.Equal(t, io.EOF, err)
	_, err = r.Next()
	require.Equal(t, io.EOF, err)
}

func TestReadingAllocatesLittle(t *testing.T) {
	for name, o := range codings() {
		w := write(t, o, 20)
		r := NewReader(nil, ReaderOptions{Verify: true, Dict: o.Dict})
		src := bytes.NewReader(nil)
		allocs := testing.AllocsPerRun(10, func() {
			src.Reset(w.data)
			r.reset(src)
			for _, err := range r.Records() {
				require.NoError(t, err)
			}
		})
		require.LessOrEqual(t, allocs/20, 8.0, name)
	}
}
