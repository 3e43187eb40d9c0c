package archive

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var someTime = time.Date(2026, 11, 3, 4, 5, 6, 7_008_999, time.FixedZone("", 3600))

// page returns a valid capture.
func page(url, body string) Capture {
	return Capture{
		URL:     url,
		Time:    someTime,
		Addr:    netip.MustParseAddr("192.0.2.1"),
		Request: []byte("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"),
		Head:    []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"),
		Body:    []byte(body),
	}
}

func TestCheckRefuses(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Capture)
		want   string // in the error
	}{
		{"no URL", func(c *Capture) { c.URL = "" }, "not absolute"},
		{"a relative URL", func(c *Capture) { c.URL = "/a:b" }, "not absolute"},
		{"a URL that begins like a port", func(c *Capture) { c.URL = "80:a" }, "not absolute"},
		{"a URL in brackets", func(c *Capture) { c.URL = "<http://a.test/>" }, "not absolute"},
		{"CR LF in the URL", func(c *Capture) { c.URL = "http://a/\r\nWARC-Type: x" }, "control"},
		{"a bare CR in the URL", func(c *Capture) { c.URL = "http://a/\rb" }, "control"},
		{"a bare LF in the URL", func(c *Capture) { c.URL = "http://a/\nb" }, "control"},
		{"LF at the end of the URL", func(c *Capture) { c.URL = "http://a/\n" }, "control"},
		{"NUL in the URL", func(c *Capture) { c.URL = "http://a/\x00" }, "control"},
		{"DEL in the URL", func(c *Capture) { c.URL = "http://a/\x7f" }, "control"},
		{"NEL in the URL", func(c *Capture) { c.URL = "http://a/\u0085b" }, "control"},
		{"a line separator in the URL", func(c *Capture) { c.URL = "http://a/\u2028b" }, "space"},
		{"a space in the URL", func(c *Capture) { c.URL = "http://a/b c" }, "space"},
		{"invalid UTF-8 in the URL", func(c *Capture) { c.URL = "http://a/\xff" }, "UTF-8"},
		{"a URL over the limit",
			func(c *Capture) { c.URL = "http://a/" + strings.Repeat("x", maxURL) }, "too long"},
		{"no time", func(c *Capture) { c.Time = time.Time{} }, "Time"},
		{"a year of five digits",
			func(c *Capture) { c.Time = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, "Time"},
		{"a year before 1", func(c *Capture) { c.Time = time.Unix(-1e11, 0) }, "Time"},
		{"no head", func(c *Capture) { c.Head = nil }, "Head"},
		{"a head that is a page", func(c *Capture) { c.Head = []byte("<html>\r\n\r\n") }, "Head"},
		{"a head without blank line",
			func(c *Capture) { c.Head = []byte("HTTP/1.1 200 OK\r\nA: b\r\n") }, "Head"},
		{"a head with fields after the blank line",
			func(c *Capture) { c.Head = []byte("HTTP/1.1 200 OK\r\n\r\nA: b\r\n\r\n") }, "Head"},
		{"a head with two blank lines",
			func(c *Capture) { c.Head = []byte("HTTP/1.1 200 OK\r\n\r\n\r\n") }, "Head"},
		{"a request without blank line",
			func(c *Capture) { c.Request = []byte("GET / HTTP/1.1\r\n") }, "Request"},
		{"an invalid reason for truncation",
			func(c *Capture) { c.Truncated = "length\r\nA: b" }, "Truncated"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := page("http://a.test/", "x")
			tt.change(&c)
			err := c.check()
			require.ErrorIs(t, err, ErrInvalid)
			require.ErrorContains(t, err, tt.want)
			require.Less(t, len(err.Error()), 1000, "the error quotes a whole page")
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestCheckAccepts(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Capture)
	}{
		{"an ordinary page", func(*Capture) {}},
		{"no request, address, body",
			func(c *Capture) { *c = Capture{URL: c.URL, Time: c.Time, Head: c.Head} }},
		{"a URL of 64 KiB",
			func(c *Capture) { c.URL = "http://a/" + strings.Repeat("x", maxURL-9) }},
		{"a URL with non-ASCII characters", func(c *Capture) { c.URL = "http://ä.test/ö?ü=日本" }},
		{"a scheme other than http", func(c *Capture) { c.URL = "dns+x-1.0:a.test" }},
		{"a head with bare line feeds",
			func(c *Capture) { c.Head = []byte("HTTP/1.0 200\nA: b\n\n") }},
		{"a head without fields", func(c *Capture) { c.Head = []byte("HTTP/1.1 200 OK\r\n\r\n") }},
		{"a head of HTTP/2", func(c *Capture) { c.Head = []byte("HTTP/2 200\r\na: b\r\n\r\n") }},
		{"fields that are not ASCII",
			func(c *Capture) { c.Head = []byte("HTTP/1.1 200\r\n\xff\x00:\r\n\r\n") }},
		{"a request with a body",
			func(c *Capture) { c.Request = []byte("POST / HTTP/1.1\r\n\r\na=b") }},
		{"the year 1", func(c *Capture) { c.Time = time.Time{}.Add(1) }},
		{"the year 9999",
			func(c *Capture) { c.Time = time.Date(9999, 12, 31, 23, 0, 0, 0, time.UTC) }},
		{"a known reason for truncation", func(c *Capture) { c.Truncated = "disconnect" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := page("http://a.test/", "x")
			tt.change(&c)
			require.NoError(t, c.check())
		})
	}
}

func TestChunked(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	tests := []struct {
		name, request, head string
		want                bool
	}{
		{"chunked", "", ok + "Transfer-Encoding: chunked\r\n", true},
		{"case is ignored", "", ok + "transfer-ENCODING:CHUNKED\r\n", true},
		{"lines end in LF", "", "HTTP/1.1 200 OK\nTransfer-Encoding:\tchunked \n", true},
		{"not the first field", "", ok + "A: b\r\nTransfer-Encoding: chunked\r\nC: d\r\n", true},
		{"the last of several codings", "", ok + "Transfer-Encoding: gzip, chunked\r\n", true},
		{"the last of several fields", "",
			ok + "Transfer-Encoding: gzip\r\nA: b\r\nTransfer-Encoding: chunked\r\n", true},
		{"empty elements are ignored", "",
			ok + "Transfer-Encoding: chunked,, \r\nTransfer-Encoding: \r\n", true},
		{"a folded field", "", ok + "Transfer-Encoding: gzip,\r\n chunked\r\n", true},
		{"a later version of HTTP/1", "", "HTTP/1.2 200\r\nTransfer-Encoding: chunked\r\n", true},
		{"a response to POST", "POST", ok + "Transfer-Encoding: chunked\r\n", true},

		{"no such field", "", ok + "Content-Length: 3\r\n", false},
		{"in another, folded field", "", ok + "A: b\r\n Transfer-Encoding: chunked\r\n", false},
		{"part of a word", "", ok + "Transfer-Encoding: unchunked\r\n", false},
		{"part of a folded word", "", ok + "Transfer-Encoding: gzip\r\n chunked\r\n", false},
		{"part of a name", "", ok + "X-Transfer-Encoding: chunked\r\n", false},
		{"a folded line before the first field", "",
			ok + " Transfer-Encoding: chunked\r\n", false},
		{"another coding follows", "", ok + "Transfer-Encoding: chunked, gzip\r\n", false},
		{"another coding follows in a second field", "",
			ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n", false},
		{"in the status line", "", "HTTP/1.1 200 Transfer-Encoding: chunked\r\n", false},
		{"304 has no body", "", "HTTP/1.1 304 Not\r\nTransfer-Encoding: chunked\r\n", false},
		{"204 has no body", "", "HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n", false},
		{"101 has no body", "", "HTTP/1.1  101\r\nTransfer-Encoding: chunked\r\n", false},
		{"a response to HEAD", "HEAD", ok + "Transfer-Encoding: chunked\r\n", false},
		{"HTTP/1.0", "", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n", false},
		{"HTTP/2", "", "HTTP/2 200\r\nTransfer-Encoding: chunked\r\n", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := Capture{Head: []byte(tt.head + "\r\n")}
			if tt.request != "" {
				c.Request = []byte(tt.request + " / HTTP/1.1\r\n\r\n")
			}
			require.Equal(t, tt.want, c.chunked(), "%q", tt.head)
		})
	}
}

func TestHeadLen(t *testing.T) {
	tests := []struct {
		message string
		want    int
	}{
		{"", -1},
		{"a\r\n", -1},
		{"a\r\n\r", -1},
		{"a\r\n \r\n", -1},
		{"a\r\n\r\n", 5},
		{"a\n\n", 3},
		{"a\n\r\nb", 4},
		{"\n", 1},
		{"a\r\r\n\r\nb\r\n\r\n", 6},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, headLen([]byte(tt.message)), "%q", tt.message)
	}
}
