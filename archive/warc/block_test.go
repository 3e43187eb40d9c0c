package warc

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// limited is a writer that takes some bytes and then fails, or writes short if err is nil.
type limited struct {
	left int
	err  error
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	if n < len(p) {
		return n, l.err
	}
	return n, nil
}

// A block and its verification are the same for Read, WriteTo and both.
func TestWaysToReadABlock(t *testing.T) {
	for name, o := range codings() {
		w := write(t, o, 12)
		for _, first := range []int{0, 1, 7, 1 << 20} {
			r := NewReader(bytes.NewReader(w.data), ReaderOptions{Verify: true})
			for i := range w.entries {
				rec, err := r.Next()
				require.NoError(t, err, name)
				begin, err := io.ReadAll(io.LimitReader(rec, int64(first)))
				require.NoError(t, err)
				var rest bytes.Buffer
				n, err := rec.WriteTo(&rest)
				require.NoError(t, err)
				require.EqualValues(t, rest.Len(), n)
				require.Equal(t, string(w.entries[i].block), string(begin)+rest.String())
				n, err = rec.WriteTo(&rest)
				require.NoError(t, err, "nothing is left")
				require.Zero(t, n)
				_, err = rec.Read(make([]byte, 1))
				require.Equal(t, io.EOF, err)
			}
			_, err := r.Next()
			require.Equal(t, io.EOF, err)
		}
	}
}

// A failing destination is not damage: the rest of the record and later records can be read.
func TestFailingDestination(t *testing.T) {
	full := errors.New("disk full")
	for name, o := range codings() {
		w := write(t, o, 12)
		for _, err := range []error{full, nil} {
			r := NewReader(bytes.NewReader(w.data), ReaderOptions{Verify: true})
			for i := range w.entries {
				rec, failure := r.Next()
				require.NoError(t, failure, name)
				block := w.entries[i].block
				n, failure := rec.WriteTo(&limited{left: len(block) / 2, err: err})
				require.EqualValues(t, len(block)/2, n)
				switch {
				case len(block) == 0:
					require.NoError(t, failure)
				case err == nil:
					require.ErrorIs(t, failure, io.ErrShortWrite)
				default:
					require.ErrorIs(t, failure, full)
				}
				rest, failure := io.ReadAll(rec)
				require.NoError(t, failure)
				require.Equal(t, string(block[len(block)/2:]), string(rest))
			}
		}
	}
}

// Damage is reported once, however the block is read.
func TestDamageOfABlockIsReportedOnce(t *testing.T) {
	noSum := "WARC-Block-Digest: sha1:" + strings.Repeat("A", 32) + "\r\n"
	good := plain("", "next")
	for _, tt := range []struct{ name, file, says string }{
		{"a wrong digest", plain(noSum, "block") + good, "digest"},
		{"a truncated file", strings.TrimSuffix(plain("", "block"), "ck\r\n\r\n"), "the middle"},
	} {
		ways := map[string]func(*Record) error{
			"Read": func(rec *Record) error {
				_, err := io.ReadAll(struct{ io.Reader }{rec})
				return err
			},
			"WriteTo": func(rec *Record) error { _, err := rec.WriteTo(io.Discard); return err },
			"Close":   func(rec *Record) error { return rec.Close() },
		}
		for way, read := range ways {
			t.Run(tt.name+"/"+way, func(t *testing.T) {
				r := NewReader(strings.NewReader(tt.file),
					ReaderOptions{Verify: true, Salvage: true})
				rec, err := r.Next()
				require.NoError(t, err)
				err = read(rec)
				require.ErrorIs(t, err, ErrDamaged)
				require.ErrorContains(t, err, tt.says)
				require.NoError(t, rec.Close(), "it was reported")
				rec, err = r.Next()
				if strings.HasSuffix(tt.file, good) {
					require.NoError(t, err)
					next, err := io.ReadAll(rec)
					require.NoError(t, err)
					require.Equal(t, "next", string(next))
				} else {
					require.Equal(t, io.EOF, err)
				}
			})
		}
	}
}

func TestStatusOfAMessage(t *testing.T) {
	for _, tt := range []struct {
		line string
		want int
	}{
		{"HTTP/1.1 200 OK\r\n", 200}, {"HTTP/1.1 200\r\n", 200}, {"HTTP/1.0 404 Not Found\n", 404},
		{"HTTP/2 304 \r\n", 304}, {"HTTP/1.1   301 X\r\n", 301}, {"HTTP/1.1 0200 X\r\n", 200},
		{"HTTP/1.1 000000000000200 X\r\n", 0}, {"HTTP/1.1 999 X\r\n", 999},
		{"HTTP/1.1 1000 X\r\n", 0}, {"HTTP/1.1 -1 X\r\n", 0}, {"HTTP/1.1 +20 X\r\n", 0},
		{"HTTP/1.1 2x0 X\r\n", 0},
		{"HTTP/1.1 \r\n", 0}, {"HTTP/1.1\r\n", 0}, {"ICY 200 OK\r\n", 0}, {"", 0}, {"\n", 0},
		{"GET / HTTP/1.1\r\n", 0}, {"HTTP/1.1 200OK\r\n", 0}, {"HTTP/1.1\t200 OK\r\n", 0},
	} {
		h := HTTP{Head: []byte(tt.line + "Content-Type: x\r\n\r\n")}
		require.Equal(t, tt.want, h.Status(), "%q", tt.line)
	}
}

