package page_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spinneret-go/spinneret/fetch/page"
	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/htmlindex"
)

// written returns text in an encoding.
func written(t testing.TB, text, encoding string) string {
	t.Helper()
	e, err := htmlindex.Get(encoding)
	require.NoError(t, err)
	out, err := e.NewEncoder().String(text)
	require.NoError(t, err, "%s in %s", text, encoding)
	return out
}

// TestLinksInEveryEncoding checks how the encoding of a page is found, and how paths, queries and
// texts in it are converted.
func TestLinksInEveryEncoding(t *testing.T) {
	tests := []struct {
		name, contentType, encoding, before string // before the link
		link, want                          string
	}{
		{"Latin-1", "text/html; charset=iso-8859-1", "windows-1252", "", "/café.html?é", "/caf%C3%A9.html?%E9"},
		{"nothing declared", "text/html", "windows-1252", "", "/café.html", "/caf%C3%A9.html"},
		{"no Content-Type", "", "windows-1252", "", "/café.html?€", "/caf%C3%A9.html?%80"},
		{"Cyrillic by the header", "text/html;charset=windows-1251", "windows-1251", "", "/п?q=п", "/%D0%BF?q=%EF"},
		{"in quotes", `text/html; a="b"; Charset="KOI8-R"`, "koi8-r", "", "/п?п", "/%D0%BF?%D0"},
		{"by a meta element", "text/html", "windows-1251", "<meta charset=cp1251>", "/п?п", "/%D0%BF?%EF"},
		{"by a pragma", "text/html", "koi8-r",
			`<META http-equiv="Content-Type" content="text/html; charset=koi8-r">`, "/п?п", "/%D0%BF?%D0"},
		{"the header wins", "text/html; charset=koi8-r", "koi8-r", "<meta charset=utf-8>", "/п", "/%D0%BF"},
		{"unknown labels are ignored", "text/html; charset=klingon", "koi8-r", "<meta charset=koi8-r>",
			"/п", "/%D0%BF"},
		{"by an XML declaration", "text/html", "windows-1251", "<?xml version='1.0' encoding='windows-1251'?>",
			"/п?п", "/%D0%BF?%EF"},
		{"a meta element wins", "text/html", "windows-1251",
			"<?xml version='1.0' encoding='koi8-r'?><meta charset=windows-1251>", "/п", "/%D0%BF"},
		{"XHTML", "application/xhtml+xml", "windows-1251",
			"<?xml version='1.0' encoding='windows-1251'?><meta charset=koi8-r><script src=s />", "/п?п", "/%D0%BF?%EF"},
		{"Shift_JIS", "text/html; charset=Shift_JIS", "shift_jis", "", "/表示/ソース.html?能=ソ",
			"/%E8%A1%A8%E7%A4%BA/%E3%82%BD%E3%83%BC%E3%82%B9.html?%94\\=%83\\"},
		{"Shift_JIS by meta", "text/html", "shift_jis", "<meta charset=x-sjis>", "/表?表", "/%E8%A1%A8?%95\\"},
		{"EUC-JP", "text/html", "euc-jp", "<meta charset=euc-jp>", "/猫?猫", "/%E7%8C%AB?%C7%AD"},
		{"ISO-2022-JP", "text/html", "iso-2022-jp", "<meta charset=iso-2022-jp>", "/猫?a=猫&b",
			"/%E7%8C%AB?a=%E7%8C%AB&b"},
		{"Big5", "text/html; charset=big5", "big5", "", "/許功蓋?許",
			"/%E8%A8%B1%E5%8A%9F%E8%93%8B?%B3\\"},
		{"GBK", "text/html; charset=gb2312", "gbk", "", "/国?国", "/%E5%9B%BD?%B9%FA"},
		{"EUC-KR", "text/html; charset=euc-kr", "euc-kr", "", "/한?한", "/%ED%95%9C?%C7%D1"},
		{"UTF-16 with a BOM", "text/html", "utf-16le", "\uFEFF", "/п?п", "/%D0%BF?%D0%BF"},
		{"UTF-16, big-endian", "text/html", "utf-16be", "\uFEFF", "/п?п", "/%D0%BF?%D0%BF"},
		{"UTF-16 by the header", "text/html; charset=utf-16le", "utf-16le", "", "/п?п", "/%D0%BF?%D0%BF"},
		{"UTF-16 by an XML declaration", "text/html", "utf-16be", "<?xml version='1.0'?>", "/п", "/%D0%BF"},
		{"UTF-16 in ASCII is UTF-8", "text/html", "utf-8", "<meta charset=utf-16>", "/п?п", "/%D0%BF?%D0%BF"},
		{"a BOM wins", "text/html; charset=koi8-r", "utf-8", "\uFEFF", "/п?п", "/%D0%BF?%D0%BF"},
		{"undeclared UTF-8", "text/html", "utf-8", "", "/п?п", "/%D0%BF?%D0%BF"},
		{"a character that the encoding lacks", "text/html; charset=koi8-r", "koi8-r", "", "?&#8364;п",
			"/dir/page.html?%26%238364%3B%D0"},
		{"a reference alone", "text/html; charset=koi8-r", "koi8-r", "", "?&#x43f;", "/dir/page.html?%D0"},
		{"a reference alone, by meta", "text/html", "koi8-r", "<meta charset=koi8-r>", "?&#x43f;", "/dir/page.html?%D0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := written(t, tt.before+"<p>text</p><a title='>' href='"+tt.link+"'>x</a>", tt.encoding)
			var got []string
			for l, err := range page.Links([]byte(body), pageURL, tt.contentType) {
				require.NoError(t, err)
				if l.Kind == page.Anchor {
					got = append(got, strings.TrimPrefix(l.URL, "http://a.test"))
				}
			}
			require.Equal(t, []string{tt.want}, got, "%q", body)
			// The base element is a link as well.
			body = written(t, tt.before+"<base href='"+tt.link+"'><img src=''><a href=''>", tt.encoding)
			got = nil
			for l := range page.Links([]byte(body), pageURL, tt.contentType) {
				if l.Kind == page.Anchor {
					got = append(got, strings.TrimPrefix(l.URL, "http://a.test"))
				}
			}
			require.Equal(t, []string{tt.want}, got, "%q", body)
		})
	}
}

