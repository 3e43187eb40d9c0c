package archive

import (
	"crypto/rand"
	"crypto/sha1"
	"encoding/base32"
	"encoding/hex"
	"net/netip"
	"strconv"
	"time"
)

// recordID is a random UUID, version 4 of RFC 9562. The zero recordID stands for none.
type recordID [16]byte

// newID asks the system for randomness rather than a generator in the process: a virtual machine
// that is cloned while it crawls would otherwise hand out the same IDs twice. It costs well under
// a thousandth of a record.
func newID() recordID {
	var id recordID
	_, _ = rand.Read(id[:]) // documented never to fail
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}

// header is what stands before a block. Fields with their zero value are left out.
//
// There are two digests because they answer two questions: the one of the block, whether the record
// is damaged; the one of the payload, whether two bodies are equal. They are SHA-1 because that is
// what other tools compare. It finds accidents; against a forger it proves nothing.
//
// WARC-Warcinfo-ID, which would name the first record of the file, is not among the fields: records
// are compressed before it is known into which file they will go.
type header struct {
	kind           string // WARC-Type
	id, concurrent recordID
	date           time.Time
	filename       string
	target         string
	addr           netip.Addr
	block, payload [sha1.Size]byte
	hasPayload     bool
	truncated      string
	contentType    string
	length         int64
}

// appendHeader appends the version line, the named fields in an order that never varies, and the
// blank line. Its values were checked: none holds a line break.
func appendHeader(dst []byte, h *header) []byte {
	dst = append(dst, "WARC/1.1\r\n"...)
	dst = appendField(dst, "WARC-Type", h.kind)
	dst = appendID(dst, "WARC-Record-ID", h.id)
	dst = append(dst, "WARC-Date: "...)
	dst = h.date.UTC().AppendFormat(dst, "2006-01-02T15:04:05.000000Z\r\n")
	dst = appendField(dst, "WARC-Filename", h.filename)
	dst = appendField(dst, "WARC-Target-URI", h.target)
	dst = appendAddr(dst, h.addr)
	dst = appendID(dst, "WARC-Concurrent-To", h.concurrent)
	dst = appendDigest(dst, "WARC-Block-Digest", &h.block)
	if h.hasPayload {
		dst = appendDigest(dst, "WARC-Payload-Digest", &h.payload)
	}
	dst = appendField(dst, "WARC-Truncated", h.truncated)
	dst = appendField(dst, "Content-Type", h.contentType)
	dst = append(dst, "Content-Length: "...)
	dst = strconv.AppendInt(dst, h.length, 10)
	return append(dst, "\r\n\r\n"...)
}

// appendField leaves an empty field out: to a reader that would be a value, namely none.
func appendField(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	dst = append(dst, name...)
	dst = append(dst, ": "...)
	dst = append(dst, value...)
	return append(dst, "\r\n"...)
}

// appendID writes the ID as a URI in angle brackets, which these fields have kept in WARC 1.1 while
// WARC-Target-URI has lost them.
func appendID(dst []byte, name string, id recordID) []byte {
	if id == (recordID{}) {
		return dst
	}
	dst = append(dst, name...)
	dst = append(dst, ": <urn:uuid:"...)
	dst = append(hex.AppendEncode(dst, id[:4]), '-')
	dst = append(hex.AppendEncode(dst, id[4:6]), '-')
	dst = append(hex.AppendEncode(dst, id[6:8]), '-')
	dst = append(hex.AppendEncode(dst, id[8:10]), '-')
	dst = hex.AppendEncode(dst, id[10:])
	return append(dst, ">\r\n"...)
}

// appendAddr writes the plain address: a zone is a name of the crawler's own network card, and can
// hold any character.
func appendAddr(dst []byte, addr netip.Addr) []byte {
	if !addr.IsValid() {
		return dst
	}
	dst = append(dst, "WARC-IP-Address: "...)
	dst = addr.Unmap().WithZone("").AppendTo(dst)
	return append(dst, "\r\n"...)
}

// appendDigest labels the digest as all tools do: hexadecimal, though shorter to explain, would not
// be found equal to theirs.
func appendDigest(dst []byte, name string, sum *[sha1.Size]byte) []byte {
	dst = append(dst, name...)
	dst = append(dst, ": sha1:"...)
	dst = base32.StdEncoding.AppendEncode(dst, sum[:]) // 20 bytes need no padding
	return append(dst, "\r\n"...)
}
