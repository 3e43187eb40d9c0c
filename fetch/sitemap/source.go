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
func open(r io.Reader, total int) (io.Reader, error) {
	// Gzip input can be endless without any output.
	br := bufio.NewReader(&ceiling{r: r, left: total})
	if magic, _ := br.Peek(2); string(magic) == "\x1f\x8b" {
		zr, err := content.OpenGzip(br)
		if err != nil {
			return nil, err
		}
		br = bufio.NewReader(zr)
	}
	return decoded(br), nil
}

// ceiling is a reader that fails after left bytes. It repeats an error, since who peeks does not look at it,
// and the body of a request that was cut returns io.EOF the next time.
type ceiling struct {
	r    io.Reader
	left int
	err  error
}

// Read implements io.Reader.
func (c *ceiling) Read(p []byte) (n int, err error) {
	if c.err != nil {
		return 0, c.err
	}
	n, c.err = c.r.Read(p)
	if c.left -= n; c.left < 0 {
		c.err = ErrTooLarge
	}
	return n, c.err
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
	if c, _ = charset.OfXML(trimmed(head)); c == nil || c.String() == "replacement" { // encodings that nobody reads
		return br
	}
	// Where the first letters are that tell encodings apart may be far from the beginning.
	br = bufio.NewReaderSize(br, lookahead)
	if head, _ = br.Peek(lookahead); charset.Letters(head) < some {
		return c.NewReader(br)
	}
	return br
}

// A document is in UTF-8, whatever it declares, if it has some letters beyond ASCII in that encoding within
// the lookahead: one or two may look like it by chance, more never do.
const (
	some      = 4
	lookahead = 64 << 10
)

// source is a window on a document: the part that was read and is still needed.
type source struct {
	r    io.Reader
	buf  []byte
	pos  int   // start of the unread part of buf
	err  error // of r, after what is in buf
	left int   // bytes that may be read

	rooted bool // the first element was met
	loose  bool // a processing instruction did not end
}

// piece is how much is read at a time, so that a limit is not exceeded by much.
const piece = 4096

// rest returns what was read and not yet consumed.
func (s *source) rest() []byte { return s.buf[s.pos:] }

// more reads more of the document after the rest, which moves. It reports whether there was any.
// The rest may not exceed MaxToken.
func (s *source) more() bool {
	if s.err != nil {
		return false
	}
	if len(s.rest()) > MaxToken {
		s.err = ErrTooLarge
		return false
	}
	if s.pos > 0 {
		s.buf = s.buf[:copy(s.buf, s.rest())]
		s.pos = 0
	}
	if len(s.buf) == cap(s.buf) {
		s.buf = append(make([]byte, 0, max(2*cap(s.buf), piece)), s.buf...)
	}
	room := s.buf[len(s.buf):cap(s.buf)]
	n, err := s.r.Read(room[:min(len(room), piece)])
	s.buf = s.buf[:len(s.buf)+n]
	if s.left -= n; s.left < 0 {
		s.err = ErrTooLarge
		return false
	}
	s.err = err
	return n > 0 || err == nil
}

// untilAny returns how many bytes of the rest precede the first of the characters from the nth byte
// on, or -1 if there is none: then s.err says why.
func (s *source) untilAny(n int, chars string) int {
	for {
		if i := bytes.IndexAny(s.rest()[min(n, len(s.rest())):], chars); i >= 0 {
			return n + i
		}
		n = max(n, len(s.rest()))
		if !s.more() {
			return -1
		}
	}
}

// until returns the length of the rest up to and including the first end from the nth byte on, or
// -1 if there is none: then s.err says why.
func (s *source) until(n int, end string) int {
	for {
		if i := bytes.Index(s.rest()[min(n, len(s.rest())):], []byte(end)); i >= 0 {
			return n + i + len(end)
		}
		n = max(n, len(s.rest())-len(end)+1)
		if !s.more() {
			return -1
		}
	}
}

// first returns the first byte that is not white space, and skips up to it.
func (s *source) first() (byte, error) {
	for {
		s.pos += len(s.rest()) - len(bytes.TrimLeft(s.rest(), " \t\n\f\r\uFEFF"))
		if len(s.rest()) > 0 {
			return s.rest()[0], nil
		}
		if !s.more() {
			return 0, s.err
		}
	}
}

// line returns the next line, valid until the next call; a line longer than most is returned empty.
// CR and LF each end a line, so that CR LF ends an empty one too.
func (s *source) line(most int) ([]byte, error) {
	seen := 0 // bytes of the rest without a line end
	for skip := false; ; {
		if i := bytes.IndexAny(s.rest()[seen:], "\r\n"); i >= 0 {
			line := s.rest()[:seen+i]
			if s.pos += seen + i + 1; skip || len(line) > most {
				return nil, nil
			}
			return line, nil
		}
		if skip = skip || len(s.rest()) > most; skip {
			s.pos = len(s.buf)
		}
		seen = len(s.rest())
		if !s.more() {
			line := s.rest()
			s.pos = len(s.buf)
			return line, s.err
		}
	}
}
