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

// TestBytesSurvive encodes what every byte beyond ASCII decodes to: a page in UTF-8 that declares
// another encoding gets the queries that it meant.
func TestBytesSurvive(t *testing.T) {
	for name, undefined := range map[string]string{ // of the Encoding Standard's indexes
		"windows-1250": "", "windows-1251": "", "windows-1252": "", "windows-1254": "", "windows-1256": "", "iso-8859-2": "",
		"iso-8859-15": "", "koi8-r": "", "koi8-u": "", "ibm866": "", "macintosh": "", "x-mac-cyrillic": "", "windows-1253": "\xaa\xd2\xff",
		"windows-1255": "\xd9\xda\xdb\xdc\xdd\xde\xdf\xfb\xfc\xff", "windows-1257": "\xa1\xa5", "windows-1258": "",
		"windows-874": "\xdb\xdc\xdd\xde\xfc\xfd\xfe\xff", "iso-8859-8": "\xa1" + iota8(0xbf, 0xde) + "\xfb\xfc\xff",
		"iso-8859-8-i": "\xa1" + iota8(0xbf, 0xde) + "\xfb\xfc\xff",
	} {
		c, ok := Named(name)
		require.True(t, ok, name)
		for b := 0x80; b <= 0xff; b++ {
			raw := []byte{byte(b)}
			text := c.Decode(nil, raw)
			if bytes.Contains([]byte(undefined), raw) {
				require.Equal(t, "\uFFFD", string(text), "%s: %x", name, b)
				continue
			}
			require.Equal(t, raw, c.Encoder()(nil, string(text)), "%s: %x", name, b)
		}
	}
}

// iota8 returns all bytes from first to last.
func iota8(first, last byte) string {
	var b []byte
	for ; first <= last; first++ {
		b = append(b, first)
	}
	return string(b)
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
