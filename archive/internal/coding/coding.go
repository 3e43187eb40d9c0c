// Package coding tells by the head of an HTTP response how its body is coded for transfer. Who
// writes a record and who reads it have to agree on that.
package coding

import "bytes"

// Chunked tells whether the body behind a head came in chunks, if it is a response to anything but
// HEAD. The head is the status line and the fields.
func Chunked(head []byte) bool {
	status, fields, _ := bytes.Cut(head, []byte("\n"))
	return hasTransferCoding(status) && endsInChunked(fields)
}

// hasTransferCoding tells by its status line whether Transfer-Encoding means anything in a
// response. HTTP/1.0 did not have it (RFC 9112, section 6.1), nor has HTTP/2. 1xx, 204 and 304 have
// no body in any case (section 6.3), though a 304 may repeat the field of the answer it stands for.
func hasTransferCoding(status []byte) bool {
	version, code, _ := bytes.Cut(status, []byte(" "))
	if !bytes.HasPrefix(version, []byte("HTTP/1.")) || string(version) == "HTTP/1.0" {
		return false
	}
	code = bytes.TrimLeft(code, " ")
	return !bytes.HasPrefix(code, []byte("1")) && !bytes.HasPrefix(code, []byte("204")) &&
		!bytes.HasPrefix(code, []byte("304"))
}

// endsInChunked tells whether the last of all transfer codings is chunked, the only place where it
// may stand. A field may have several lines, and there may be several such fields; together they
// are one list (RFC 9110, section 5.3).
func endsInChunked(fields []byte) bool {
	var last []byte
	for len(fields) > 0 {
		n := fieldLen(fields)
		name, value, _ := bytes.Cut(fields[:n], []byte(":"))
		fields = fields[n:]
		if !bytes.EqualFold(name, []byte("Transfer-Encoding")) {
			continue
		}
		// An element of a list may be empty and then does not count (section 5.6.1).
		if value = bytes.Trim(value, ", \t\r\n"); len(value) > 0 {
			last = value
		}
	}
	coding := last[bytes.LastIndexByte(last, ',')+1:]
	return bytes.EqualFold(bytes.TrimLeft(coding, " \t\r\n"), []byte("chunked"))
}

// fieldLen returns the length of the first field. A line that begins with white space belongs to
// the field before it: senders must not do that any more, but readers still understand it
// (RFC 9112, section 5.2).
func fieldLen(fields []byte) int {
	for n := 0; ; {
		i := bytes.IndexByte(fields[n:], '\n')
		if i < 0 {
			return len(fields)
		}
		n += i + 1
		if n == len(fields) || fields[n] != ' ' && fields[n] != '\t' {
			return n
		}
	}
}
