package content_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/internal/content"
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
	r, err := content.Decode(bytes.NewReader(body), codings, limit)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
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
			require.ErrorIs(t, err, content.ErrCoding)
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
