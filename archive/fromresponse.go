package archive

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spinneret-go/spinneret/internal/httpurl"
)

// FromResponse makes c the capture of a response of net/http and its body, which the caller has read.
// Its Time is now: set it to when the request was sent. The heads are rebuilt from the parsed
// fields; package archivehttp records the bytes on the wire.
//
// A body that net/http has decompressed is stored decompressed: net/http has removed
// Content-Encoding too. A body shorter than its Content-Length is marked as truncated. resp must
// have its Request, as all responses of an http.Client do. The body of the request is not in the
// capture.
func (c *Capture) FromResponse(resp *http.Response, body []byte) {
	req := resp.Request
	*c = Capture{URL: targetURL(req.URL), Time: time.Now(), Protocol: resp.Proto, Body: body,
		Request: requestHead(req, resp), Head: rebuiltHead(resp), Rebuilt: true}
	if resp.TLS != nil {
		c.TLS, c.CipherSuite = resp.TLS.Version, resp.TLS.CipherSuite
	}
	if req.Method != http.MethodHead && resp.StatusCode != http.StatusNotModified &&
		resp.ContentLength > int64(len(body)) {
		c.Truncated = "unspecified"
	}
}

// targetURL returns what was requested, without a password, which should not be archived. Redirects
// may lead to URLs with bytes that cannot be in a header line; they are escaped, as browsers do. An international
// name is asked for in Punycode; net/url would escape it, and nobody would look for that.
func targetURL(u *url.URL) string {
	asked := *u
	asked.Host = asciiHost(u.Host)
	text := httpurl.Requested(&asked)
	if utf8.ValidString(text) && !strings.ContainsFunc(text, breaksLine) {
		return text
	}
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; ' ' < c && c < 0x7f {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// asciiHost returns an international name in Punycode, as net/http asks for it, and any other host unchanged.
func asciiHost(host string) string {
	if !strings.ContainsFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return host
	}
	var head bytes.Buffer
	err := (&http.Request{URL: &url.URL{Scheme: "http", Host: strings.ToLower(host)}}).Write(&head)
	_, ascii, _ := strings.Cut(head.String(), "Host: ")
	if ascii, _, _ = strings.Cut(ascii, "\r\n"); err != nil || ascii == "" {
		return host
	}
	return ascii
}

// requestHead writes the head that net/http sends, as far as it is known from the request.
func requestHead(req *http.Request, resp *http.Response) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", cmp.Or(req.Method, http.MethodGet),
		req.URL.RequestURI(), asciiHost(cmp.Or(req.Host, req.URL.Host)))
	if _, set := req.Header["User-Agent"]; !set {
		fmt.Fprintf(&b, "User-Agent: Go-http-client/%d.%d\r\n", min(resp.ProtoMajor, 2),
			resp.ProtoMinor)
	}
	if req.ContentLength > 0 {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", req.ContentLength)
	}
	_ = req.Header.WriteSubset(&b, map[string]bool{"Host": true, "Content-Length": true,
		"Transfer-Encoding": true}) // a buffer returns no error
	if resp.Uncompressed && req.Header.Get("Accept-Encoding") == "" {
		b.WriteString("Accept-Encoding: gzip\r\n")
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

// rebuiltHead writes a head whose body follows without chunks.
func rebuiltHead(resp *http.Response) []byte {
	var b bytes.Buffer
	status := cmp.Or(resp.Status,
		fmt.Sprintf("%03d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
	fmt.Fprintf(&b, "HTTP/1.%d %s\r\n", rebuiltMinor(resp), status)
	_ = resp.Header.WriteSubset(&b, map[string]bool{"Transfer-Encoding": true})
	b.WriteString("\r\n")
	return b.Bytes()
}

// rebuiltMinor keeps HTTP/1.0. Later versions are written as HTTP/1.1, see Capture.Protocol.
func rebuiltMinor(resp *http.Response) int {
	if resp.ProtoMajor == 1 && resp.ProtoMinor == 0 {
		return 0
	}
	return 1
}
