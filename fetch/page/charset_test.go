package page_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spinneret-go/spinneret/fetch/page"
	"github.com/stretchr/testify/require"
)

func TestToUTF8(t *testing.T) {
	const meta = `<meta charset=windows-1251>`
	tests := []struct {
		name, body, contentType string
		want, encoding          string
	}{
		{"nothing", "", "", "", "utf-8"},
		{"ASCII", "hello", "", "hello", "utf-8"},
		{"undeclared UTF-8", "h\u00e9", "text/html", "h\u00e9", "utf-8"},
		{"undeclared and no UTF-8", "h\xe9", "text/html", "h\u00e9", "windows-1252"},
		{"UTF-8 far behind a kilobyte", strings.Repeat("x", 5000) + "\u00e9", "",
			strings.Repeat("x", 5000) + "\u00e9", "utf-8"},
		{"undeclared UTF-8 with a wrong byte far behind",
			"\u00e9" + strings.Repeat("x", 5000) + "\xff", "",
			"\u00e9" + strings.Repeat("x", 5000) + "\uFFFD", "utf-8"},
		{"a letter far behind and no UTF-8", strings.Repeat("x", 5000) + "\u00e9\xff", "",
			strings.Repeat("x", 5000) + "\u00c3\u00a9\u00ff", "windows-1252"},
		{"one wrong byte far behind", "\u00e9" + strings.Repeat("x", 5000) + "\xff",
			"text/html; charset=utf-8",
			"\u00e9" + strings.Repeat("x", 5000) + "\uFFFD", "utf-8"},
		{"the field", "\xef\xf0\xe8", "text/html; charset=windows-1251", "при", "windows-1251"},
		{"a meta element", meta + "\xef\xf0\xe8", "text/html", meta + "при", "windows-1251"},
		{"the field counts more", meta + "\xe9", "text/html; charset=iso-8859-1", meta + "\u00e9",
			"windows-1252"},
		{"a mark counts most", "\xef\xbb\xbf\u00e9", "text/html; charset=windows-1251", "\u00e9",
			"utf-8"},
		{"UTF-16", "\xff\xfeh\x00\xe9\x00", "text/html", "h\u00e9", "utf-16le"},
		{"Shift_JIS", "\x93\xfa\x96\x7b", "text/html; charset=Shift_JIS", "日本", "shift_jis"},
		{"EUC-KR", "\xc7\xd1", "text/html; charset=euc-kr", "한", "euc-kr"},
		{"an encoding that is ASCII to the eye", "<meta charset=iso-2022-jp>\x1b$BF|K\\\x1b(B", "",
			"<meta charset=iso-2022-jp>日本", "iso-2022-jp"},
		{"an unknown name", "h\xe9", "text/html; charset=klingon", "h\u00e9", "windows-1252"},
		{"wrong bytes", "\x93", "text/html; charset=Shift_JIS", "\uFFFD", "shift_jis"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, name, err := page.ToUTF8([]byte(tt.body), tt.contentType)
			require.NoError(t, err)
			require.Equal(t, tt.want, string(got))
			require.Equal(t, tt.encoding, name)
		})
	}
}

func TestUTF8IsNotCopied(t *testing.T) {
	body := []byte("caf\u00e9")
	got, _, err := page.ToUTF8(body, "text/html; charset=utf-8")
	require.NoError(t, err)
	require.Same(t, &body[0], &got[0])
}

// The law: what comes out is UTF-8, and goes in and out again as it is.
func FuzzToUTF8(f *testing.F) {
	f.Add([]byte("\xff\xfeh\x00"), "text/html")
	f.Add([]byte("<meta charset=gbk>\x81\x30\x81\x30"), "")
	f.Add([]byte("\x1b$B"), "text/html; charset=iso-2022-jp")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		got, name, err := page.ToUTF8(body, contentType)
		if err != nil {
			return
		}
		if !utf8.Valid(got) {
			t.Errorf("ToUTF8(%q, %q) = %q, %s", body, contentType, got, name)
		}
		again, _, err := page.ToUTF8(got, "text/html; charset=utf-8")
		if err != nil || strings.TrimPrefix(string(got), "\uFEFF") != string(again) {
			t.Errorf("ToUTF8(%q, %q) = %q, then %q, %v", body, contentType, got, again, err)
		}
	})
}

func BenchmarkToUTF8(b *testing.B) {
	for _, text := range []string{"utf-8", "windows-1252"} {
		b.Run("encoding="+text, func(b *testing.B) {
			body := []byte(strings.Repeat("some words and an ", 1000) + map[string]string{
				"utf-8": "\u00e9", "windows-1252": "\xe9"}[text])
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if _, _, err := page.ToUTF8(body, ""); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
