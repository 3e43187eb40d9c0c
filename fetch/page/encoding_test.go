package page_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spinneret-go/spinneret/fetch/page"
	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/htmlindex"
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
		{"undeclared and not UTF-8", "h\xe9", "text/html", "h\u00e9", "windows-1252"},
		{"UTF-8 far beyond a kilobyte", strings.Repeat("x", 5000) + "\u00e9", "",
			strings.Repeat("x", 5000) + "\u00e9", "utf-8"},
		{"undeclared UTF-8 with an invalid byte far down",
			"\u00e9" + strings.Repeat("x", 5000) + "\xff", "",
			"\u00e9" + strings.Repeat("x", 5000) + "\uFFFD", "utf-8"},
		{"a letter far down and not UTF-8", strings.Repeat("x", 5000) + "\u00e9\xff", "",
			strings.Repeat("x", 5000) + "\u00c3\u00a9\u00ff", "windows-1252"},
		{"one invalid byte far down", "\u00e9" + strings.Repeat("x", 5000) + "\xff",
			"text/html; charset=utf-8",
			"\u00e9" + strings.Repeat("x", 5000) + "\uFFFD", "utf-8"},
		{"a character is cut", strings.Repeat("x", 5000) + "\u00e9 \xc3", "",
			strings.Repeat("x", 5000) + "\u00e9 \uFFFD", "utf-8"},
		{"the field", "\xef\xf0\xe8", "text/html; charset=windows-1251", "при", "windows-1251"},
		{"a meta element", meta + "\xef\xf0\xe8", "text/html", meta + "при", "windows-1251"},
		{"the header wins", meta + "\xe9", "text/html; charset=iso-8859-1", meta + "\u00e9",
			"windows-1252"},
		{"a BOM wins", "\xef\xbb\xbf\u00e9", "text/html; charset=windows-1251", "\u00e9",
			"utf-8"},
		{"UTF-16", "\xff\xfeh\x00\xe9\x00", "text/html", "h\u00e9", "utf-16le"},
		{"Shift_JIS", "\x93\xfa\x96\x7b", "text/html; charset=Shift_JIS", "日本", "shift_jis"},
		{"EUC-KR", "\xc7\xd1", "text/html; charset=euc-kr", "한", "euc-kr"},
		{"an encoding with only ASCII bytes", "<meta charset=iso-2022-jp>\x1b$BF|K\\\x1b(B", "",
			"<meta charset=iso-2022-jp>日本", "iso-2022-jp"},
		{"an unknown name", "h\xe9", "text/html; charset=klingon", "h\u00e9", "windows-1252"},
		{"wrong bytes", "\x93", "text/html; charset=Shift_JIS", "\uFFFD", "shift_jis"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, name := page.ToUTF8([]byte(tt.body), tt.contentType)
			require.Equal(t, tt.want, string(got))
			require.Equal(t, tt.encoding, name)
		})
	}
}

// TestPrescan has a case for each step of the standard's "prescan a byte stream to determine its
// encoding", and of the algorithms that it uses, but for scripts.
func TestPrescan(t *testing.T) {
	far := strings.Repeat("x", 1000)
	for name, tt := range map[string]struct{ page, want string }{
		"a slash for a blank":              {`<meta/charset=koi8-r />`, "koi8-r"},
		"capitals":                         {`<MeTa CHARSET=KOI8-R>`, "koi8-r"},
		"blanks":                           {"<meta\ncharset\t=\f' koi8-r '>", "koi8-r"},
		"another element":                  {`<metas charset=koi8-r>`, "windows-1252"},
		"an end tag":                       {`</meta charset=koi8-r>`, "windows-1252"},
		"a comment":                        {`<!-- <meta charset=koi8-r> --><meta charset=koi8-u>`, "koi8-u"},
		"a comment that ends at once":      {`<!--><meta charset=koi8-r>`, "koi8-r"},
		"a comment that never ends":        {`<!-- <meta charset=koi8-r>`, "windows-1252"},
		"in an attribute":                  {`<p title="<meta charset=koi8-r>"><meta charset=koi8-u>`, "koi8-u"},
		"in an attribute of an end tag":    {`</p title='<meta charset=koi8-r>'><meta charset=koi8-u>`, "koi8-u"},
		"in a declaration":                 {`<!x "><meta charset=koi8-r>`, "koi8-r"},
		"in an instruction":                {`<?x <meta charset=koi8-r>`, "windows-1252"},
		"in a script":                      {`<script><meta charset=koi8-r></script><meta charset=koi8-u>`, "koi8-u"},
		"the first of two attributes":      {`<meta charset=koi8-r charset=koi8-u>`, "koi8-r"},
		"an unknown label":                 {`<meta charset=klingon><meta charset=koi8-r>`, "koi8-r"},
		"content without a pragma":         {`<meta content="text/html; charset=koi8-r">`, "windows-1252"},
		"another pragma":                   {`<meta http-equiv=refresh content="charset=koi8-r">`, "windows-1252"},
		"a pragma behind its content":      {`<meta content="charset=koi8-r" http-equiv=Content-Type>`, "koi8-r"},
		"content in quotes":                {`<meta http-equiv=content-type content='charset="koi8-r" x'>`, "koi8-r"},
		"content with an open quote":       {`<meta http-equiv=content-type content='charset="koi8-r'>`, "windows-1252"},
		"content with a word before":       {`<meta http-equiv=content-type content='charsets charset = koi8-r;x'>`, "koi8-r"},
		"charset counts more":              {`<meta http-equiv=content-type content=charset=koi8-r charset=koi8-u>`, "koi8-u"},
		"UTF-16 that can be read":          {`<meta charset=utf-16be>`, "utf-8"},
		"x-user-defined":                   {`<meta charset=x-user-defined>`, "windows-1252"},
		"no value":                         {`<meta charset>`, "windows-1252"},
		"cut off":                          {`<meta charset=koi8-r`, "windows-1252"},
		"just within the first kilobyte":   {far + `<meta charset=koi8-r>`, "koi8-r"},
		"just behind the first kilobyte":   {far + `    <meta charset=koi8-r>`, "windows-1252"},
		"a tag across the first kilobyte":  {far + `<meta charset='koi8-r--'>`, "windows-1252"},
		"XML":                              {`<?xml version="1.0" encoding="koi8-r"?>`, "koi8-r"},
		"XML with blanks":                  {"<?xml encoding\n=\t'koi8-r' ?>", "koi8-r"},
		"XML without quotes":               {"<?xml encoding=koi8-r?>", "windows-1252"},
		"XML with a blank in the label":    {"<?xml encoding=' koi8-r'?>", "windows-1252"},
		"XML that does not end":            {"<?xml encoding='koi8-r'", "windows-1252"},
		"XML that is not at the beginning": {" <?xml encoding='koi8-r'?>", "windows-1252"},
		"XML in UTF-16 that can be read":   {"<?xml encoding='utf-16'?>", "utf-8"},
	} {
		_, got := page.ToUTF8([]byte(tt.page+"\n\xe9"), "text/html")
		require.Equal(t, tt.want, got, "%s: %s", name, tt.page)
	}
	_, got := page.ToUTF8([]byte("<meta charset=koi8-r>\xe9"), "text/xml")
	require.Equal(t, "utf-8", got, "XML has no meta elements")
}

