// Package coding finds the transfer coding of a body in the head of its HTTP message. The writer
// and the reader of a record must agree on it.
package coding

import "bytes"

// Chunked reports whether the body after a head is chunked, unless it answers a HEAD request. The
// head is the status line or the request line, and the fields.
func Chunked(head []byte) bool {
	line, fields, _ := bytes.Cut(head, []byte("\n"))
	may := hasTransferCoding(line)
	if !bytes.HasPrefix(line, []byte("HTTP/")) {
		may = bytes.HasSuffix(bytes.TrimRight(line, "\r"), []byte(" HTTP/1.1"))
	}
	return may && endsInChunked(fields)
}

// hasTransferCoding reports whether Transfer-Encoding has a meaning in a response with this status
// line. HTTP/1.0 does not define it (RFC 9112, section 6.1), nor does HTTP/2. 1xx, 204 and 304 have
// no body (section 6.3), though a 304 may repeat the field of the response that it confirms.
func hasTransferCoding(status []byte) bool {
	version, code, _ := bytes.Cut(status, []byte(" "))
	if !bytes.HasPrefix(version, []byte("HTTP/1.")) || string(version) == "HTTP/1.0" {
		return false
	}
	code = bytes.TrimLeft(code, " ")
	return !bytes.HasPrefix(code, []byte("1")) && !bytes.HasPrefix(code, []byte("204")) &&
		!bytes.HasPrefix(code, []byte("304"))
}

// endsInChunked reports whether the last transfer coding is chunked, which is only valid there. A
// field may have several lines, and there may be several such fields; together they are one list
// (RFC 9110, section 5.3).
func endsInChunked(fields []byte) bool {
	var last []byte
	for len(fields) > 0 {
		n := fieldLen(fields)
		name, value, _ := bytes.Cut(fields[:n], []byte(":"))
		fields = fields[n:]
		if !bytes.EqualFold(name, []byte("Transfer-Encoding")) {
			continue
		}
		// Empty list elements are ignored (section 5.6.1).
		if value = bytes.Trim(value, ", \t\r\n"); len(value) > 0 {
			last = value
		}
	}
	coding := last[bytes.LastIndexByte(last, ',')+1:]
	return bytes.EqualFold(bytes.TrimLeft(coding, " \t\r\n"), []byte("chunked"))
}

// fieldLen returns the length of the first field. A line that begins with white space continues the
// field before it: senders must no longer fold lines, but recipients may accept them (RFC 9112,
// section 5.2).
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
