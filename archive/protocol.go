package archive

import (
	"bytes"
	"strings"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// asHTTP1 returns a capture with heads of HTTP/1.1, and the protocol in which they were sent, or ""
// if unknown. HTTP/2 has no text lines, and readers of WARC files know only those of HTTP/1, so
// crawlers write these and add WARC-Protocol.
func (c *Capture) asHTTP1() (as Capture, protocol string) {
	as, protocol = *c, c.Protocol
	line, rest, found := bytes.Cut(c.Head, []byte("\n"))
	version, status, _ := bytes.Cut(line, []byte(" "))
	if later := laterHTTP(strings.TrimRight(string(version), "\r")); found && later != "" {
		if protocol == "" {
			protocol = later
		}
		status = bytes.TrimRight(status, "\r")
		if !bytes.ContainsRune(status, ' ') { // HTTP/2 has no reason
			status = append(bytes.Clone(status), ' ')
		}
		as.Head = bytes.Join([][]byte{[]byte("HTTP/1.1 "), status, []byte("\r\n"), rest}, nil)
	}
	line, rest, found = bytes.Cut(c.Request, []byte("\n"))
	line = bytes.TrimRight(line, "\r")
	at := bytes.LastIndexByte(line, ' ')
	if found && at > 0 && laterHTTP(string(line[at+1:])) != "" {
		as.Request = bytes.Join([][]byte{line[:at], []byte(" HTTP/1.1\r\n"), rest}, nil)
	}
	return as, protocol
}

// laterHTTP returns a version of HTTP after 1.1 as net/http names it, or "" for another one.
func laterHTTP(version string) string {
	switch {
	case version == "HTTP/2" || version == "HTTP/2.0":
		return "HTTP/2.0"
	case version == "HTTP/3" || version == "HTTP/3.0":
		return "HTTP/3.0"
	}
	return ""
}

// Fields that mark records whose heads are not the bytes on the wire.
var (
	rebuiltField  = []warc.Field{{Name: "Spinneret-Heads", Value: "rebuilt"}}
	redactedField = []warc.Field{{Name: "Spinneret-Heads", Value: "redacted"}}
)

// methodField is the field of the record of an answer to another method than GET. The request record
// has the method, too, but damage may take it alone: then a form's answer must not become the page.
const methodField = "Spinneret-Method"

// extra returns the non-standard fields of a record.
func (c *Capture) extra() []warc.Field {
	switch {
	case c.Rebuilt:
		return rebuiltField
	case c.redacted:
		return redactedField
	}
	return nil
}
