package charset

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestMarked(t *testing.T) {
	for text, want := range map[string]string{
		"\xef\xbb\xbfx": "utf-8", "\xfe\xff\x00x": "utf-16be", "\xff\xfex\x00": "utf-16le",
	} {
		c, mark, ok := Marked([]byte(text))
		require.True(t, ok)
		require.Equal(t, want, c.String())
		require.Equal(t, "x", string(c.Decode(nil, []byte(text[mark:]))))
	}
	_, _, ok := Marked([]byte("x"))
	require.False(t, ok)
}

func TestLetters(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "abc": 0, "aé": 1, "éé\xc3": 2, "\xe9": 0, "\xe9a": -1, "é\xff": -1, "日本\xe6\x97": 2, "\ufffd": 1,
	} {
		require.Equal(t, want, Letters([]byte(text)), "%q", text)
	}
}

// FuzzDecode checks that a text in any encoding becomes UTF-8, and that a stream of it becomes the
// same, whatever its pieces are.
func FuzzDecode(f *testing.F) {
	f.Add("shift_jis", []byte("\x93\xfa\x96\x7b a"))
	f.Add("iso-2022-jp", []byte("\x1b$B<a>b\x1b(B"))
	f.Add("utf-16", []byte("a\x00b"))
	f.Add("gb18030", []byte("\x81\x30\x81\x30"))
	f.Fuzz(func(t *testing.T, label string, raw []byte) {
		c, ok := Named(label)
		if !ok || c == nil {
			return
		}
		text := c.Decode(nil, raw)
		if !utf8.Valid(text) {
			t.Fatalf("%s: %q becomes %q", label, raw, text)
		}
		streamed, err := io.ReadAll(c.NewReader(iotest.OneByteReader(bytes.NewReader(raw))))
		if err != nil || !bytes.Equal(streamed, text) {
			t.Errorf("%s: %q becomes %q, but %q in pieces, %v", label, raw, text, streamed, err)
		}
	})
}
