package warc

import (
	"crypto/rand"
	"crypto/sha1"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// The profiles of revisit records, WARC 1.1 section 6.7.
const (
	ProfileIdentical   = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
	ProfileNotModified = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
)

// ID is a random UUID, version 4 of RFC 9562. The zero ID stands for none.
type ID [16]byte

// NewID asks the system for randomness rather than a generator in the process: a virtual machine
// that is cloned while it crawls would otherwise hand out the same IDs twice. It costs well under
// a thousandth of a record.
func NewID() ID {
	var id ID
	_, _ = rand.Read(id[:]) // documented never to fail
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}

// Head is what stands before a block. Fields with their zero value are left out, but for the ID.
// WARC-Block-Digest and Content-Length come from the block.
//
// There are two digests because they answer two questions: the one of the block, whether the record
// is damaged; the one of the payload, whether two bodies are equal. They are SHA-1 because that is
// what other tools compare. It finds accidents; against a forger it proves nothing.
type Head struct {
	Type         string           // WARC-Type
	ID           ID               // WARC-Record-ID
	Date         time.Time        // WARC-Date, kept to the microsecond; years have four digits
	Filename     string           // WARC-Filename
	TargetURI    string           // WARC-Target-URI
	Addr         netip.Addr       // WARC-IP-Address, without its zone
	ConcurrentTo ID               // WARC-Concurrent-To
	RefersTo     ID               // WARC-Refers-To
	RefersToURI  string           // WARC-Refers-To-Target-URI
	RefersToDate time.Time        // WARC-Refers-To-Date
	Profile      string           // WARC-Profile
	Payload      *[sha1.Size]byte // WARC-Payload-Digest
	Truncated    string           // WARC-Truncated
	ContentType  string           // Content-Type
	Extra        []Field          // further fields, after the others
	block        [sha1.Size]byte  // WARC-Block-Digest
	unhashed     bool             // the block: it has no digest
	length       int64            // Content-Length
}

// check keeps any value from becoming a second field, and a header from having two lengths or a
// date that no reader takes for one.
func (h *Head) check() error {
	for _, value := range [...]string{h.Type, h.Filename, h.TargetURI, h.RefersToURI, h.Profile,
		h.Truncated, h.ContentType} {
		if strings.ContainsAny(value, "\r\n") {
			return fmt.Errorf("%w: line break in %.100q", ErrInvalid, value)
		}
	}
	for _, f := range h.Extra {
		if f.Name == "" || strings.ContainsAny(f.Name, ": \t\r\n") ||
			strings.ContainsAny(f.Value, "\r\n") {
			return fmt.Errorf("%w: field %.100q: %.100q", ErrInvalid, f.Name, f.Value)
		}
		if strings.EqualFold(f.Name, "Content-Length") {
			return fmt.Errorf("%w: Content-Length comes from the block", ErrInvalid)
		}
	}
	for _, t := range [...]time.Time{h.Date, h.RefersToDate} {
		if !hasFourDigits(t) {
			return fmt.Errorf("%w: the year of %v does not have four digits", ErrInvalid, t)
		}
	}
	return nil
}

// append appends the version line, the fields in an order that never varies, and the blank line.
func (h *Head) append(dst []byte) []byte {
	dst = append(dst, "WARC/1.1\r\n"...)
	dst = appendField(dst, "WARC-Type", h.Type)
	dst = appendID(dst, "WARC-Record-ID", h.ID)
	dst = appendDate(dst, "WARC-Date", h.Date)
	dst = appendField(dst, "WARC-Filename", h.Filename)
	dst = appendField(dst, "WARC-Target-URI", h.TargetURI)
	dst = appendAddr(dst, h.Addr)
	dst = appendID(dst, "WARC-Concurrent-To", h.ConcurrentTo)
	dst = appendField(dst, "WARC-Profile", h.Profile)
	dst = appendID(dst, "WARC-Refers-To", h.RefersTo)
	dst = appendField(dst, "WARC-Refers-To-Target-URI", h.RefersToURI)
	dst = appendDate(dst, "WARC-Refers-To-Date", h.RefersToDate)
	if !h.unhashed {
		dst = appendDigest(dst, "WARC-Block-Digest", &h.block)
	}
	if h.Payload != nil {
		dst = appendDigest(dst, "WARC-Payload-Digest", h.Payload)
	}
	dst = appendField(dst, "WARC-Truncated", h.Truncated)
	dst = appendField(dst, "Content-Type", h.ContentType)
	for i := range h.Extra {
		dst = appendField(dst, h.Extra[i].Name, h.Extra[i].Value)
	}
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

// appendDate keeps microseconds: finer dates, though allowed, make widely used readers fail.
func appendDate(dst []byte, name string, t time.Time) []byte {
	if t.IsZero() {
		return dst
	}
	dst = append(dst, name...)
	dst = append(dst, ": "...)
	return t.UTC().AppendFormat(dst, "2006-01-02T15:04:05.000000Z\r\n")
}

// appendID writes the ID as a URI in angle brackets, which these fields have kept in WARC 1.1 while
// WARC-Target-URI has lost them.
func appendID(dst []byte, name string, id ID) []byte {
	if id == (ID{}) {
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
