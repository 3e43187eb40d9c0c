package archive

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// maxURL bounds the one header line whose length a server can choose; readers have limits too.
const maxURL = 64 << 10

// maxHead bounds the head of a response: it is the limit of package warc, and so is warc.MaxLines.
const maxHead = 1 << 20

// Capture is the response to one HTTP request, with the request and other facts about it. The
// slices are only read, and only until Append returns. It is not safe for concurrent use.
type Capture struct {
	// URL is the requested URL: absolute, without spaces and control characters.
	URL string

	// Time is when the request was sent. It is stored in microseconds: finer dates are allowed, but
	// widely used readers fail on them.
	Time time.Time

	// Addr is the server's address. The zero Addr omits it.
	Addr netip.Addr

	// Protocol is the protocol of the response as net/http names it, such as "HTTP/2.0". "" means
	// the version in Head. TLS is the version of TLS and CipherSuite the cipher suite, as numbers
	// of package crypto/tls; 0 means none or unknown. Values that have names are recorded in
	// WARC-Protocol and WARC-Cipher-Suite.
	Protocol         string
	TLS, CipherSuite uint16

	// Request is the request as sent: its head with the blank line, and its body if it had one. If
	// it is empty, no request record is written. Like Head, it may be of HTTP/2 or HTTP/3: its
	// first line is then written as HTTP/1.1, which readers of WARC files understand.
	Request []byte

	// Head is the status line and the header fields of the response with the blank line after them,
	// all as received. As it is stored, see Options.Redact, it is limited to 1 MiB and 1,000 lines, and so is
	// the head of Request.
	Head []byte

	// Body is the response body with its content coding kept and its transfer coding removed. If
	// Head says that it was chunked, it is stored as a single chunk: so the record is a valid HTTP
	// message with an unchanged Head. Any transfer coding other than chunked, which is rare, must
	// still be applied to Body.
	Body []byte

	// Large replaces Body for a body too large for memory. It is read up to three times, from
	// beginning to end, and must have as many bytes as its Size says.
	Large *io.SectionReader

	// Truncated says why Body is not the whole body: "length" or "time" when a limit of the
	// crawler was reached, "disconnect" when the connection broke, "unspecified". It is "" for
	// a whole body. RequestTruncated says the same of the body in Request.
	Truncated, RequestTruncated string

	// Rebuilt says that Request or Head was rebuilt from parsed fields instead of the bytes on the
	// wire. A field of the records says so.
	Rebuilt bool

	redacted bool     // the heads
	about    string   // ID of the record that Body is about, see AppendMetadata; "" for a capture
	of       Location // of that record
}

// isTooLong reports whether package warc would not read a head.
func isTooLong(head []byte) bool {
	return len(head) > maxHead || bytes.Count(head, []byte("\n")) > warc.MaxLines
}

// truncations are the reasons in WARC 1.1, section 5.13.
var truncations = []string{"", "length", "time", "disconnect", "unspecified"}

// check rejects values that would make the records unreadable or change their meaning. Later code
// relies on it: every value is assumed to fit in a header line.
func (c *Capture) check() error {
	if reason := urlFault(c.URL); reason != "" {
		return fmt.Errorf("%w: URL %.200q %s", ErrInvalid, c.URL, reason)
	}
	if year := c.Time.UTC().Year(); c.Time.IsZero() || year < 0 || year > 9999 {
		return fmt.Errorf("%w: Time %v is not set, or its year does not have four digits",
			ErrInvalid, c.Time)
	}
	isHead := bytes.HasPrefix(c.Head, []byte("HTTP/")) && headLen(c.Head) == len(c.Head)
	if !isHead && c.about == "" { // only a response has a head
		return fmt.Errorf("%w: Head of %d bytes is not a status line, fields and one blank line",
			ErrInvalid, len(c.Head))
	}
	if len(c.Request) > 0 && headLen(c.Request) < 0 {
		return fmt.Errorf("%w: Request of %d bytes has no blank line", ErrInvalid, len(c.Request))
	}
	for _, reason := range []string{c.Truncated, c.RequestTruncated} {
		if !slices.Contains(truncations, reason) {
			return fmt.Errorf("%w: Truncated is %.50q", ErrInvalid, reason)
		}
	}
	if c.Large != nil && len(c.Body) > 0 {
		return fmt.Errorf("%w: both Body and Large are set", ErrInvalid)
	}
	return nil
}

// checkHeads rejects heads that are too long as they are stored: they may be longer than as received.
func (c *Capture) checkHeads() error {
	if isTooLong(c.Head) {
		return fmt.Errorf("%w: Head of %d bytes is too long", ErrInvalid, len(c.Head))
	}
	if n := headLen(c.Request); n > 0 && isTooLong(c.Request[:n]) {
		return fmt.Errorf("%w: the head of Request of %d bytes is too long", ErrInvalid, n)
	}
	return nil
}

// size is the number of bytes to compress, without the record headers. It also bounds the output:
// gzip adds only a few bytes to incompressible data.
func (c *Capture) size() int64 {
	return int64(len(c.Request)) + int64(len(c.Head)) + c.bodySize()
}

// bodySize is the number of bytes in Body or Large.
func (c *Capture) bodySize() int64 {
	if c.Large != nil {
		return c.Large.Size()
	}
	return int64(len(c.Body))
}

// sum returns the digest of the body.
func (c *Capture) sum() (sum [sha1.Size]byte, err error) {
	if c.Large == nil {
		return sha1.Sum(c.Body), nil
	}
	h, size := sha1.New(), c.Large.Size()
	n, err := io.Copy(h, io.NewSectionReader(c.Large, 0, size))
	if err != nil {
		return sum, fmt.Errorf("archive: read body: %w", err)
	}
	if n != size { // its file was truncated, or it is longer than the file
		return sum, fmt.Errorf("%w: Large ends after %d of %d bytes", ErrInvalid, n, size)
	}
	h.Sum(sum[:0])
	return sum, nil
}

// urlFault returns why a URL cannot be in a header line, or "" if it can. Non-ASCII characters are
// allowed: browsers send them, and losing the page would be worse.
func urlFault(url string) string {
	scheme, _, found := strings.Cut(url, ":")
	switch {
	case len(url) > maxURL:
		return "is too long"
	case !found || !urlkey.IsScheme(scheme):
		return "is not absolute"
	case !utf8.ValidString(url):
		return "is not UTF-8"
	case strings.ContainsFunc(url, breaksLine):
		return "has a space or a control character"
	}
	return ""
}

// breaksLine reports whether some reader ends a line or a value at a character: not only at CR and
// LF, but at U+0085 or U+2028.
func breaksLine(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// headLen returns the length of the head of an HTTP message with its blank line, or -1 if there is
// none. A line may end in a bare LF (RFC 9112, section 2.2): servers do that.
func headLen(message []byte) int {
	for at := 0; ; {
		n := bytes.IndexByte(message[at:], '\n')
		if n < 0 {
			return -1
		}
		line := message[at : at+n]
		at += n + 1
		if len(line) == 0 || string(line) == "\r" {
			return at
		}
	}
}

// chunked reports whether a reader of the response expects chunks after the head.
func (c *Capture) chunked() bool {
	return !bytes.HasPrefix(c.Request, []byte("HEAD ")) && (&warc.HTTP{Head: c.Head}).Chunked()
}
