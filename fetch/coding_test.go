package fetch_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/stretchr/testify/require"
)

// zipped compresses with compress/gzip, which is not the library under test.
func zipped(t testing.TB, text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

func deflated(t testing.TB, text string) string {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, 6)
	require.NoError(t, err)
	_, err = w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

func zlibbed(t testing.TB, text string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

func zstded(t testing.TB, text string) string {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	require.NoError(t, err)
	return string(w.EncodeAll([]byte(text), nil))
}

// noise returns text that does not compress well.
func noise(n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return string(b)
}

func TestContentCodings(t *testing.T) {
	text := strings.Repeat("to be or not to be, ", 1000)
	plain := noise(30_000)
	z, zplain := zipped(t, text), zipped(t, plain)
	zeros := strings.Repeat("\x00", 5_000_000)
	bomb := zipped(t, zeros) // about 5,000 bytes
	flate, zlib, zstd := deflated(t, text), zlibbed(t, text), zstded(t, text)
	flipped := z[:len(z)-5] + string(z[len(z)-5]^1) + z[len(z)-4:]
	tests := []struct {
		name, coding string
		raw          string
		opts         fetch.Options
		want         string
		cut          fetch.Kind
	}{
		{"none", "", text, fetch.Options{}, text, fetch.Whole},
		{"identity", "identity", text, fetch.Options{}, text, fetch.Whole},
		{"gzip", "gzip", z, fetch.Options{}, text, fetch.Whole},
		{"x-gzip in capitals", " X-GZip ", z, fetch.Options{}, text, fetch.Whole},
		{"gzip and identity", "identity, gzip", z, fetch.Options{}, text, fetch.Whole},
		{"gzip larger than its contents", "gzip", zplain, fetch.Options{}, plain, fetch.Whole},
		{"an empty body", "gzip", "", fetch.Options{}, "", fetch.Whole},
		{"an empty page", "gzip", zipped(t, ""), fetch.Options{}, "", fetch.Whole},
		{"several members", "gzip", z + zipped(t, "") + zplain, fetch.Options{}, text + plain,
			fetch.Whole},
		{"bytes after the last member", "gzip", z + "\x00\x00padding", fetch.Options{}, text,
			fetch.Whole},

		{"deflate", "deflate", zlib, fetch.Options{}, text, fetch.Whole},
		{"raw deflate, as from some servers", "Deflate", flate, fetch.Options{}, text, fetch.Whole},
		{"deflate with a wrong checksum", "deflate", zlib[:len(zlib)-1] + "x", fetch.Options{}, text,
			fetch.CutCoding},
		{"not deflate at all", "deflate", "\xff\xff\xff", fetch.Options{}, "", fetch.CutCoding},
		{"one byte of deflate", "deflate", "x", fetch.Options{}, "", fetch.CutCoding},
		{"a deflate bomb", "deflate", deflated(t, zeros), fetch.Options{},
			zeros[:64<<10+100*len(deflated(t, zeros))], fetch.CutRatio},
		{"zstd", "zstd", zstd, fetch.Options{}, text, fetch.Whole},
		{"several frames of zstd", "zstd", zstd + "\x50\x2a\x4d\x18\x01\x00\x00\x00x" + zstd,
			fetch.Options{}, text + text, fetch.Whole},
		{"not zstd at all", "zstd", text, fetch.Options{}, text, fetch.CutCoding},
		{"zstd cut in its only block", "zstd", zstd[:len(zstd)-3], fetch.Options{}, "",
			fetch.CutCoding},
		{"a zstd bomb", "zstd", zstded(t, zeros), fetch.Options{},
			zeros[:64<<10+100*len(zstded(t, zeros))], fetch.CutRatio},
		{"zstd that requires a large window", "zstd", "\x28\xb5\x2f\xfd\x00\x70\x01\x00\x00",
			fetch.Options{}, "", fetch.CutCoding},

		{"an unknown coding", "br", z, fetch.Options{}, z, fetch.CutCoding},
		{"gzip twice", "gzip, gzip", zipped(t, z), fetch.Options{}, text, fetch.Whole},
		{"not gzip at all", "gzip", text, fetch.Options{}, text, fetch.CutCoding},
		{"a wrong checksum", "gzip", flipped, fetch.Options{}, text, fetch.CutCoding},
		{"a broken second member", "gzip", z + "\x1f\x8b\xff", fetch.Options{}, text, fetch.CutCoding},
		{"a broken header", "gzip", "\x1f\x8b\xff", fetch.Options{}, "", fetch.CutCoding},

		{"exactly MaxBody", "", text, fetch.Options{MaxBody: int64(len(text))}, text, fetch.Whole},
		{"one more than MaxBody", "", text, fetch.Options{MaxBody: int64(len(text)) - 1},
			text[:len(text)-1], fetch.CutLength},
		{"exactly MaxBody decoded", "gzip", z, fetch.Options{MaxBody: int64(len(text))}, text,
			fetch.Whole},
		{"one more than MaxBody decoded", "gzip", z, fetch.Options{MaxBody: int64(len(text)) - 1},
			text[:len(text)-1], fetch.CutLength},
		{"no limits", "gzip", bomb, fetch.Options{MaxBody: -1, MaxRatio: -1},
			zeros, fetch.Whole},
		{"a bomb", "gzip", bomb, fetch.Options{}, strings.Repeat("\x00", 64<<10+100*len(bomb)),
			fetch.CutRatio},
		{"a bomb that exceeds MaxBody first", "gzip", bomb, fetch.Options{MaxBody: 70_000},
			strings.Repeat("\x00", 70_000), fetch.CutLength},
		{"a bomb with another ratio", "gzip", bomb, fetch.Options{MaxRatio: 3},
			strings.Repeat("\x00", 64<<10+3*len(bomb)), fetch.CutRatio},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			base := listen(t, says(fmt.Sprintf("%sContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s",
				ok, tt.coding, len(tt.raw), tt.raw)))
			r := get(t, newClient(t, tt.opts), base)
			require.Equal(t, tt.cut, r.Truncated)
			// require.Equal would print megabytes.
			require.Len(t, r.Body, len(tt.want))
			require.True(t, tt.want == string(r.Body))
			if tt.opts.MaxBody == 0 {
				require.Equal(t, fetch.Whole, r.RawCut)
				require.True(t, tt.raw == string(r.Raw), "Raw is still encoded")
			}
		})
	}
}

