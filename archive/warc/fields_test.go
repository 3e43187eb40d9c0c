package warc

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestHeaders(t *testing.T) {
	for _, tt := range []struct {
		name, header string
		want         Fields
		says         string
	}{
		{"no fields", "WARC/1.1\r\n", nil, ""},
		{"a field", "WARC/1.1\r\nA: b\r\n", Fields{{"A", "b"}}, ""},
		{"no space after the colon", "WARC/1.0\r\nA:b\r\n", Fields{{"A", "b"}}, ""},
		{"spaces around everything", "WARC/1.0 \r\nA \t:\t b \r\n", Fields{{"A", "b"}}, ""},
		{"a colon in the value", "WARC/1.0\r\nA: b: c\r\n", Fields{{"A", "b: c"}}, ""},
		{"an empty value", "WARC/1.0\r\nA:\r\n", Fields{{"A", ""}}, ""},
		{"an empty name", "WARC/1.0\r\n: b\r\n", Fields{{"", "b"}}, ""},
		{"the same name twice", "WARC/1.0\r\nA: b\r\nA: c\r\n", Fields{{"A", "b"}, {"A", "c"}}, ""},
		{"continuation lines", "WARC/1.0\r\nA: b\r\n c\r\n\td\r\n", Fields{{"A", "b c d"}}, ""},
		{"an empty continuation line", "WARC/1.0\r\nA: b\r\n \r\n", Fields{{"A", "b"}}, ""},
		{"bare LF", "WARC/1.0\nA: b\nC: d\n", Fields{{"A", "b"}, {"C", "d"}}, ""},
		{"no line break at the end", "WARC/1.0\nA: b", Fields{{"A", "b"}}, ""},
		{"invalid UTF-8", "WARC/1.0\nA: \xff\n", Fields{{"A", "\xff"}}, ""},
		{"another first line", "HTTP/1.1 200 OK\r\nA: b\r\n", nil, "no version line"},
		{"a version of letters", "WARC/x\r\nA: b\r\n", nil, "no version line"},
		{"an empty version", "WARC/\r\nA: b\r\n", nil, "no version line"},
		{"a line without a colon", "WARC/1.0\r\nA b\r\n", nil, "not a field"},
		{"a continued version line", "WARC/1.0\r\n A: b\r\n", nil, "continuation line"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, fields, err := parseHeader([]byte(tt.header), nil)
			if tt.says != "" {
				require.ErrorContains(t, err, tt.says)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, fields)
		})
	}
}

func TestValuesOfFields(t *testing.T) {
	f := Fields{{"WARC-Type", "Response"}, {"WARC-Target-URI", "<http://a.test/>"}, {"X", "first"},
		{"x", "second"}, {"Bare", "http://b.test/"}, {"Half", "<http://c.test/"}, {"Empty", ""}}
	require.Equal(t, "response", f.Type())
	require.Equal(t, "http://a.test/", f.URI("warc-target-uri"), "WARC 1.0 has brackets around it")
	require.Equal(t, "http://b.test/", f.URI("Bare"))
	require.Equal(t, "http://c.test/", f.URI("Half"))
	require.Empty(t, f.URI("Missing"))
	require.Equal(t, "first", f.Get("X"), "the first one counts")
	require.Empty(t, f.Get("Empty"))
	require.Empty(t, Fields(nil).Type())
}

func TestLengths(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values []string
		want   int64 // negative: not usable
	}{
		{"zero", []string{"0"}, 0},
		{"a number", []string{"123"}, 123},
		{"leading zeros", []string{"00012"}, 12},
		{"the same twice", []string{"5", "5"}, 5},
		{"the largest", []string{"4611686018427387903"}, 1<<62 - 1},
		{"none", nil, -1},
		{"two", []string{"5", "6"}, -1},
		{"one above the largest", []string{"4611686018427387904"}, -1},
		{"a sign", []string{"+5"}, -1},
		{"a fraction", []string{"5.0"}, -1},
		{"hexadecimal", []string{"0x5"}, -1},
		{"an empty value", []string{""}, -1},
		{"a list", []string{"5, 5"}, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := Fields{{"A", "1"}}
			for _, value := range tt.values {
				f = append(f, Field{"content-LENGTH", value})
			}
			n, err := f.length()
			if tt.want < 0 {
				require.ErrorIs(t, err, errLength)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, n)
		})
	}
}

