package archive

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"time"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// Kind is the result of a visit.
type Kind uint8

// The kinds. They are on disk: do not change them.
const (
	Failed    Kind = iota // an error response: a status of 400 or more, or none
	Unchanged             // the same content as an earlier version, which stores it
	Changed               // new content
)

// String returns the name of the kind in lower case.
func (k Kind) String() string {
	switch k {
	case Failed:
		return "failed"
	case Unchanged:
		return "unchanged"
	}
	return "changed"
}

// entry is the index entry of a version, without its URL.
type entry struct {
	time   int64 // in microseconds since 1970
	file   uint32
	offset int64

	length    int64
	kind      Kind
	truncated bool
	coded     bool // the body has a content coding
	status    int
	digest    digest
	media     string
	url       string // if it cannot be derived from the key

	// The address of the body, if it is in another record. Then digest, media, truncated and coded are
	// those of the body. For an unchanged version, the zero address means unknown.
	content address

	prior    int64 // time of the last changed version, if this one is not changed
	hasPrior bool

	// posted is the length of the request record, if the method was not GET. A positive length
	// means that it precedes the record of the entry, a negative one that it follows.
	posted int64
}

// request is the location of the request record, if the method was not GET.
func (e *entry) request() address {
	switch {
	case e.posted > 0:
		return address{file: e.file, offset: e.offset - e.posted, length: e.posted}
	case e.posted < 0:
		return address{file: e.file, offset: e.offset + e.length, length: -e.posted}
	}
	return address{}
}

// address is the location of a record, and its status.
type address struct {
	file           uint32
	offset, length int64
	status         int
}

// append encodes an address, with numbers as short as possible.
func (a address) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(a.file))
	dst = binary.AppendUvarint(dst, uint64(a.offset))
	dst = binary.AppendUvarint(dst, uint64(a.length))
	return binary.AppendUvarint(dst, uint64(a.status))
}

// address is the location of the record of an entry.
func (e *entry) address() address { return address{e.file, e.offset, e.length, e.status} }

// body is the location of the body of a version. Its length is 0 if unknown.
func (e *entry) body() address {
	if e.content.length == 0 && e.kind != Unchanged {
		return e.address()
	}
	return e.content
}

// digest is the digest of a body, or "" if unknown. Equal bodies have equal digests if the
// algorithm is the same.
type digest string // the number of the algorithm and the sum, as on disk

// sums are the algorithms by number. They are on disk: do not change them, add some.
var sums = []struct {
	name string
	size int
}{
	1: {"sha1", sha1.Size}, 2: {"sha256", sha256.Size}, 3: {"md5", md5.Size},
	4: {"sha512", sha512.Size},
}

// parseDigest returns an empty digest if it cannot parse the text.
func parseDigest(labelled string) digest {
	algorithm, sum, ok := warc.Field{Value: labelled}.Digest()
	if !ok {
		return ""
	}
	for i := range sums {
		if sums[i].name == algorithm {
			return digest(append([]byte{byte(i)}, sum...))
		}
	}
	return ""
}

// sha1Digest makes a digest of a sum. It is called for each capture, and allocates only the string.
func sha1Digest(sum *[sha1.Size]byte) digest {
	var d [1 + sha1.Size]byte
	d[0] = 1
	copy(d[1:], sum[:])
	return digest(d[:])
}

// is reports whether d is that SHA-1, without allocating a string.
func (d digest) is(sum *[sha1.Size]byte) bool {
	return len(d) == 1+sha1.Size && d[0] == 1 && string(d[1:]) == string(sum[:])
}

// String returns the digest as in a WARC header.
func (d digest) String() string {
	if d == "" {
		return ""
	}
	return sums[d[0]].name + ":" + base32.StdEncoding.EncodeToString([]byte(d[1:]))
}

