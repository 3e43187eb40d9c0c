package warc

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// maxHead bounds the head of an HTTP message in a block.
const maxHead = 1 << 20

// HTTP is the message in the block of a request, a response or a revisit. It is not safe for
// concurrent use.
type HTTP struct {
	// Head is the first line and the fields with the blank line, as received.
	Head []byte

	// Body is the body without chunks, with its content coding. It reads from the record.
	Body io.Reader

	// Size is the length of Body, or -1 if Body is chunked, which makes it unknown before the end.
	Size int64
}

// Status returns the status code of a response, or 0 if there is none.
func (h *HTTP) Status() int {
	line, _, _ := bytes.Cut(h.Head, []byte("\n"))
	version, rest, _ := bytes.Cut(line, []byte(" "))
	code, _, _ := bytes.Cut(bytes.TrimLeft(rest, " "), []byte(" "))
	code = bytes.TrimRight(code, "\r")
	if !bytes.HasPrefix(version, []byte("HTTP/")) || len(code) > maxCode {
		return 0
	}
	status, err := strconv.ParseUint(string(code), 10, 64)
	if err != nil || status > 999 {
		return 0
	}
	return int(status)
}

// maxCode is the maximum length of a status code with leading zeros.
const maxCode = 8

// Get returns the value of the first field of that name, ignoring case, or "".
func (h *HTTP) Get(name string) string {
	_, rest, _ := bytes.Cut(h.Head, []byte("\n"))
	value, _, _ := cutNamed(rest, name)
	return unfold(value)
}

// Values returns the values of all fields of that name, ignoring case. They may be the parts of one list
// (RFC 9110, section 5.3).
func (h *HTTP) Values(name string) (list []string) {
	_, rest, _ := bytes.Cut(h.Head, []byte("\n"))
	for {
		value, after, found := cutNamed(rest, name)
		if !found {
			return list
		}
		list, rest = append(list, unfold(value)), after
	}
}

// cutNamed cuts the fields after the first one of that name.
func cutNamed(fields []byte, name string) (value, rest []byte, found bool) {
	for len(fields) > 0 {
		var key []byte
		if key, value, fields = cutField(fields); len(key) == len(name) && strings.EqualFold(string(key), name) {
			return value, fields, true
		}
	}
	return nil, nil, false
}

// Header returns the fields, as net/http has them.
func (h *HTTP) Header() http.Header {
	header := http.Header{}
	_, rest, _ := bytes.Cut(h.Head, []byte("\n"))
	for len(rest) > 0 {
		var name, value []byte
		if name, value, rest = cutField(rest); len(name) > 0 && name[0] != ' ' && name[0] != '\t' {
			header.Add(string(bytes.TrimRight(name, " \t")), unfold(value))
		}
	}
	return header
}

// Chunked reports whether the body after the head should be chunked, unless it answers a HEAD request:
// the last transfer coding is chunked, which is only valid there. There may be several such fields, which
// together are one list (RFC 9110, section 5.3).
func (h *HTTP) Chunked() bool {
	line, rest, _ := bytes.Cut(h.Head, []byte("\n"))
	var last []byte
	for len(rest) > 0 {
		var name, value []byte
		name, value, rest = cutField(rest)
		if !bytes.EqualFold(name, []byte("Transfer-Encoding")) {
			continue
		}
		if list := bytes.Trim(value, ", \t\r\n"); len(list) > 0 { // empty elements are ignored (section 5.6.1)
			last = list
		}
	}
	coding := bytes.TrimLeft(last[bytes.LastIndexByte(last, ',')+1:], " \t\r\n")
	return bytes.EqualFold(coding, []byte("chunked")) && hasTransferCoding(line)
}

// hasTransferCoding reports whether Transfer-Encoding has a meaning in a message with this first line.
// HTTP/1.0 does not define it (RFC 9112, section 6.1), nor does HTTP/2. 1xx, 204 and 304 have no body
// (section 6.3), though a 304 may repeat the field of the response that it confirms.
func hasTransferCoding(line []byte) bool {
	if !bytes.HasPrefix(line, []byte("HTTP/")) { // of a request
		return bytes.HasSuffix(bytes.TrimRight(line, "\r"), []byte(" HTTP/1.1"))
	}
	version, code, _ := bytes.Cut(line, []byte(" "))
	if !bytes.HasPrefix(version, []byte("HTTP/1.")) || string(version) == "HTTP/1.0" {
		return false
	}
	code = bytes.TrimLeft(code, " ")
	return !bytes.HasPrefix(code, []byte("1")) && !bytes.HasPrefix(code, []byte("204")) &&
		!bytes.HasPrefix(code, []byte("304"))
}