// A magic is found at any offset, including across the boundaries of reads.
func TestSearchingForMagics(t *testing.T) {
	for _, magic := range [][]byte{magics[0], magics[1], magics[2]} {
		for _, at := range []int{0, 1, 100, sourceBuffer - 4, sourceBuffer - 1, sourceBuffer,
			3 * sourceBuffer} {
			file := append(bytes.Repeat([]byte("\x1f\x28W"), at/3+1)[:at], magic...)
			file = append(file, "rest"...)
			for name, r := range map[string]io.Reader{
				"whole": bytes.NewReader(file), "halves": iotest.HalfReader(bytes.NewReader(file)),
			} {
				s := newSource(r)
				require.NoError(t, s.find([][]byte{magic}), "%q %d %s", magic, at, name)
				require.EqualValues(t, at, s.pos())
				begin, err := s.Peek(len(magic))
				require.NoError(t, err)
				require.Equal(t, magic, begin)
			}
		}
		s := newSource(strings.NewReader(strings.Repeat("\x1f\x8b WARC", 50_000)))
		require.Equal(t, io.EOF, s.find([][]byte{magic}))
	}
}

// firstMagic finds the first magic in the file, whichever it is.
func TestFirstOfSeveralMagics(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		var file []byte
		first := -1
		for range r.IntN(5) {
			for range r.IntN(20) {
				file = append(file, "\x1f\x8b\x28\xb5WAR"[r.IntN(7)])
			}
			if naive := firstOf(file); naive >= 0 && first < 0 {
				first = naive // random bytes form one
			}
			if first < 0 {
				first = len(file)
			}
			file = append(file, magics[r.IntN(3)]...)
		}
		require.Equal(t, firstOf(file), firstMagic(file, magics), "%q", file)
	}
}

// firstOf tries every position.
func firstOf(file []byte) int {
	for at := range file {
		for _, magic := range magics {
			if bytes.HasPrefix(file[at:], magic) {
				return at
			}
		}
	}
	return -1
}

// Chunks are decoded whatever their sizes, reads and errors.
func TestChunks(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, tt := range []struct{ name, block, want string }{
		{"one", "4\r\nbody\r\n0\r\n\r\n", "body"},
		{"many", "1\r\nb\r\n2\r\nod\r\n1\r\ny\r\n0\r\n\r\n", "body"},
		{"none", "0\r\n\r\n", ""},
		{"upper case and zeros", "000A\r\n0123456789\r\n0\r\n\r\n", "0123456789"},
		{"an extension", "4;a=\"b\"\r\nbody\r\n0\r\n\r\n", "body"},
		{"a trailer", "4\r\nbody\r\n0\r\nA: b\r\n\r\n", "body"},
		{"spaces, which some servers write", "4  \r\nbody\r\n0\r\n\r\n", "body"},
		{"bare LF", "4\nbody\n0\n\n", "body"},
		{"no last chunk", "4\r\nbody\r\n", "body"},
		{"a truncated chunk", "9\r\nbody", "body"},
		{"an invalid size", "4\r\nbody\r\nzz\r\nmore", "body"},
		{"a size that overflows", "4\r\nbody\r\nffffffffffffffff\r\nmore", "body"},
		{"a line without an end", "4\r\nbody\r\n" + strings.Repeat("1", 5000), "body"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for way, wrap := range map[string]func(io.Reader) io.Reader{
				"at once":      func(r io.Reader) io.Reader { return r },
				"byte by byte": iotest.OneByteReader,
			} {
				file := strings.NewReader(plain("", head+tt.block))
				rec, err := NewReader(file, ReaderOptions{}).Next()
				require.NoError(t, err)
				h, err := rec.HTTP()
				require.NoError(t, err)
				got, err := io.ReadAll(wrap(h.Body))
				require.NoError(t, err)
				require.Equal(t, tt.want, string(got), way)
			}
		})
	}
}
