package sitemap

import (
	"bufio"
	"bytes"
	"io"
	"unicode/utf8"

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
	switch c, _ = charset.OfXML(trimmed(head)); {
	case c == nil, c.String() == "replacement": // which stands for encodings that nobody reads any more
		return br
	case c.Opaque() && charset.Letters(head) < some:
		return c.NewReader(br)
	}
	return &doubtful{br: br, declared: c}
}

// some letters make a document UTF-8: one or two may look like it by chance, more never do.
const some = 4

// doubtful reads a document that declares an encoding in which ASCII is ASCII. Whether it is in UTF-8
// nevertheless shows where the first other letters are, which may be far from its beginning.
type doubtful struct {
	br       *bufio.Reader
	declared *charset.Charset
	rest     io.Reader // from the first byte beyond ASCII on; nil before it
}

// Read implements io.Reader.
func (d *doubtful) Read(p []byte) (int, error) {
	if d.rest != nil {
		return d.rest.Read(p)
	}
	if _, err := d.br.Peek(1); err != nil {
		return 0, err
	}
	head, _ := d.br.Peek(min(d.br.Buffered(), len(p)))
	if n := ascii(head); n > 0 {
		return d.br.Read(p[:n])
	}
	head, _ = d.br.Peek(d.br.Size())
	if d.rest = d.br; charset.Letters(head) < some {
		d.rest = d.declared.NewReader(d.br)
	}
	return d.rest.Read(p)
}

// ascii returns how many bytes precede the first one beyond ASCII.
func ascii(b []byte) int {
	for i, c := range b {
		if c >= utf8.RuneSelf {
			return i
		}
	}
	return len(b)
}
