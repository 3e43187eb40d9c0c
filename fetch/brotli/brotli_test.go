package brotli_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/spinneret-go/spinneret/fetch"
	br "github.com/spinneret-go/spinneret/fetch/brotli"
	"github.com/spinneret-go/spinneret/internal/memnet"
	"github.com/stretchr/testify/require"
)

// packed returns text, compressed.
func packed(t testing.TB, text string) string { return packedWithin(t, text, 0) }

// packedWithin is packed for a window of 2^bits bytes; 0 leaves it to the encoder.
func packedWithin(t testing.TB, text string, bits int) string {
	var b bytes.Buffer
	w := brotli.NewWriterOptions(&b, brotli.WriterOptions{Quality: 5, LGWin: bits})
	_, err := io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

// noise returns text that does not compress.
func noise(n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return string(b)
}

// answers returns a client that receives the given responses in turn.
func answers(t testing.TB, opts fetch.Options, answers ...string) *fetch.Client {
	network := memnet.New()
	l, err := network.Listen("a.test")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for _, answer := range answers {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			br := bufio.NewReader(conn)
			for line := ""; line != "\r\n"; {
				if line, err = br.ReadString('\n'); err != nil {
					break
				}
			}
			_, _ = io.WriteString(conn, answer)
			conn.Close()
		}
	}()
	opts.Reach = fetch.Loopback
	opts.Brotli = br.New
	opts.Resolve = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	opts.Dial = func(ctx context.Context, proto, _ string) (net.Conn, error) {
		return network.Dial(ctx, proto, "a.test")
	}
	c, err := fetch.New(opts)
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// answer is a response with body in the coding and a Content-Length.
func answer(body string, promised int) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Encoding: br\r\n"+
		"Content-Length: %d\r\n\r\n%s", promised, body)
}

func TestBodies(t *testing.T) {
	text := strings.Repeat("to be or not to be, ", 1000)
	plain := noise(30_000)
	z := packed(t, text)
	zeros := strings.Repeat("\x00", 5_000_000)
	bomb := packed(t, zeros) // about 20 bytes
	tests := []struct {
		name, raw string
		opts      fetch.Options
		want      string
		cut       fetch.Kind
	}{
		{"a page", z, fetch.Options{}, text, fetch.Whole},
		{"a page that grows", packed(t, plain), fetch.Options{}, plain, fetch.Whole},
		{"an empty body", "", fetch.Options{}, "", fetch.Whole},
		{"an empty page", packed(t, ""), fetch.Options{}, "", fetch.Whole},
		{"a page with a window of 16 MiB", packedWithin(t, text, 24), fetch.Options{}, text,
			fetch.Whole},
		{"bytes after the end", z + "\x00\x00padding", fetch.Options{}, text, fetch.Whole},
		{"more than a buffer after the end", z + plain + plain, fetch.Options{}, text, fetch.Whole},
		{"a large window, which RFC 7932 lacks", "\x11" + z, fetch.Options{}, "",
			fetch.CutCoding},
		{"not brotli at all", "<!doctype html>", fetch.Options{}, "", fetch.CutCoding},
		{"only the first byte", z[:1], fetch.Options{}, "", fetch.CutCoding},
		{"exactly MaxBody decoded", z, fetch.Options{MaxBody: int64(len(text))}, text, fetch.Whole},
		{"one more than MaxBody decoded", z, fetch.Options{MaxBody: int64(len(text)) - 1},
			text[:len(text)-1], fetch.CutLength},
		{"no limits", bomb, fetch.Options{MaxBody: -1, MaxRatio: -1}, zeros, fetch.Whole},
		{"a bomb", bomb, fetch.Options{}, zeros[:64<<10+100*len(bomb)], fetch.CutRatio},
		{"a bomb that exceeds MaxBody first", bomb, fetch.Options{MaxBody: 60_000}, zeros[:60_000],
			fetch.CutLength},
		{"a bomb with another ratio", bomb, fetch.Options{MaxRatio: 3},
			zeros[:64<<10+3*len(bomb)], fetch.CutRatio},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := answers(t, tt.opts, answer(tt.raw, len(tt.raw)))
			r, err := c.Get(t.Context(), "http://a.test/")
			require.NoError(t, err)
			require.Equal(t, tt.cut, r.Truncated)
			// require.Equal would print megabytes.
			require.Len(t, r.Body, len(tt.want))
			require.True(t, tt.want == string(r.Body))
			require.True(t, tt.raw == string(r.Raw), "Raw is still encoded")
			require.Contains(t, string(r.RequestHead), "Accept-Encoding: gzip, zstd, deflate, br\r\n")
		})
	}
}

// A body that the server cuts off at any point is reported as truncated, with the part of the page
// that arrived.
func TestTruncatedBodies(t *testing.T) {
	text := noise(2000) + strings.Repeat("to be or not to be, ", 100) + noise(2000)
	z := packed(t, text)
	for at := 0; at < len(z); at += 97 {
		c := answers(t, fetch.Options{}, answer(z[:at], len(z)), answer(z[:at], at))
		r, err := c.Get(t.Context(), "http://a.test/")
		require.NoError(t, err)
		require.Equal(t, fetch.CutDisconnect, r.RawCut)
		require.Equal(t, fetch.CutDisconnect, r.Truncated)
		require.True(t, strings.HasPrefix(text, string(r.Body)), "cut at %d", at)

		// The same bytes, but the Content-Length declares them complete.
		r, err = c.Get(t.Context(), "http://a.test/")
		require.NoError(t, err)
		require.Equal(t, fetch.Whole, r.RawCut)
		require.True(t, strings.HasPrefix(text, string(r.Body)), "cut at %d", at)
		if at > 0 {
			require.Equal(t, fetch.CutCoding, r.Truncated)
		}
	}
}