// swapped decodes a made-up coding that swaps upper and lower case.
type swapped struct{ r io.Reader }

func newSwapped(r io.Reader) (io.ReadCloser, error) { return &swapped{r}, nil }

func (s *swapped) Close() error { return nil }

func (s *swapped) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	for i, c := range p[:n] {
		p[i] = c ^ 0x20
	}
	return n, err
}

func TestDecoderOfTheCaller(t *testing.T) {
	made := 0
	c := newClient(t, fetch.Options{MaxBody: 10, Brotli: func(r io.Reader) (io.ReadCloser, error) {
		made++
		return newSwapped(r)
	}})
	for _, text := range []string{"HELLO", "ABCDEFGHIJKLM"} {
		base := listen(t, says(ok+"Content-Encoding: BR\r\n\r\n"+text))
		r := get(t, c, base)
		require.Equal(t, strings.ToLower(text[:min(len(text), 10)]), string(r.Body))
		require.Equal(t, len(text) > 10, r.Truncated == fetch.CutLength)
		require.Contains(t, string(r.RequestHead), "Accept-Encoding: gzip, zstd, deflate, br\r\n")
	}
	require.Positive(t, made)
}

// The part of a truncated body that arrived and can be decoded is kept.
func TestTruncatedBodies(t *testing.T) {
	text := noise(50_000)
	z := zipped(t, text)
	tests := []struct {
		name, head, body string
		want             string // a prefix of Body, which is no longer than text
	}{
		{"shorter than Content-Length", "Content-Length: 1000\r\n\r\n", "short", "short"},
		{"far shorter than Content-Length", "Content-Length: 9223372036854775807\r\n\r\n", "short",
			"short"},
		{"in a chunk", "Transfer-Encoding: chunked\r\n\r\n", "5\r\nhello\r\nff\r\nshort", "helloshort"},
		{"between chunks", "Transfer-Encoding: chunked\r\n\r\n", "5\r\nhello\r\n", "hello"},
		{"invalid chunk", "Transfer-Encoding: chunked\r\n\r\n", "5\r\nhello\r\nxyz\r\n", "hello"},
		{"in gzip", fmt.Sprintf("Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", len(z)),
			z[:len(z)/2], text[:len(text)/4]},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := get(t, newClient(t, fetch.Options{}), listen(t, says(ok+tt.head+tt.body)))
			require.Equal(t, fetch.CutDisconnect, r.RawCut)
			require.Equal(t, fetch.CutDisconnect, r.Truncated)
			require.True(t, strings.HasPrefix(string(r.Body), tt.want))
			require.Less(t, len(r.Body), len(text))
		})
	}
}