// Size is the length of the body, or -1 if unknown.
func TestSizeOfABody(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\n\r\n"
	const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, tt := range []struct {
		name, block string
		want        int64
	}{
		{"a body", head + "body", 4},
		{"no body", head, 0},
		{"a large body", head + strings.Repeat("x", 100_000), 100_000},
		{"no blank line", "HTTP/1.1 200 OK\r\nA: b\r\n", 0},
		{"an empty block", "", 0},
		{"chunks", chunked + "4\r\nbody\r\n0\r\n\r\n", -1},
		{"chunks that were removed", chunked + "body", 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rec, err := NewReader(strings.NewReader(plain("", tt.block)), ReaderOptions{}).Next()
			require.NoError(t, err)
			h, err := rec.HTTP()
			require.NoError(t, err)
			require.Equal(t, tt.want, h.Size)
			body, err := io.ReadAll(h.Body)
			require.NoError(t, err)
			if tt.want >= 0 {
				require.Len(t, body, int(tt.want))
			} else {
				require.Equal(t, "body", string(body))
			}
		})
	}
}

func TestParseDigest(t *testing.T) {
	const hexadecimal = "da39a3ee5e6b4b0d3255bfef95601890afd80709"
	const base = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
	for _, tt := range []struct {
		name, labelled, algorithm string
	}{
		{"base 32", "sha1:" + base, "sha1"},
		{"base 32 in lower case", "sha1:" + strings.ToLower(base), "sha1"},
		{"hexadecimal", "sha1:" + hexadecimal, "sha1"},
		{"hexadecimal in upper case", "SHA1:" + strings.ToUpper(hexadecimal), "sha1"},
		{"a label with a hyphen", "SHA-1:" + base, "sha1"},
		{"SHA-256 with padding",
			"sha256:4OYMIQUY7QOBJGX36TEJS35ZEQT24QPEMSNZGTFESWMRW6CSXBKQ====", "sha256"},
		{"SHA-512", "sha-512:" + strings.Repeat("00", 64), "sha512"},
		{"MD5", "md5:2QOYZWMPACZAJ2MABGMOZ6CCPY", "md5"},
		{"nothing", "", ""},
		{"no label", base, ""},
		{"an unknown label", "crc32:00000000", ""},
		{"a sum too short", "sha1:" + base[:31], ""},
		{"the sum of another algorithm", "sha256:" + base, ""},
		{"a sum with invalid characters", "sha1:" + strings.Repeat("1", 32), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			algorithm, sum, ok := Field{Value: tt.labelled}.Digest()
			require.Equal(t, tt.algorithm, algorithm)
			require.Equal(t, tt.algorithm != "", ok)
			if algorithm == "sha1" {
				require.Equal(t, emptySHA1[:], sum)
			}
		})
	}
}

// The end of a frame is found for any kind and number of blocks.
func TestFramesOfAllKinds(t *testing.T) {
	noise := make([]byte, 300_000)
	for i, x := 0, uint32(1); i < len(noise); i++ {
		x = x*1664525 + 1013904223
		noise[i] = byte(x >> 24)
	}
	texts := map[string]string{
		"one byte":       "x",
		"repeated bytes": strings.Repeat("\x00", 400_000),
		"incompressible": string(noise),
		"many blocks":    strings.Repeat("some words of a page, ", 50_000),
	}
	options := map[string][]zstd.EOption{
		"plain":    {zstd.WithEncoderCRC(false)},
		"checksum": {zstd.WithEncoderCRC(true)},
		"segment":  {zstd.WithSingleSegment(true)},
		"window":   {zstd.WithWindowSize(1 << 20)},
	}
	for option, opts := range options {
		zs, err := zstd.NewWriter(nil, opts...)
		require.NoError(t, err)
		var file []byte
		var want []string
		var offsets []int64
		for _, block := range texts {
			record := []byte(plain("", block))
			offsets = append(offsets, int64(len(file)))
			file = zs.EncodeAll(record, file)
			want = append(want, block)
			// A skippable frame is not a record, and its content does not begin one.
			file = append(file, "\x50\x2a\x4d\x18\x04\x00\x00\x00WARC"...)
		}
		r := NewReader(bytes.NewReader(file), ReaderOptions{})
		for i, rec := range requireRecords(t, r, len(want)) {
			require.Equal(t, offsets[i], rec.offset, option)
			require.True(t, want[i] == rec.block, option)
		}
	}
}

func TestFieldsOfAMessage(t *testing.T) {
	h := HTTP{Head: []byte("HTTP/1.1 200 OK: not a field\r\nA: b\r\n" +
		"CONTENT-type:\t text/html \r\nA: c\r\nEmpty:\r\nNo field\r\nColon: d:e\r\n" +
		"Long: e\r\n\tf \r\n  g: h\r\nBare: f\n\r\nBody: g\r\n")}
	for name, want := range map[string]string{
		"a": "b", "A": "b", "Content-Type": "text/html", "Empty": "", "Missing": "", "No field": "",
		"Colon": "d:e", "Long": "e f g: h", "g": "", "Bare": "f", "HTTP/1.1 200 OK": "", "": "",
	} {
		require.Equal(t, want, h.Get(name), "%q", name)
	}
	require.Empty(t, (&HTTP{}).Get("A"))
	require.Empty(t, (&HTTP{Head: []byte("A: b")}).Get("A"), "the first line is not a field")
}
