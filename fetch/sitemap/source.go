package sitemap

import (
	"bufio"
	"bytes"
	"io"

	"github.com/spinneret-go/spinneret/internal/charset"
	"github.com/spinneret-go/spinneret/internal/content"
)

// open returns the text of a sitemap in UTF-8. It decompresses gzip, which for sitemaps is a file
// format as well as a content coding. Both sizes are limited, but not what one is of the other: lists
// of similar URLs in many languages are packed as well as bombs are.
func open(r io.Reader, total int) (*bufio.Reader, error) {
	// Gzip input can be endless without any output.
	br := bufio.NewReader(&ceiling{r: r, left: total})
	if magic, _ := br.Peek(2); string(magic) == "\x1f\x8b" {
		zr, err := content.OpenGzip(br)
		if err != nil {
			return nil, err
		}
		br = bufio.NewReader(zr)
	}
	return bufio.NewReader(&ceiling{r: decoded(br), left: total}), nil
}

// ceiling is a reader that fails after left bytes.
type ceiling struct {
	r    io.Reader
	left int
}

// piece is how much is read at a time, so that a limit is not exceeded by much.
const piece = 4096

// Read implements io.Reader.
func (c *ceiling) Read(p []byte) (int, error) {
	n, err := c.r.Read(p[:min(len(p), piece)])
	if c.left -= n; c.left < 0 {
		err = ErrTooLarge
	}
	return n, err
}

// decoded returns the text of a document in UTF-8, without its byte order mark. A declaration that no
// document can keep is ignored.
func decoded(br *bufio.Reader) io.Reader {
	head, _ := br.Peek(1024)
	c, mark, ok := charset.Marked(head)
	switch {
	case ok:
		_, _ = br.Discard(mark)
		return c.NewReader(br)
	case bytes.HasPrefix(head, []byte("<\x00")):
		return charset.UTF16LE.NewReader(br)
	case bytes.HasPrefix(head, []byte("\x00<")):
		return charset.UTF16BE.NewReader(br)
	}
	c, _ = charset.OfXML(trimmed(head))
	if c == nil || c.String() == "replacement" { // which stands for encodings that nobody reads any more
		return br
	}
	br = bufio.NewReaderSize(br, doubted)
	if head, _ = br.Peek(doubted); charset.Letters(head) >= some {
		return br
	}
	return c.NewReader(br)
}

// If so many letters within so many bytes look like UTF-8, a document is UTF-8, whatever it declares: one
// or two letters may look like it by chance, more never do.
const (
	some    = 4
	doubted = 64 << 10
)
