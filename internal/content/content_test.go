package content_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/content"
	"github.com/spinneret-go/spinneret/internal/content/br"
)

// encode applies one content coding.
func encode(t testing.TB, coding string, body []byte) []byte {
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch coding {
	case "gzip", "x-gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "raw deflate":
		w, err = flate.NewWriter(&b, 6)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		w, err = zstd.NewWriter(&b)
	default:
		return body
	}
	require.NoError(t, err)
	_, err = w.Write(body)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func decode(body []byte, codings string, limit int64) ([]byte, error) {
	list := content.Of([]string{codings})
	if list == "" {
		return body, nil
	}
	return io.ReadAll(content.NewReader(bytes.NewReader(body), list, content.Options{
		Brotli: br.Open, Max: limit, Ratio: 200, Free: 1 << 20, Lenient: true,
	}))
}

func TestDecode(t *testing.T) {
	text := []byte(strings.Repeat("some text ", 100))
	for _, coding := range []string{"", "identity", "gzip", "x-gzip", "deflate", "br", "zstd"} {
		got, err := decode(encode(t, coding, text), coding, 1<<20)
		require.NoError(t, err, coding)
		require.Equal(t, text, got, coding)
	}
	got, err := decode(encode(t, "raw deflate", text), "Deflate", 1<<20)
	require.NoError(t, err)
	require.Equal(t, text, got)
	got, err = decode(encode(t, "br", encode(t, "gzip", text)), "GZIP , br,", 1<<20)
	require.NoError(t, err)
	require.Equal(t, text, got)

	t.Run("already decoded", func(t *testing.T) {
		for _, coding := range []string{"gzip", "zstd"} {
			got, err := decode(text, coding, 1<<20)
			require.NoError(t, err)
			require.Equal(t, text, got)
		}
	})
	t.Run("empty", func(t *testing.T) {
		for _, coding := range []string{"gzip", "br", "deflate", "zstd"} {
			got, err := decode(nil, coding, 1<<20)
			require.NoError(t, err)
			require.Empty(t, got)
		}
	})
	t.Run("unknown", func(t *testing.T) {
		for _, coding := range []string{"compress", "gzip, gzip, gzip, gzip"} {
			_, err := decode(text, coding, 1<<20)
			require.ErrorIs(t, err, content.ErrUnknown)
		}
	})
}

func TestBounds(t *testing.T) {
	text := []byte(strings.Repeat("some text ", 100))
	zipped := encode(t, "gzip", text)
	got, err := decode(zipped, "gzip", int64(len(text)))
	require.NoError(t, err)
	require.Equal(t, text, got)
	got, err = decode(zipped, "gzip", int64(len(text))-1)
	require.ErrorIs(t, err, content.ErrTooLarge)
	require.Equal(t, text[:len(text)-1], got)

	zeros := make([]byte, 8<<20)
	for _, coding := range []string{"gzip", "br", "zstd"} {
		got, err := decode(encode(t, coding, zeros), coding, 1<<30)
		require.ErrorIs(t, err, content.ErrTooLarge, coding)
		require.Less(t, len(got), len(zeros)/2)
		_, err = decode(encode(t, coding, zeros[:1<<20]), coding, 1<<30)
		require.NoError(t, err, "1 MiB of zeros is accepted")
	}
	_, err = decode(encode(t, "gzip", encode(t, "gzip", zeros)), "gzip, gzip", 1<<30)
	require.ErrorIs(t, err, content.ErrTooLarge)
}

// FuzzDecode checks the bounds for any bytes, and that Decode inverts an encoder.
func FuzzDecode(f *testing.F) {
	codings := []string{"gzip", "deflate", "br", "zstd", "gzip, br", "identity"}
	f.Add([]byte("text"), byte(0))
	f.Add(encode(f, "zstd", []byte("text")), byte(3))
	f.Fuzz(func(t *testing.T, body []byte, choice byte) {
		coding := codings[int(choice)%len(codings)]
		const limit = 1 << 16
		got, _ := decode(body, coding, limit)
		require.LessOrEqual(t, len(got), limit)
		if strings.Contains(coding, ",") || len(body) > limit {
			return
		}
		got, err := decode(encode(t, coding, body), coding, limit)
		require.NoError(t, err)
		require.True(t, bytes.Equal(body, got))
	})
}

func TestOf(t *testing.T) {
	for name, tt := range map[string]struct {
		fields []string
		want   string
	}{
		"no field":              {nil, ""},
		"an empty field":        {[]string{""}, ""},
		"identity":              {[]string{"identity"}, ""},
		"gzip":                  {[]string{"GZip"}, "gzip"},
		"the old name of gzip":  {[]string{"x-gzip"}, "gzip"},
		"commas and spaces":     {[]string{" , gzip ,, "}, "gzip"},
		"another":               {[]string{"br"}, "br"},
		"two in one field":      {[]string{"gzip, br"}, "gzip,br"},
		"two in two fields":     {[]string{"gzip", "x-gzip"}, "gzip,gzip"},
		"identity adds nothing": {[]string{"identity", "gzip, identity"}, "gzip"},
	} {
		require.Equal(t, tt.want, content.Of(tt.fields), name)
	}
	fields := []string{"gzip"}
	require.Zero(t, testing.AllocsPerRun(100, func() { content.Of(fields) }))
}

// slow is a source whose Read waits until it is told to go on.
type slow struct {
	data    []byte
	reading chan struct{}
	proceed chan struct{}
}

func (s *slow) Read(p []byte) (int, error) {
	s.reading <- struct{}{}
	<-s.proceed
	n := copy(p, s.data)
	s.data = s.data[n:]
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// TestCloseDuringRead closes a body while another goroutine is inside the decoder. The decoder must
// not reach the next body before that goroutine has left it.
func TestCloseDuringRead(t *testing.T) {
	text := []byte(strings.Repeat("undisturbed ", 500))
	for _, coding := range []string{"gzip", "deflate", "zstd", "br"} {
		encoded := encode(t, coding, text)
		for range 20 {
			src := &slow{bytes.Repeat([]byte{0}, 10), make(chan struct{}), make(chan struct{})}
			src.data = append(encoded[:len(encoded)/2:len(encoded)/2], src.data...)
			r := content.NewReader(src, coding, content.Options{Brotli: br.Open})
			done := make(chan error)
			go func() {
				_, err := io.ReadAll(r)
				done <- err
			}()
			<-src.reading
			require.NoError(t, r.Close())
			others := make(chan []byte)
			for range 4 {
				go func() {
					got, _ := decode(encoded, coding, 1<<20)
					others <- got
				}()
			}
			close(src.proceed)
			go func() {
				for range src.reading { // what else is read of the closed body
				}
			}()
			require.Error(t, <-done)
			close(src.reading)
			for range 4 {
				require.Equal(t, string(text), string(<-others), coding)
			}
		}
	}
}

func TestAfterClose(t *testing.T) {
	r := content.NewReader(bytes.NewReader(encode(t, "gzip", []byte("text"))), "gzip", content.Options{})
	require.NoError(t, r.Close())
	_, err := r.Read(make([]byte, 1))
	require.ErrorIs(t, err, content.ErrClosed)
	r.Reset(bytes.NewReader(encode(t, "gzip", []byte("text"))), "gzip", content.Options{})
	got, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "text", string(got))
	_, err = io.ReadAll(content.NewReader(strings.NewReader("some longer text"), "gzip", content.Options{}))
	require.ErrorIs(t, err, gzip.ErrHeader, "the cause as the standard library names it")
}

// drip is a source that ends with an error, such as that of a broken connection.
type drip struct {
	data []byte
	err  error
}

func (d *drip) Read(p []byte) (int, error) {
	if len(d.data) == 0 {
		return 0, d.err
	}
	n := copy(p[:1], d.data)
	d.data = d.data[n:]
	return n, nil
}

// The bare stream of deflate has no checksum, so it is only its own end that shows that it is complete.
func TestACutIsNoEnd(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	text := make([]byte, 10_000)
	for i := range text {
		text[i] = "abcdefgh \n<>"[random.IntN(12)]
	}
	for _, encoder := range []string{"raw deflate", "deflate"} {
		data := encode(t, encoder, text)
		for cut := 2; cut < len(data); cut++ {
			_, err := io.ReadAll(content.NewReader(bytes.NewReader(data[:cut]), "deflate", content.Options{}))
			require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%s at %d of %d", encoder, cut, len(data))
		}
	}
}

// A connection that breaks where a coding may end is no end of the body.
func TestBrokenSource(t *testing.T) {
	text := []byte(strings.Repeat("some text ", 100))
	for _, coding := range []string{"gzip", "deflate", "br", "zstd"} {
		encoded := encode(t, coding, text)
		for _, codings := range []string{coding, "gzip, " + coding} {
			data := encoded
			if codings != coding {
				data = encode(t, coding, encode(t, "gzip", text))
			}
			for cut := range len(data) + 1 {
				r := content.NewReader(&drip{data[:cut], io.ErrUnexpectedEOF}, content.Of([]string{codings}),
					content.Options{Brotli: br.Open})
				_, err := io.ReadAll(r)
				require.Error(t, err, "%s at %d of %d", codings, cut, len(data))
			}
			got, err := io.ReadAll(content.NewReader(&drip{append(data, "padding"...), io.EOF},
				content.Of([]string{codings}), content.Options{Brotli: br.Open}))
			if coding != "zstd" { // which knows padding from frames
				require.NoError(t, err, codings)
				require.Equal(t, text, got)
			}
		}
	}
}

// Codings on top of each other multiply the work even if they decode to nothing.
func TestNestedBounds(t *testing.T) {
	empty := encode(t, "gzip", nil)
	inner := encode(t, "gzip", bytes.Repeat(empty, 1<<16))
	body := encode(t, "gzip", bytes.Repeat(inner, 100))
	for _, o := range []content.Options{{Max: 1 << 20}, {Ratio: 100}} {
		_, err := io.ReadAll(content.NewReader(bytes.NewReader(body), "gzip,gzip,gzip", o))
		require.ErrorIs(t, err, content.ErrTooLarge)
	}
}

// asked counts how often it was asked, and then says that it is enough.
type asked struct{ n, most int }

func (a *asked) Err() error {
	if a.n++; a.n > a.most {
		return io.ErrNoProgress
	}
	return nil
}

func TestUntil(t *testing.T) {
	empty := encode(t, "gzip", nil)
	body := encode(t, "gzip", bytes.Repeat(empty, 1<<16))
	until := &asked{most: 100}
	_, err := io.ReadAll(content.NewReader(bytes.NewReader(body), "gzip,gzip", content.Options{Until: until}))
	require.ErrorIs(t, err, io.ErrNoProgress)
	require.Equal(t, 101, until.n, "nothing is read after that")
}

// The error that ended a body in the middle of its coding is not taken for a fault of the coding, which
// decoders report instead when they skip what they do not need.
func TestUntilWithinASkippedFrame(t *testing.T) {
	body := append([]byte{0x50, 0x2a, 0x4d, 0x18, 0, 0, 1, 0}, make([]byte, 1<<16)...) // a frame to be skipped
	body = append(body, encode(t, "zstd", []byte("text"))...)
	for _, codings := range []string{"zstd", "gzip,zstd", "zstd,gzip"} {
		sent := body
		if codings == "zstd,gzip" {
			sent = encode(t, "gzip", body)
		}
		r := content.NewReader(iotest.OneByteReader(bytes.NewReader(sent)), codings, content.Options{Until: &asked{most: 20}})
		_, err := io.ReadAll(r)
		require.ErrorIs(t, err, io.ErrNoProgress, codings)
		r.Reset(bytes.NewReader([]byte("not zstd")), "zstd", content.Options{})
		_, err = io.ReadAll(r)
		require.Error(t, err)
		require.NotErrorIs(t, err, io.ErrNoProgress, "it was that of the body before")
	}
}

func TestOfLongLists(t *testing.T) {
	list := content.Of([]string{strings.Repeat("gzip,", 1<<20)})
	require.Equal(t, "gzip,gzip,gzip,gzip", list)
	require.False(t, new(content.Options).Known(list))
}

// tails are what servers send behind a page.
var tails = []string{"", "\n", "\r\n", "\r\n\r\n", "<!-- cached -->", "\x28\xb5\x2f", "\x00\x00\x00\x00\x00\x00\x00\x00\x00"}

func TestTails(t *testing.T) {
	page := bytes.Repeat([]byte("hello world "), 1000)
	for _, encoder := range []string{"gzip", "deflate", "raw deflate", "zstd", "br"} {
		for _, tail := range tails {
			raw := append(encode(t, encoder, page), tail...)
			r := content.NewReader(iotest.OneByteReader(bytes.NewReader(raw)), strings.TrimPrefix(encoder, "raw "), content.Options{Brotli: br.Open})
			got, err := io.ReadAll(r)
			require.NoError(t, err, "%s, %q", encoder, tail)
			require.True(t, bytes.Equal(page, got))
		}
	}
}

// Each kind of frame ends where the decoder says, and a frame that is cut anywhere is an error.
func TestFramesOfZstd(t *testing.T) {
	random := make([]byte, 300_000)
	_, err := io.ReadFull(rand.NewChaCha8([32]byte{}), random)
	require.NoError(t, err)
	for _, page := range [][]byte{{}, []byte("x"), random[:1000], random, bytes.Repeat([]byte("x"), 300_000), append(random[:100], make([]byte, 2000)...)} {
		for _, sum := range []bool{false, true} {
			for _, single := range []bool{false, true} {
				w, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(sum), zstd.WithSingleSegment(single), zstd.WithZeroFrames(true))
				require.NoError(t, err)
				frame := w.EncodeAll(page, nil)
				var b bytes.Buffer
				w.Reset(&b)
				_, err = w.Write(page)
				require.NoError(t, err)
				require.NoError(t, w.Close())
				frames := append(append(frame, "\x5a\x2a\x4d\x18\x03\x00\x00\x00abc"...), b.Bytes()...)
				for _, tail := range tails {
					got, err := io.ReadAll(content.NewReader(bytes.NewReader(append(bytes.Clone(frames), tail...)), "zstd", content.Options{}))
					require.NoError(t, err, "%q", tail)
					require.True(t, bytes.Equal(append(bytes.Clone(page), page...), got))
				}
				for _, n := range []int{4, 5, 6, 9, 12, len(frame) / 2, len(frame) - 1} {
					if n < len(frame) {
						_, err = io.ReadAll(content.NewReader(bytes.NewReader(frame[:n]), "zstd", content.Options{}))
						require.Error(t, err, "%d bytes of %d", n, len(frame))
					}
				}
			}
		}
	}
	_, err = io.ReadAll(content.NewReader(strings.NewReader("no zstd"), "zstd", content.Options{}))
	require.Error(t, err)
}

