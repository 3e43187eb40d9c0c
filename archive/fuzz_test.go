package archive

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/textproto"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Any capture is either refused or read back unchanged.
func FuzzAppendReadsBack(f *testing.F) {
	c := page("http://a.test/", "body")
	f.Add(c.URL, c.Request, c.Head, c.Body, "length")
	f.Add("http://a/\r\n\r\n", []byte("\n\n"), []byte("HTTP/\n\n"), []byte("WARC/1.1\r\n\r\n"), "")
	f.Add("a:b", []byte(nil), []byte("HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n"),
		[]byte("0\r\n\r\n"), "")
	e, info := testEncoder(1), testEncoder(1)
	f.Fuzz(func(t *testing.T, url string, request, head, body []byte, truncated string) {
		a, m := openMemory(t, Options{})
		<-a.encoders
		a.encoders <- e
		a.out().encoder = info
		c := Capture{URL: url, Time: someTime, Request: request, Head: head, Body: body,
			Truncated: truncated}
		loc, err := a.Append(c)
		if err != nil {
			require.ErrorIs(t, err, ErrInvalid)
			require.Empty(t, m.contents())
			return
		}
		require.NoError(t, a.Close())
		captures, err := readCaptures(m.contents()[loc.File])
		require.NoError(t, err)
		require.Len(t, captures, 1)
		got := captures[0]
		require.Equal(t, loc, Location{loc.File, got.offset, got.length})
		require.Equal(t, url, got.fields["WARC-Target-URI"])
		require.Equal(t, truncated, got.fields["WARC-Truncated"])
		require.Equal(t, sha1Of(body), got.fields["WARC-Payload-Digest"])
		entity, found := bytes.CutPrefix(got.block, head)
		require.True(t, found)
		if c.chunked() {
			entity, err = unchunk(entity)
			require.NoError(t, err)
		}
		require.True(t, bytes.Equal(body, entity))
	})
}

// net/http parses the block of a response to the same body: chunked if the encoder made a chunk,
// and not otherwise.
func FuzzBlockIsAnHTTPMessage(f *testing.F) {
	for _, head := range []string{
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.1 304 OK\nTransfer-Encoding:\n chunked\n\n",
		"HTTP/1.1 043 OK\nTransfer-Encoding:\n chunked\n\n",
		"HTTP/1.0 200\r\nTransfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.1 200\r\nA: b\r\n\r\n",
		"HTTP/1.1 200\r\nTransfer-Encoding: chunked,\r\n gzip\r\n\r\n",
	} {
		f.Add([]byte(head), []byte("body"))
	}
	e := testEncoder(-1)
	f.Fuzz(func(t *testing.T, head, body []byte) {
		c := Capture{URL: "a:b", Time: someTime, Head: head, Body: body}
		if c.check() != nil {
			t.Skip()
		}
		require.NoError(t, e.capture(&c, original{}, [16]byte{1}, nil))
		records, err := readFile(e.buf)
		require.NoError(t, err)
		block := bufio.NewReader(bytes.NewReader(records[0].block))
		resp, err := http.ReadResponse(block, nil)
		if err != nil || resp.ProtoMajor != 1 || resp.ProtoMinor == 0 {
			t.Skip() // not a response for net/http, or of another version of HTTP
		}
		chunked := len(resp.TransferEncoding) > 0 && bodyAllowed(resp.StatusCode)
		require.Equal(t, chunked, c.chunked(), "%q", head)
		if !chunked {
			return
		}
		got, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.True(t, bytes.Equal(body, got), "%q", got)
	})
}

func bodyAllowed(status int) bool {
	return status/100 != 1 && status != http.StatusNoContent && status != http.StatusNotModified
}

// An accepted URL is read back from its header line, and adds no line.
func FuzzURLStaysOnItsLine(f *testing.F) {
	f.Add("http://a.test/")
	f.Add("http://a.test/\u2028WARC-Type: x")
	f.Add("x:\r\n")
	f.Fuzz(func(t *testing.T, url string) {
		c := page(url, "")
		if err := c.check(); err != nil {
			require.ErrorIs(t, err, ErrInvalid)
			return
		}
		require.Equal(t, []string{url}, strings.Fields(url))
		line := []byte("WARC-Target-URI: " + url + "\r\n")
		fields, err := textproto.NewReader(bufio.NewReader(
			bytes.NewReader(append(line, "\r\n"...)))).ReadMIMEHeader()
		require.NoError(t, err)
		require.Equal(t, textproto.MIMEHeader{"Warc-Target-Uri": {url}}, fields)
	})
}