// The tail of a key follows the key of the URL and a NUL: time, file and offset, big endian, so
// that keys sort by time. File and offset distinguish two versions of one microsecond, and make
// indexing idempotent.
const (
	timeSize   = 8
	fileSize   = 4
	offsetSize = 6
	tailSize   = timeSize + fileSize + offsetSize
)

// maxOffset is the largest offset.
const maxOffset = 1<<(8*offsetSize) - 1

// appendKey appends the key of an entry. A NUL separates the URL from the rest. No URL contains
// one, so the versions of a URL are contiguous.
func appendKey(dst []byte, url string, e *entry) []byte {
	dst = append(dst, url...)
	dst = append(dst, 0)
	dst = appendTime(dst, e.time)
	dst = binary.BigEndian.AppendUint32(dst, e.file)
	var offset [8]byte
	binary.BigEndian.PutUint64(offset[:], uint64(e.offset))
	return append(dst, offset[8-offsetSize:]...)
}

// appendTime flips the sign bit so that times before 1970 sort before later ones.
func appendTime(dst []byte, t int64) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(t)^1<<63)
}

var errEntry = errors.New("archive: broken entry in the index")

// cutKey returns the key of the URL and sets the fields that are in a key.
func (e *entry) cutKey(key []byte) (url []byte, err error) {
	n := len(key) - tailSize - 1
	if n < 0 || key[n] != 0 {
		return nil, errEntry
	}
	tail := key[n+1:]
	e.time = int64(binary.BigEndian.Uint64(tail) ^ 1<<63)
	e.file = binary.BigEndian.Uint32(tail[timeSize:])
	e.offset = int64(binary.BigEndian.Uint16(tail[timeSize+fileSize:]))<<32 |
		int64(binary.BigEndian.Uint32(tail[timeSize+fileSize+2:]))
	return key[:n], nil
}

// Bits of the first byte of a value, besides the kind.
const (
	kindMask     = 3
	bitTruncated = 4
	bitURL       = 8
	bitContent   = 16
	bitPrior     = 32
	bitPosted    = 64
	bitCoded     = 128
)

// appendValue appends the value of an entry, with numbers as short as possible, since there is a
// value for every visit.
func (e *entry) appendValue(dst []byte) []byte {
	bits := byte(e.kind)
	if e.truncated {
		bits |= bitTruncated
	}
	if e.coded {
		bits |= bitCoded
	}
	if e.url != "" {
		bits |= bitURL
	}
	if e.content.length > 0 {
		bits |= bitContent
	}
	if e.hasPrior {
		bits |= bitPrior
	}
	if e.posted != 0 {
		bits |= bitPosted
	}
	dst = append(dst, bits)
	dst = binary.AppendUvarint(dst, uint64(e.length))
	dst = binary.AppendUvarint(dst, uint64(e.status))
	dst = append(dst, byte(len(e.digest)))
	dst = append(dst, e.digest...)
	dst = append(dst, byte(len(e.media)))
	dst = append(dst, e.media...)
	if e.content.length > 0 {
		dst = e.content.append(dst)
	}
	if e.hasPrior {
		dst = binary.AppendUvarint(dst, uint64(e.time-e.prior))
	}
	if e.posted != 0 {
		dst = binary.AppendUvarint(dst, uint64(e.posted<<1)^uint64(e.posted>>63)) // zigzag
	}
	return append(dst, e.url...)
}