// closes calls a function when it is asked for the n'th time.
type closes struct {
	n int
	f func()
}

func (c *closes) Err() error {
	if c.n--; c.n == 0 {
		c.f()
	}
	return nil
}

// opened counts decoders.
type opened struct {
	io.Reader
	n *int
}

func (o opened) Close() error { *o.n--; return nil }

// A Close that comes when a Read has almost ended leaves no decoder to the garbage collector.
func TestCloseAtTheEndOfRead(t *testing.T) {
	for when := 1; when <= 3; when++ {
		open := 0
		var r *content.Reader
		until := &closes{when, func() {
			closed := make(chan error)
			go func() { closed <- r.Close() }() // in Read, its lock is held
			<-closed
		}}
		r = content.NewReader(bytes.NewReader(make([]byte, 100)), "br", content.Options{
			Until: until, Brotli: func(r io.Reader) (io.ReadCloser, error) { open++; return opened{r, &open}, nil },
		})
		var p [10]byte
		for until.n > 0 {
			_, _ = r.Read(p[:])
		}
		require.Zero(t, open, "call %d", when)
		_, err := r.Read(p[:])
		require.ErrorIs(t, err, content.ErrClosed)
	}
}

// A body says in advance what its decoder will take. The first frame does not speak for the others.
func TestWindowsAreKnown(t *testing.T) {
	frame := func(window int, more ...[]byte) []byte {
		var b bytes.Buffer
		w, err := zstd.NewWriter(&b, zstd.WithWindowSize(window))
		require.NoError(t, err)
		_, err = w.Write(bytes.Repeat([]byte("some text "), 50_000))
		require.NoError(t, err)
		require.NoError(t, w.Flush())
		require.NoError(t, w.Close())
		return append(b.Bytes(), bytes.Join(more, nil)...)
	}
	single := func(n int) []byte {
		w, err := zstd.NewWriter(nil)
		require.NoError(t, err)
		return w.EncodeAll(bytes.Repeat([]byte("x"), n), nil)
	}
	skippable := []byte("\x50\x2a\x4d\x18\x05\x00\x00\x00abcde")
	const largest = content.MaxWindow
	for name, tt := range map[string]struct {
		codings string
		body    []byte
		want    int64
	}{
		"one frame":           {"zstd", frame(1 << 20), 1 << 20},
		"the largest":         {"zstd", frame(largest), largest},
		"more than allowed":   {"zstd", []byte("\x28\xb5\x2f\xfd\x00\xff"), largest},
		"a fraction":          {"zstd", []byte("\x28\xb5\x2f\xfd\x00\x0b"), 2<<10 + 3*256},
		"several frames":      {"zstd", frame(64<<10, skippable, frame(4<<20), frame(128<<10)), 4 << 20},
		"behind a skippable":  {"zstd", append(skippable, frame(2<<20)...), 2 << 20},
		"a single segment":    {"zstd", single(1700), 1700},
		"a larger one":        {"zstd", single(200_000), 200_000},
		"cut in its header":   {"zstd", frame(1 << 20)[:5], 0},
		"not zstd":            {"zstd", []byte("<html>"), 0},
		"nothing":             {"zstd", nil, 0},
		"gzip":                {"gzip", frame(1 << 20), 0},
		"zstd in gzip":        {"zstd,gzip", nil, largest},
		"gzip in zstd":        {"gzip,zstd", frame(1 << 20), 1 << 20},
		"three times":         {"zstd,zstd,zstd", frame(1 << 20), 1<<20 + 2*largest},
		"a coding of its own": {"", frame(1 << 20), 0},
	} {
		require.Equal(t, tt.want, content.Window(tt.codings, tt.body), name)
		require.LessOrEqual(t, tt.want, content.Windows(tt.codings), name)
	}
}
