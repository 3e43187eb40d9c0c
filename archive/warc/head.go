package warc

import (
	"crypto/rand"
	"crypto/sha1"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ID is a random UUID, version 4 of RFC 9562. The zero ID means none.
type ID [16]byte

// NewID uses the randomness of the system, not of a generator in the process: otherwise a cloned
// virtual machine would issue the same IDs twice. It costs well under a thousandth of a record.
func NewID() ID {
	var id ID
	_, _ = rand.Read(id[:]) // documented never to fail
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}

// String returns the ID as a URI, without the angle brackets that headers have around it.
func (id ID) String() string { return string(id.appendURI(nil)) }

func (id ID) appendURI(dst []byte) []byte {
	dst = append(dst, "urn:uuid:"...)
	dst = append(hex.AppendEncode(dst, id[:4]), '-')
	dst = append(hex.AppendEncode(dst, id[4:6]), '-')
	dst = append(hex.AppendEncode(dst, id[6:8]), '-')
	dst = append(hex.AppendEncode(dst, id[8:10]), '-')
	return hex.AppendEncode(dst, id[10:])
}

// Head is the header of a record. Fields with zero values are omitted, except for the ID.
// WARC-Block-Digest and Content-Length are computed from the block.
//
// There are two digests: that of the block detects damage, and that of the payload finds equal
// bodies. They are SHA-1 because other tools compare SHA-1. It detects accidents, but not forgery.
//
// A Head is not safe for concurrent use.
type Head struct {
	Type         string           // WARC-Type
	ID           ID               // WARC-Record-ID
	WarcinfoID   ID               // WARC-Warcinfo-ID
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
	Protocols    []string         // WARC-Protocol, one field for each: "h2", "tls/1.3"
	CipherSuite  string           // WARC-Cipher-Suite
	ContentType  string           // Content-Type
	Extra        []Field          // further fields, after the others
	block        [sha1.Size]byte  // WARC-Block-Digest
	unhashed     bool             // the block: it has no digest
	length       int64            // Content-Length
}

// typesWithTarget must name a URI, WARC 1.1 section 5.10.
var typesWithTarget = []string{"response", "resource", "request", "revisit", "conversion",
	"continuation"}

// computed are the fields that come from Head alone, or from the block. Extra may not have them.
var computed = []string{"WARC-Type", "WARC-Record-ID", "WARC-Date", "WARC-Block-Digest",
	"Content-Length"}

// repeatable are the fields that a header may have more than once: WARC-Concurrent-To by the
// standard (section 4), the others by the convention that introduced them.
var repeatable = []string{"WARC-Concurrent-To", "WARC-Protocol", "WARC-Cipher-Suite"}

// check rejects violations of the standard, and values that would become a second field.
func (h *Head) check() error {
	hasTarget := h.TargetURI != "" || h.extra("WARC-Target-URI")
	switch {
	case h.Type == "":
		return fmt.Errorf("%w: WARC-Type is missing", ErrInvalid)
	case h.Date.IsZero():
		return fmt.Errorf("%w: WARC-Date is missing", ErrInvalid)
	case !hasTarget && slices.Contains(typesWithTarget, h.Type):
		return fmt.Errorf("%w: a %s record without WARC-Target-URI", ErrInvalid, h.Type)
	case hasTarget && h.Type == "warcinfo":
		return fmt.Errorf("%w: a warcinfo record with WARC-Target-URI", ErrInvalid)
	case h.Type == "revisit" && h.Profile == "" && !h.extra("WARC-Profile"):
		return fmt.Errorf("%w: a revisit record without WARC-Profile", ErrInvalid)
	}
	for _, t := range [...]time.Time{h.Date, h.RefersToDate} {
		if !hasFourDigits(t) {
			return fmt.Errorf("%w: the year of %v does not have four digits", ErrInvalid, t)
		}
	}
	for _, value := range [...]string{h.Type, h.Filename, h.TargetURI, h.RefersToURI, h.Profile,
		h.Truncated, h.CipherSuite, h.ContentType} {
		if strings.ContainsFunc(value, isControl) {
			return fmt.Errorf("%w: control character in %.100q", ErrInvalid, value)
		}
	}
	for _, uri := range [...]string{h.TargetURI, h.RefersToURI, h.Profile} {
		if strings.Contains(uri, " ") {
			return fmt.Errorf("%w: space in URI %.100q", ErrInvalid, uri)
		}
	}
	for _, protocol := range h.Protocols {
		if strings.ContainsFunc(protocol, isControl) {
			return fmt.Errorf("%w: control character in %.100q", ErrInvalid, protocol)
		}
	}
	return h.checkExtra()
}

// isControl reports characters that no value may have: they end lines, or readers stop at them.
func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// extra reports whether Extra has a field of that name.
func (h *Head) extra(name string) bool {
	return len(h.Extra) > 0 && Fields(h.Extra).Get(name) != ""
}

// checkExtra rejects repeated fields: readers differ in which of two they use.
func (h *Head) checkExtra() error {
	if len(h.Extra) == 0 {
		return nil
	}
	set := map[string]bool{}
	for _, name := range computed {
		set[strings.ToLower(name)] = true
	}
	for name, value := range map[string]bool{
		"warc-filename": h.Filename != "", "warc-target-uri": h.TargetURI != "",
		"warc-ip-address": h.Addr.IsValid(), "warc-warcinfo-id": h.WarcinfoID != ID{},
		"warc-refers-to": h.RefersTo != ID{}, "warc-refers-to-target-uri": h.RefersToURI != "",
		"warc-refers-to-date": !h.RefersToDate.IsZero(), "warc-profile": h.Profile != "",
		"warc-payload-digest": h.Payload != nil, "warc-truncated": h.Truncated != "",
		"content-type": h.ContentType != "",
	} {
		set[name] = set[name] || value
	}
	for _, f := range h.Extra {
		name := strings.ToLower(f.Name)
		switch {
		case !f.Valid():
			return fmt.Errorf("%w: field %.100q: %.100q", ErrInvalid, f.Name, f.Value)
		case set[name]:
			return fmt.Errorf("%w: %.100q in Extra is repeated, or computed from the block",
				ErrInvalid, f.Name)
		}
		set[name] = !f.Repeatable()
	}
	return nil
}

// Valid reports whether a record may have the field: files of others have fields of any name and value.
func (f Field) Valid() bool {
	return f.Name != "" && !strings.ContainsFunc(f.Name, isNotToken) && !strings.ContainsFunc(f.Value, isControl)
}

// Repeatable reports whether a header may have several fields of the name.
func (f Field) Repeatable() bool {
	return slices.ContainsFunc(repeatable, func(name string) bool { return strings.EqualFold(name, f.Name) })
}

// isNotToken reports characters that no field name may have (section 4).
func isNotToken(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune("()<>@,;:\\\"/[]?={}", r)
}

// append appends the version line, the fields in a fixed order, and the blank line.
func (h *Head) append(dst []byte) []byte {
	dst = append(dst, "WARC/1.1\r\n"...)
	dst = appendField(dst, "WARC-Type", h.Type)
	dst = appendID(dst, "WARC-Record-ID", h.ID)
	dst = appendID(dst, "WARC-Warcinfo-ID", h.WarcinfoID) // early: see searchHeader
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
	for _, protocol := range h.Protocols {
		dst = appendField(dst, "WARC-Protocol", protocol)
	}
	dst = appendField(dst, "WARC-Cipher-Suite", h.CipherSuite)
	dst = appendField(dst, "Content-Type", h.ContentType)
	for i := range h.Extra {
		dst = appendField(dst, h.Extra[i].Name, h.Extra[i].Value)
	}
	dst = append(dst, "Content-Length: "...)
	dst = strconv.AppendInt(dst, h.length, 10)
	return append(dst, "\r\n\r\n"...)
}

// appendField omits an empty field: readers would see an empty value.
func appendField(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	dst = append(dst, name...)
	dst = append(dst, ": "...)
	dst = append(dst, value...)
	return append(dst, "\r\n"...)
}

// appendDate writes microseconds. Finer dates are allowed, but make widely used readers fail.
func appendDate(dst []byte, name string, t time.Time) []byte {
	if t.IsZero() {
		return dst
	}
	dst = append(dst, name...)
	dst = append(dst, ": "...)
	return t.UTC().AppendFormat(dst, "2006-01-02T15:04:05.000000Z\r\n")
}

// appendID writes the ID as a URI in angle brackets, which WARC 1.1 kept for these fields but not
// for WARC-Target-URI.
func appendID(dst []byte, name string, id ID) []byte {
	if id == (ID{}) {
		return dst
	}
	dst = append(dst, name...)
	dst = append(dst, ": <"...)
	dst = id.appendURI(dst)
	return append(dst, ">\r\n"...)
}

// appendAddr writes the plain address. A zone is the name of a local network interface, and may
// have any character.
func appendAddr(dst []byte, addr netip.Addr) []byte {
	if !addr.IsValid() {
		return dst
	}
	dst = append(dst, "WARC-IP-Address: "...)
	dst = addr.Unmap().WithZone("").AppendTo(dst)
	return append(dst, "\r\n"...)
}

// appendDigest writes base 32, as all tools do. They would not recognize hexadecimal as equal.
func appendDigest(dst []byte, name string, sum *[sha1.Size]byte) []byte {
	dst = append(dst, name...)
	dst = append(dst, ": sha1:"...)
	dst = base32.StdEncoding.AppendEncode(dst, sum[:]) // 20 bytes need no padding
	return append(dst, "\r\n"...)
}
