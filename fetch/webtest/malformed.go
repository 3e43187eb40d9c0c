package webtest

import (
	"net/http"
	"strings"
)

// brokenPages are bodies that no validator accepts. A link in one leads to "/", so that
// reachability never depends on a parser's opinion.
var brokenPages = []string{
	"",
	"<",
	"plain text, <b><i>crossed</b></i> tags and & bare ampersands &; &#xFFFFFFFF; &nosuch;",
	"<a href=/><a href=\"/\"><a href='/'>nested, never closed",
	"<a href=\"/>the quote is never closed",
	"<a href=\"/\" href=\"/ghost/second\" =\"x\" \"=/>doubled and stray attributes</a>",
	"<!-- never closed <a href=\"/ghost/comment\">",
	"<!--><a href=\"/\">after a comment of four dashes less two</a>",
	"<script>never closed <a href=\"/ghost/script\">",
	"<title>never closed <a href=\"/ghost/title\">",
	"<textarea><a href=\"/ghost/textarea\"></textarea><a\x00 hr\x00ef=\"/\">NUL bytes</a>",
	"<a\nhref\n=\n\"\n/\n\"\n>line breaks everywhere</a\n>",
	"</a></html><html><a href=/>after the end</a></body></body>",
	"\xff\xfe\x80\xc0\xaf<a href=\"/\">\xed\xa0\x80 invalid UTF-8</a>",
	"<table><a href=\"/\"><tr><form><table><form></a>",
	"<![CDATA[<a href=\"/\">]]><?xml version=\"1.0\"?><a href=\"/\">sections</a>",
	strings.Repeat("<div>", 20000) + "<a href=\"/\">deep</a>",
	"<p " + strings.Repeat("a=b ", 50000) + "><a href=\"/\">attributes</a>",
	"<a href=\"/" + strings.Repeat("?", 100000) + "\" hre",
}

func (x *exchange) broken(rest string) int {
	body, ok := numberedPage(brokenPages, rest)
	if !ok {
		return x.fail(http.StatusNotFound)
	}
	return x.send(typeHTML, []byte(body))
}

// charsetPage is a page whose bytes and labels are difficult. Its text is "café" or "東京" in the
// charset that a browser selects, or it cannot be decoded.
type charsetPage struct {
	contentType string // "" means no header at all
	body        string
}

var charsetPages = []charsetPage{
	// The header alone, as it should be.
	{"text/html; charset=windows-1252", "<title>caf\xe9</title>"},
	{"text/html; charset=Shift_JIS", "<title>\x93\x8c\x8b\x9e</title>"},
	{"text/html; charset=\"EUC-JP\"", "<title>\xc5\xec\xb5\xfe</title>"},
	// The page alone.
	{"text/html", "<meta charset=euc-jp><title>\xc5\xec\xb5\xfe</title>"},
	{"text/html", "<meta http-equiv=content-type content='text/html;charset=sjis'>" +
		"<title>\x93\x8c\x8b\x9e</title>"},
	{"", "<!doctype html><meta charset=\"utf-8\"><title>caf\u00e9</title>"},
	// No label: windows-1252 by default, UTF-8 by detection.
	{"text/html", "<title>caf\xe9</title>"},
	{"text/html", "<title>caf\u00e9</title>"},
	// Byte order marks win over labels.
	{"text/html; charset=windows-1252", "\xef\xbb\xbf<title>caf\u00e9</title>"},
	{"text/html; charset=utf-8", "\xff\xfe" + utf16le("<title>caf\u00e9</title>")},
	// Wrong labels: declared UTF-8, actually windows-1252, and the other way round.
	{"text/html; charset=utf-8", "<title>caf\xe9</title>"},
	{"text/html; charset=iso-8859-1", "<title>caf\u00e9</title>"},
	// Header and page disagree; the header wins.
	{"text/html; charset=utf-8", "<meta charset=shift_jis><title>caf\u00e9</title>"},
	// Unknown labels, and missing labels.
	{"text/html; charset=klingon", "<title>caf\u00e9</title>"},
	{"text/html; charset=", "<title>caf\u00e9</title>"},
	{"text/html; charset=utf-8; charset=utf-16", "<title>caf\u00e9</title>"},
	{"TEXT/HTML;CHARSET=UTF8", "<title>caf\u00e9</title>"},
	{"text/plain; charset=utf-7", "+ADw-title+AD4-caf+AOk-"},
	// Wrong types.
	{"application/octet-stream", "<title>caf\u00e9</title>"},
	{"image/png", "<!doctype html><title>caf\u00e9</title>"},
	{"text/html", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"},
	{"nonsense", "<title>caf\u00e9</title>"},
}

// utf16le encodes text in the one charset here in which no source file can be written.
func utf16le(s string) string {
	var b strings.Builder
	for _, r := range s { // all of them in the basic plane
		b.WriteByte(byte(r))
		b.WriteByte(byte(r >> 8))
	}
	return b.String()
}

func (x *exchange) charset(rest string) int {
	c, ok := numberedPage(charsetPages, rest)
	if !ok {
		return x.fail(http.StatusNotFound)
	}
	if c.contentType == "" {
		return x.send(nil, []byte(c.body)) // a nil value keeps net/http from guessing one
	}
	return x.send([]string{c.contentType}, []byte(c.body))
}