// The pages have the first sentences of a novel of 1905, in all encodings of Japanese pages. Texts,
// titles and directives are returned in UTF-8.
func TestJapanesePages(t *testing.T) {
	const novel = `<title>吾輩は猫である</title><meta name=robots content="noindex, 表示">
		<p>吾輩は猫である。名前はまだ無い。<a href="/夏目漱石/猫.html">どこで生れたかとんと見当がつかぬ。</a>
		<img alt="ソ" src="能.png" srcset="十.png 2x"><p>何でも薄暗いじめじめした所でニャーニャー泣いていた事だけは記憶している。</p>`
	for _, encoding := range []string{"utf-8", "shift_jis", "euc-jp", "iso-2022-jp", "utf-16le", "utf-16be", "gb18030"} {
		for _, declared := range []string{"text/html; charset=" + encoding, "text/html"} {
			head := ""
			if declared == "text/html" {
				if head = "<meta charset=" + encoding + ">"; strings.HasPrefix(encoding, "utf-16") {
					head = "\uFEFF"
				}
			}
			var got []string
			opts := page.Options{Meta: true, Text: func(piece []byte) {
				if len(bytes.TrimSpace(piece)) > 0 {
					got = append(got, string(piece))
				}
			}}
			body := []byte(written(t, head+novel, encoding))
			for l, err := range page.Scan(body, "http://a.test/", declared, opts) {
				require.NoError(t, err)
				got = append(got, l.URL+l.Text)
			}
			require.Equal(t, []string{"吾輩は猫である", "noindex, 表示", "吾輩は猫である。名前はまだ無い。",
				"http://a.test/%E5%A4%8F%E7%9B%AE%E6%BC%B1%E7%9F%B3/%E7%8C%AB.html",
				"どこで生れたかとんと見当がつかぬ。", "http://a.test/%E8%83%BD.png", "http://a.test/%E5%8D%81.png",
				"何でも薄暗いじめじめした所でニャーニャー泣いていた事だけは記憶している。"}, got,
				"%s, %s", encoding, declared)
			text, name := page.ToUTF8(body, declared)
			require.Equal(t, strings.TrimPrefix(head, "\uFEFF")+novel, string(text))
			require.Equal(t, encoding, name)
		}
	}
}

func TestStylesInEveryEncoding(t *testing.T) {
	for _, tt := range []struct{ contentType, css string }{
		{"text/css; charset=shift_jis", "a { b: url(\x94\x5c.png) }"},
		{"text/css", "@charset \"shift_jis\"; a { b: url('\x94\x5c.png') }"},
		{"", "\xef\xbb\xbfa { b: url(能.png) }"},
		{"", "a { b: url(能.png) }"},
		{"text/css; charset=utf-16le", written(t, "a { b: url(能.png) }", "utf-16le")},
	} {
		var got []string
		for l, err := range page.Styles([]byte(tt.css), "http://a.test/", tt.contentType) {
			require.NoError(t, err)
			got = append(got, l.URL)
		}
		require.Equal(t, []string{"http://a.test/%E8%83%BD.png"}, got, "%q", tt.css)
	}
	// Style elements are converted as well.
	body := "<meta charset=shift_jis><style>a { b: url(\x94\x5c.png) }</style>"
	for l, err := range page.Scan([]byte(body), "http://a.test/", "", page.Options{Styles: true}) {
		require.NoError(t, err)
		require.Equal(t, "http://a.test/%E8%83%BD.png", l.URL)
	}
}