// Decoders are reused, but no data of one page may appear in the next.
func TestReusedDecodersAreClean(t *testing.T) {
	one, three := packed(t, "one"), packedWithin(t, strings.Repeat("three", 10_000), 24)
	for range 3 {
		for _, tt := range []struct{ raw, want string }{
			{one, "one"}, {"broken", ""}, {three[:9], ""}, {three, strings.Repeat("three", 10_000)},
		} {
			d, err := br.New(strings.NewReader(tt.raw))
			require.NoError(t, err)
			got, err := io.ReadAll(d)
			require.NoError(t, d.Close())
			require.Equal(t, tt.want == "", err != nil)
			require.True(t, strings.HasPrefix(tt.want, string(got)))
			require.True(t, err != nil || string(got) == tt.want)
		}
	}
}

// greedy has heads of streams with a window of 2^24 and of 2^22 bytes. Their only block claims to
// be uncompressed and as long as the window: for a few bytes, the decoder allocates all of it.
var greedy = map[int]string{24: "\xcf\xff\xff\xff", 22: "\xcb\xff\xff\x9f"}

// held returns the amount of memory that the reader returned by makes keeps alive.
func held(makes func() io.Reader) int64 {
	var with, without runtime.MemStats
	runtime.GC()
	runtime.GC() // the second run frees what pools kept of earlier readers
	d := makes()
	runtime.GC()
	runtime.ReadMemStats(&with)
	runtime.KeepAlive(d)
	runtime.GC()
	runtime.ReadMemStats(&without)
	return int64(with.HeapAlloc) - int64(without.HeapAlloc)
}

func TestMemoryIsBounded(t *testing.T) {
	const tables = 4 << 20
	small, text := packed(t, "small"), noise(1000)
	after := func(streams ...string) int64 {
		return held(func() io.Reader {
			var d io.ReadCloser
			for _, raw := range streams {
				if d != nil {
					require.NoError(t, d.Close())
				}
				var err error
				d, err = br.New(strings.NewReader(raw))
				require.NoError(t, err)
				_, _ = io.Copy(io.Discard, d)
			}
			return d
		})
	}
	wide, narrow := after(greedy[24]+text), after(greedy[22]+text)
	require.Greater(t, wide, int64(16<<20), "the decoder allocates the claimed window")
	require.Less(t, wide, int64(16<<20+tables))
	require.Greater(t, narrow, int64(4<<20))
	require.Less(t, narrow, int64(4<<20+tables))
	require.Less(t, after(greedy[24]+text, small), int64(4<<20), "a wide window is freed")
}

// The law: a body decodes to the original, whatever follows it, and arbitrary bytes to no more than
// the limit.
func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("some text"), []byte("rest"), uint8(22))
	f.Add([]byte{}, []byte(greedy[24]), uint8(24))
	f.Fuzz(func(t *testing.T, text, tail []byte, bits uint8) {
		raw := packedWithin(t, string(text), 10+int(bits)%15)
		for _, rest := range []string{"", string(tail)} {
			d, err := br.New(strings.NewReader(raw + rest))
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(d)
			d.Close()
			if err != nil || !bytes.Equal(body, text) {
				t.Errorf("%q and %q: %q, %v", text, rest, body, err)
			}
		}
		for _, head := range []string{"", raw[:len(raw)/2]} {
			d, err := br.New(strings.NewReader(head + string(tail)))
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			// Half a stream decodes to part of its text; decoding what follows must terminate.
			if n, err := io.Copy(io.Discard, io.LimitReader(d, 1<<20)); n > 1<<20 {
				t.Errorf("%q: %d bytes, %v", head, n, err)
			}
		}
	})
}

// BenchmarkDecode compares with gzip, which servers send otherwise.
func BenchmarkDecode(b *testing.B) {
	page := strings.Repeat("<li><a href=/to/be>to be</a> or <b>not</b> to be, ", 100) + noise(1000)
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, err := io.WriteString(w, page)
	require.NoError(b, err)
	require.NoError(b, w.Close())
	unzip := new(gzip.Reader)
	for _, coding := range []struct {
		name, raw string
		open      func(r io.Reader) (io.ReadCloser, error)
	}{{"br", packed(b, page), br.New}, {"gzip", z.String(), func(r io.Reader) (io.ReadCloser, error) {
		return unzip, unzip.Reset(r)
	}}} {
		b.Run("coding="+coding.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(page)))
			raw, src := strings.NewReader(coding.raw), bufio.NewReader(nil)
			for b.Loop() {
				raw.Reset(coding.raw)
				src.Reset(raw)
				r, err := coding.open(src)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, r); err != nil {
					b.Fatal(err)
				}
				r.Close()
			}
			b.ReportMetric(float64(len(coding.raw)), "wire-B/page")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pages/s")
		})
	}
}