// cutValue sets the fields that are in a value. It rejects values that appendValue does not write.
func (e *entry) cutValue(value []byte) error {
	c := cutter{value, true}
	bits := c.next()
	e.kind, e.truncated, e.coded = Kind(bits&kindMask), bits&bitTruncated != 0, bits&bitCoded != 0
	e.length, e.status = int64(c.uvarint()), int(c.uvarint())
	e.digest = digest(c.bytes())
	e.media = intern(c.bytes())
	e.content = address{}
	if bits&bitContent != 0 {
		e.content = c.address()
		c.ok = c.ok && e.content.length > 0
	}
	e.prior, e.hasPrior = 0, bits&bitPrior != 0
	if e.hasPrior {
		before := int64(c.uvarint())
		e.prior = e.time - before
		c.ok = c.ok && before >= 0 && e.prior <= e.time
	}
	e.posted = 0
	if bits&bitPosted != 0 {
		n := c.uvarint()
		e.posted = int64(n>>1) ^ -int64(n&1)
		c.ok = c.ok && e.posted != 0 && e.posted <= e.offset
	}
	e.url = ""
	if bits&bitURL != 0 {
		e.url = string(c.rest)
	} else {
		c.ok = c.ok && len(c.rest) == 0
	}
	known := e.digest == "" || e.digest[0] > 0 && int(e.digest[0]) < len(sums) &&
		len(e.digest) == 1+sums[e.digest[0]].size
	if !c.ok || !known || e.kind > Changed || bits&bitURL != 0 && e.url == "" ||
		e.length < 0 || e.status < 0 {
		return errEntry
	}
	return nil
}

// mediaTypes are the types of nearly all pages, shared by all entries.
var mediaTypes = map[string]string{}

func init() {
	for _, media := range []string{"text/html", "text/plain", "text/css", "text/xml", "image/jpeg",
		"image/png", "image/gif", "image/webp", "image/svg+xml", "application/javascript",
		"text/javascript", "application/json", "application/pdf", "application/xml",
		"application/xhtml+xml", "application/rss+xml", "application/octet-stream"} {
		mediaTypes[media] = media
	}
}

// intern returns a string that may be shared. A scan of the index would otherwise allocate the same
// few strings for every entry.
func intern(media []byte) string {
	if known, ok := mediaTypes[string(media)]; ok { // does not allocate
		return known
	}
	return string(media)
}

// cutter decodes one field after the other. A missing field makes ok false.
type cutter struct {
	rest []byte
	ok   bool
}

// next takes one byte.
func (c *cutter) next() byte {
	if len(c.rest) == 0 {
		c.ok = false
		return 0
	}
	b := c.rest[0]
	c.rest = c.rest[1:]
	return b
}

// uvarint rejects numbers that are not in their shortest form.
func (c *cutter) uvarint() uint64 {
	v, n := binary.Uvarint(c.rest)
	if n <= 0 || n > 1 && c.rest[n-1] == 0 {
		c.ok = false
		return 0
	}
	c.rest = c.rest[n:]
	return v
}

// take takes n bytes.
func (c *cutter) take(n uint64) []byte {
	if n > uint64(len(c.rest)) {
		c.ok = false
		return nil
	}
	b := c.rest[:n]
	c.rest = c.rest[n:]
	return b
}

// address takes an address written by address.append.
func (c *cutter) address() (a address) {
	file := c.uvarint()
	a = address{uint32(file), int64(c.uvarint()), int64(c.uvarint()), int(c.uvarint())}
	c.ok = c.ok && file == uint64(a.file) && a.offset >= 0 && a.offset <= maxOffset &&
		a.length >= 0 && a.status >= 0
	return a
}

// bytes takes a field after its length, which is one byte: digests and media types are short.
func (c *cutter) bytes() []byte { return c.take(uint64(c.next())) }

// microseconds returns a time of the index. Other readers accept no finer resolution of WARC dates.
func microseconds(t time.Time) int64 {
	// Beyond some 290,000 years the number would overflow. No version has such a time, but a query
	// may.
	const most = never/1_000_000 - 1
	switch s := t.Unix(); {
	case s > most:
		return never - 1
	case s < -most:
		return -never
	}
	return t.UnixMicro()
}

// ceiling returns the first time of the index that is not before t: what delimits times may be finer than these.
func ceiling(t time.Time) int64 {
	at := microseconds(t)
	if t.Nanosecond()%1000 > 0 && at < never-1 {
		at++
	}
	return at
}

// fromMicroseconds returns UTC, so that equal times are equal values.
func fromMicroseconds(t int64) time.Time { return time.UnixMicro(t).UTC() }