// The pages of web-platform-tests for encodings are part of golang.org/x/net.
func TestEncodingsOfWebPlatformTests(t *testing.T) {
	for _, tt := range []struct{ file, contentType, want string }{
		{"HTTP-charset.html", "text/html; charset=iso-8859-15", "iso-8859-15"},
		{"UTF-16LE-BOM.html", "", "utf-16le"},
		{"UTF-16BE-BOM.html", "", "utf-16be"},
		{"meta-content-attribute.html", "text/html", "iso-8859-15"},
		{"meta-charset-attribute.html", "text/html", "iso-8859-15"},
		{"HTTP-vs-UTF-8-BOM.html", "text/html; charset=iso-8859-15", "utf-8"},
		{"HTTP-vs-meta-content.html", "text/html; charset=iso-8859-15", "iso-8859-15"},
		{"HTTP-vs-meta-charset.html", "text/html; charset=iso-8859-15", "iso-8859-15"},
		{"UTF-8-BOM-vs-meta-content.html", "text/html", "utf-8"},
		{"UTF-8-BOM-vs-meta-charset.html", "text/html", "utf-8"},
		{"No-encoding-declaration.html", "text/html", "utf-8"},
	} {
		body, err := os.ReadFile(filepath.Join(netModule(t), "html", "charset", "testdata", tt.file))
		require.NoError(t, err)
		_, got := page.ToUTF8(body, tt.contentType)
		require.Equal(t, tt.want, got, tt.file)
	}
}

func TestUTF8IsNotCopied(t *testing.T) {
	body := []byte("caf\u00e9")
	got, _ := page.ToUTF8(body, "text/html; charset=utf-8")
	require.Same(t, &body[0], &got[0])
}

// TestPagesAreConvertedInThriceTheirSize: no character gets more than three times as long, also none that is invalid.
func TestPagesAreConvertedInThriceTheirSize(t *testing.T) {
	body := bytes.Repeat([]byte("\xe9"), 4<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, err := range page.Links(body, pageURL, "text/html; charset=iso-2022-jp") {
		require.NoError(t, err)
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(len(body))*31/10)
}

// FuzzToUTF8 checks that the result is valid UTF-8, and that converting it again does not change
// it.
func FuzzToUTF8(f *testing.F) {
	f.Add([]byte("\xff\xfeh\x00"), "text/html")
	f.Add([]byte("<meta charset=gbk>\x81\x30\x81\x30"), "")
	f.Add([]byte("\x1b$B"), "text/html; charset=iso-2022-jp")
	f.Add([]byte("\xe3\x81\xe3\xed\xa0\x80\xf0\x9f\x98z\xf4\x90\xc0\xe0\x9f"), "text/html; charset=utf-8")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		got, name := page.ToUTF8(body, contentType)
		if !utf8.Valid(got) {
			t.Errorf("ToUTF8(%q, %q) = %q, %s", body, contentType, got, name)
		}
		oracle, err := htmlindex.Get(name)
		want, _ := oracle.NewDecoder().Bytes(body)
		if err != nil || name == "utf-8" && strings.TrimPrefix(string(want), "\uFEFF") != string(got) {
			t.Errorf("ToUTF8(%q, %q) = %q, want %q", body, contentType, got, want)
		}
		again, _ := page.ToUTF8(got, "text/html; charset=utf-8")
		if strings.TrimPrefix(string(got), "\uFEFF") != string(again) {
			t.Errorf("ToUTF8(%q, %q) = %q, then %q", body, contentType, got, again)
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
				page.ToUTF8(body, "")
			}
		})
	}
}