// cutField cuts the first field off. A line that begins with white space continues the field before it:
// senders must no longer fold lines, but recipients may accept them (RFC 9112, section 5.2). The name of a
// line without a colon is empty.
func cutField(fields []byte) (name, value, rest []byte) {
	n := 0
	for {
		i := bytes.IndexByte(fields[n:], '\n')
		if i < 0 {
			n = len(fields)
			break
		}
		if n += i + 1; n == len(fields) || fields[n] != ' ' && fields[n] != '\t' {
			break
		}
	}
	line, _, _ := bytes.Cut(fields[:n], []byte("\n"))
	if i := bytes.IndexByte(line, ':'); i >= 0 {
		name, value = fields[:i], fields[i+1:n]
	}
	return name, value, fields[n:]
}

// unfold joins the lines of a value with a space.
func unfold(value []byte) string {
	const space = " \t\r\n"
	value = bytes.Trim(value, space)
	if bytes.IndexByte(value, '\n') < 0 {
		return string(value)
	}
	var lines []string
	for line := range strings.Lines(string(value)) {
		lines = append(lines, strings.Trim(line, space))
	}
	return strings.Join(lines, " ")
}

// HTTP splits the block into the head and the body of an HTTP message. A body that should be
// chunked according to its head, but does not begin with a chunk size, counts as not chunked: some
// writers remove the chunks and keep the head.
func (rec *Record) HTTP() (*HTTP, error) {
	body, size := bufio.NewReader(rec), rec.left
	head, err := readHead(body)
	if err == errHead {
		err = rec.r.damage(err)
	}
	if err != nil {
		return nil, err
	}
	h := &HTTP{Head: head, Body: body, Size: size - int64(len(head))}
	if h.Chunked() && beginsChunk(body) {
		h.Body, h.Size = &throughout{&chunks{r: body}, body}, -1
	}
	return h, nil
}

var errHead = errors.New("the head of the HTTP message is too long")

// readHead reads through the blank line, or to the end: the head of a revisit may lack the line.
func readHead(r *bufio.Reader) (head []byte, err error) {
	for lines := 0; ; {
		line, err := r.ReadSlice('\n')
		atStart := len(head) > 0 && head[len(head)-1] == '\n'
		head = append(head, line...)
		if err == nil {
			lines++
		}
		switch {
		case err == io.EOF || err == nil && atStart && isBlank(line):
			return head, nil
		case err != nil && err != bufio.ErrBufferFull:
			return nil, err
		case len(head) > maxHead, lines > MaxLines:
			return nil, errHead
		}
	}
}

// isBlank reports whether a line ends a head. A line may end in a bare LF (RFC 9112, section 2.2),
// as some servers and WARC writers do.
func isBlank(line []byte) bool {
	return len(line) == 1 || len(line) == 2 && line[0] == '\r'
}

// maxSizeLine bounds the line before a chunk, including extensions, which are not used in practice.
const maxSizeLine = 256

// beginsChunk reports whether a line with a hexadecimal number comes next.
func beginsChunk(r *bufio.Reader) bool {
	buf, _ := r.Peek(maxSizeLine)
	line, _, found := bytes.Cut(buf, []byte("\n"))
	if !found {
		return false
	}
	_, ok := chunkSize(line)
	return ok
}

// chunkSize parses the line before a chunk: a hexadecimal number, and extensions that readers
// ignore (RFC 9112, section 7.1.1). Spaces are not allowed, but servers send them.
func chunkSize(line []byte) (int64, bool) {
	digits, _, _ := bytes.Cut(line, []byte(";"))
	size, err := strconv.ParseUint(string(bytes.Trim(digits, " \t\r\n")), 16, 62)
	if err != nil {
		return 0, false // on overflow, n is the largest number
	}
	return int64(size), true
}

// chunks decodes a chunked body. The body ends at the first malformed chunk: it was truncated, or
// the server is broken.
type chunks struct {
	r    *bufio.Reader
	left int64
	done bool
}

// Read reads from the body.
func (c *chunks) Read(p []byte) (int, error) {
	for c.left == 0 {
		if c.done {
			return 0, io.EOF
		}
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	if c.left == 0 {
		_ = skipBlank(c.r) // the next read returns the error again
	}
	return n, err
}

// next advances to the next chunk, or to the end. A trailer is not read: it is not part of the
// body.
func (c *chunks) next() error {
	line, err := c.r.ReadSlice('\n')
	if err != nil && err != io.EOF && err != bufio.ErrBufferFull {
		return err
	}
	size, ok := chunkSize(line)
	c.left, c.done = size, !ok || size == 0
	return nil
}