// Decoders are reused, but no data of one page may appear in the next.
func TestReusedDecodersAreClean(t *testing.T) {
	pages := []string{zipped(t, "one"), "\x1f\x8bbroken", zipped(t, "two")[:15], zipped(t, "three")}
	base := listen(t, func(s *session) {
		for n := 0; s.request() != ""; n++ {
			page := pages[n%len(pages)]
			s.say(fmt.Sprintf("%sContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s",
				ok, len(page), page))
		}
	})
	c := newClient(t, fetch.Options{})
	for range 3 {
		require.Equal(t, "one", string(get(t, c, base).Body))
		require.Equal(t, fetch.CutCoding, get(t, c, base).Truncated)
		require.Equal(t, fetch.CutCoding, get(t, c, base).Truncated)
		require.Equal(t, "three", string(get(t, c, base).Body))
	}
}

// FuzzGzipRoundTrip checks that a body within the limits decodes to the original, whatever the
// pieces it was encoded in.
func FuzzGzipRoundTrip(f *testing.F) {
	f.Add([]byte("some text"), uint16(3), []byte("rest"))
	f.Add([]byte{}, uint16(0), []byte{0x1f, 0x8b})
	f.Fuzz(func(t *testing.T, text []byte, at uint16, tail []byte) {
		cut := min(int(at), len(text))
		raw := zipped(t, string(text[:cut])) + zipped(t, string(text[cut:]))
		body, truncated := fetch.Decode([]byte(raw), "gzip", fetch.Options{})
		if truncated != fetch.Whole || !bytes.Equal(body, text) {
			t.Errorf("two members of %q, cut at %d: %q, %v", text, cut, body, truncated)
		}
		// Any bytes at all decode to no more than the limit.
		raw = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x00" + string(tail)
		body, _ = fetch.Decode([]byte(raw), "gzip", fetch.Options{MaxBody: 1000})
		if len(body) > 1000 {
			t.Errorf("%q: %d bytes", raw, len(body))
		}
	})
}

// FuzzDeflateAndZstd checks that a body decodes to the original, and arbitrary bytes to no more
// than the limit.
func FuzzDeflateAndZstd(f *testing.F) {
	f.Add([]byte("some text"), []byte("rest"))
	f.Add([]byte{}, []byte("\x28\xb5\x2f\xfd\x04\x00"))
	f.Fuzz(func(t *testing.T, text, tail []byte) {
		codings := map[string][]func(testing.TB, string) string{
			"deflate": {deflated, zlibbed}, "zstd": {zstded},
		}
		for coding, encoders := range codings {
			for _, encode := range encoders {
				raw := encode(t, string(text))
				body, cut := fetch.Decode([]byte(raw), coding, fetch.Options{MaxRatio: -1})
				if cut != fetch.Whole || !bytes.Equal(body, text) {
					t.Errorf("%s of %q: %q, %v", coding, text, body, cut)
				}
				raw = raw[:len(raw)/2] + string(tail)
				if body, _ = fetch.Decode([]byte(raw), coding, fetch.Options{MaxBody: 1000}); len(body) > 1000 {
					t.Errorf("%s: %q: %d bytes", coding, raw, len(body))
				}
			}
		}
	})
}