// These are the cases of web-platform-tests for "percent-encode after encoding".
func TestQueriesOfWebPlatformTests(t *testing.T) {
	data := cmp.Or(os.Getenv("SPINNERET_DATA"), filepath.Join("..", "shared", "data"))
	if !filepath.IsAbs(data) {
		data = filepath.Join("..", "..", data)
	}
	text, err := os.ReadFile(filepath.Join(data, "suites", "wpt-url", "percent-encoding.json"))
	if err != nil {
		t.Skip("no web-platform-tests: set SPINNERET_DATA to the data directory")
	}
	var cases []json.RawMessage
	require.NoError(t, json.Unmarshal(text, &cases))
	done := 0
	for _, raw := range cases {
		var tt struct {
			Input  string
			Output map[string]string
		}
		if json.Unmarshal(raw, &tt) != nil {
			continue // a comment
		}
		for encoding, want := range tt.Output {
			if encoding == "iso-2022-jp" {
				want = tt.Output["utf-8"]
			}
			var ref strings.Builder
			for _, r := range tt.Input {
				fmt.Fprintf(&ref, "&#%d;", r)
			}
			body := "<a href='?" + ref.String() + "'>"
			if tt.Input == "\x0eA" {
				body = "<a href='?\x0eA'>"
			}
			for l, err := range page.Links([]byte(body), "http://a.test/", "text/html; charset="+encoding) {
				require.NoError(t, err)
				require.Equal(t, "http://a.test/?"+want, l.URL, "%q in %s", tt.Input, encoding)
				done++
			}
		}
	}
	require.Greater(t, done, 15)
}

// Some encodings have different tables for decoding and encoding.
func TestQueriesInEncodingsWithTwoTables(t *testing.T) {
	for _, tt := range []struct{ encoding, query, want string }{
		{"euc-jp", "¥‾−á", "\\~%A1%DD%26%23225%3B"},
		{"shift_jis", "¥‾−ｱ", "\\~%81|%B1"},
		{"big5", "á中", "%26%23225%3B%A4%A4"},
		{"gbk", "€†", "%80%26%238224%3B"},
		{"x-user-defined", "é", "%26%23233%3B"},
		{"iso-2022-kr", "é", "%C3%A9"},
		{"utf-16", "é", "%C3%A9"},
	} {
		contentType := "text/html; charset=" + tt.encoding
		body := []byte("<a href='?" + refs(tt.query) + "'>")
		if tt.encoding == "utf-16" {
			body = []byte(written(t, string(body), "utf-16le"))
		}
		var got []string
		for l, err := range page.Links(body, "http://a.test/", contentType) {
			require.NoError(t, err)
			got = append(got, strings.TrimPrefix(l.URL, "http://a.test/?"))
		}
		if tt.encoding == "iso-2022-kr" {
			require.Empty(t, got, "browsers show one replacement character")
			continue
		}
		require.Equal(t, []string{tt.want}, got, tt.encoding)
	}
}

// Of an encoding that nobody reads, browsers show one character, however its name is written.
func TestReplacementInCapitals(t *testing.T) {
	for _, label := range []string{"replacement", "REPLACEMENT", "ISO-2022-KR", "HZ-gb-2312"} {
		body := []byte("<meta charset=" + label + "><a href=x>")
		text, name := page.ToUTF8(body, "text/html")
		require.Equal(t, []string{"\uFFFD", "replacement"}, []string{string(text), name}, label)
		for l := range page.Links(body, pageURL, "text/html") {
			t.Errorf("%s: %+v", label, l)
		}
	}
}

func refs(text string) string {
	var b strings.Builder
	for _, r := range text {
		fmt.Fprintf(&b, "&#%d;", r)
	}
	return b.String()
}

// FuzzLinksInLegacyEncodings checks that a page in its original encoding has the same links as the
// page in UTF-8.
func FuzzLinksInLegacyEncodings(f *testing.F) {
	encodings := []string{"shift_jis", "euc-jp", "iso-2022-jp", "gbk", "gb18030", "big5", "euc-kr",
		"windows-1251", "koi8-r", "utf-8", "utf-16le", "x-user-defined"}
	f.Add([]byte("<a href=/\x83\x5c><p title='\x81'><a href=\"\x94\x5c\x22>&eacute;\x81<a href=x>"), uint8(0))
	f.Add([]byte("<title>\x1b$B<a href=no>\x1b(B</title><a href=/\x1b$BG-\x1b(B>"), uint8(2))
	f.Add([]byte("<a href=\x81\x30\x81\x30><img srcset='\x81\x30, \x81<x 2x'>"), uint8(4))
	f.Fuzz(func(t *testing.T, body []byte, n uint8) {
		encoding := encodings[int(n)%len(encodings)]
		text, _ := page.ToUTF8(body, "text/html; charset="+encoding)
		got, gotErr := withoutQueries(page.Links(body, pageURL, "text/html; charset="+encoding))
		want, wantErr := withoutQueries(page.Links(text, pageURL, inUTF8))
		if fmt.Sprint(got, gotErr) != fmt.Sprint(want, wantErr) {
			t.Errorf("%s %q:\n%q, %v\nin UTF-8:\n%q, %v", encoding, body, got, gotErr, want, wantErr)
		}
	})
}

func withoutQueries(links func(func(page.Link, error) bool)) (found []string, err error) {
	for l, err := range links {
		if err != nil {
			return found, err
		}
		l.URL, _, _ = strings.Cut(l.URL, "?")
		found = append(found, show(l))
	}
	return found, nil
}
