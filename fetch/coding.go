package fetch

import (
	"bufio"
	"bytes"
	"io"
	"math"
	"strings"
	"sync"
)

// ratioAllowance is the decoded size that is allowed whatever MaxRatio says: a small page of
// repeated lines is not a bomb.
const ratioAllowance = 64 << 10

// opener opens a reader that decodes one content coding of r.
type opener func(r io.Reader) (io.ReadCloser, error)

// codec is a content coding that a Client can decode.
type codec struct {
	fits func(head []byte) bool // whether a body that begins with head can be of this coding
	open opener
}

// newCodecs returns the codecs by the names of their codings, and the value of Accept-Encoding for
// them.
func newCodecs(brotli opener) (codecs map[string]codec, accept string) {
	codecs = map[string]codec{
		"gzip":    {isGzip, openGzip},
		"deflate": {isAnything, openDeflate},
		"zstd":    {isZstd, openZstd},
	}
	// In order of preference, since servers tend to take the first one that they know.
	accept = "gzip, zstd, deflate"
	if brotli != nil {
		codecs["br"] = codec{isAnything, brotli}
		accept += ", br"
	}
	return codecs, accept
}

func isAnything([]byte) bool { return true }

// knows reports whether a coding can be decoded.
func (c *Client) knows(coding string) bool {
	_, ok := c.codecs[coding]
	return ok
}

// unpacker is the source of a decoder.
type unpacker struct {
	raw bytes.Reader
	src *bufio.Reader
}

var unpackers = sync.Pool{New: func() any { return &unpacker{src: bufio.NewReader(nil)} }}

// decode decodes raw. A body of an unknown coding, or one that does not begin like its coding, is
// returned as it is.
func (b *bodyReader) decode(raw []byte, cut Kind) ([]byte, Kind) {
	if b.coding == "" || len(raw) == 0 {
		return raw, cut
	}
	// Some servers label plain pages as gzip. The page as it is helps a caller more than nothing,
	// and Truncated says that something is wrong.
	known, ok := b.c.codecs[b.coding]
	if !ok || !known.fits(raw) {
		return raw, CutCoding
	}
	// All of raw is here, so the ratio is a limit known beforehand.
	limit, why := b.limit, CutLength
	if byRatio := b.c.opts.ratioLimit(int64(len(raw))); byRatio < limit {
		limit, why = byRatio, CutRatio
	}
	u := unpackers.Get().(*unpacker)
	u.raw.Reset(raw)
	u.src.Reset(&u.raw)
	body, over, err := b.unpack(known.open, u.src, raw, limit)
	u.raw.Reset(nil) // or the pool would keep the page
	unpackers.Put(u)
	switch {
	case err == errMemory:
		return body, CutMemory
	case over:
		return body, why
	// A body that was cut on the wire ends in the middle of its coding. That is not a second fault.
	case cut != Whole:
		return body, cut
	case err != nil:
		return body, CutCoding
	}
	return body, Whole
}

// unpack decodes raw from src, up to limit bytes, and reports whether there were more. With an
// error it returns what was decoded before.
func (b *bodyReader) unpack(
	open opener, src io.Reader, raw []byte, limit int64,
) (body []byte, over bool, err error) {
	r, err := open(src)
	if r != nil {
		defer r.Close()
	}
	if err != nil {
		return nil, false, err
	}
	guess := firstGuess(b.coding, raw, limit)
	small := limit
	if b.held.n == 0 {
		small = min(limit, smallBody)
	}
	g := growth{&b.c.buffers, small, guess}
	body, over, err = g.read(b.c.buffers.get(min(guess, small)+1), r, nil)
	if !over || small == limit {
		return body, over, err
	}
	if !b.reserve(roundUp(limit + 1)) {
		return body, false, errMemory
	}
	body = b.c.buffers.grow(body[:small+1], min(max(guess, 2*small), limit)+1)
	g.limit = limit
	return g.read(body, r, nil)
}

// ratioLimit returns the limit on the decoded size of n compressed bytes.
func (o *Options) ratioLimit(n int64) int64 {
	if o.MaxRatio < 0 {
		return math.MaxInt64 - 1
	}
	return ratioAllowance + n*int64(min(o.MaxRatio, math.MaxInt32))
}

// codingOf returns the content coding that the fields name, "" for none. Several codings on top of
// each other get a name that no codec has.
func codingOf(fields []string) string {
	if len(fields) == 0 {
		return ""
	}
	var coding string
	for name := range strings.SplitSeq(strings.ToLower(strings.Join(fields, ",")), ",") {
		name = strings.TrimSpace(name)
		switch name {
		case "", "identity":
			continue
		case "x-gzip":
			name = "gzip"
		}
		if coding != "" {
			return "several"
		}
		coding = name
	}
	return coding
}

// maxFirstGuess keeps the first buffer within 32 bits and reasonable memory.
const maxFirstGuess = 64 << 20

// firstGuess returns the size of the first buffer for a decoded body. Markup shrinks to a fifth or
// less. The length in a gzip trailer is used if it is plausible.
func firstGuess(coding string, raw []byte, limit int64) int64 {
	guess := int64(len(raw)) * 5
	if coding == "gzip" && len(raw) >= 4 {
		guess = min(gzipSize(raw), int64(len(raw))*8)
	}
	return min(max(guess, 512), limit, maxFirstGuess)
}
