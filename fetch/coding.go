package fetch

import (
	"bytes"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
)

// ratioAllowance is what a compressed body may hold whatever MaxRatio says: a small page of
// repeated lines is no bomb.
const ratioAllowance = 64 << 10

// Decoder undoes one content coding. It is not safe for concurrent use.
//
// A Client uses each Decoder again and again, for one body after the other. What a Decoder takes
// in memory is its own affair, but no more of its output is asked for than the limits allow.
type Decoder interface {
	io.Reader
	// Reset makes it ready to decode what is read from r, which is a [*bytes.Reader].
	Reset(r io.Reader) error
}

// codec is a content coding that a Client can undo.
type codec struct {
	fits func(raw []byte) bool // whether raw can be of this coding at all
	pool sync.Pool             // of *unpacker
}

// unpacker is a Decoder with its input.
type unpacker struct {
	src bytes.Reader
	dec Decoder
}

// newCodecs returns the codecs by the names of their codings, with those of the caller. accept is
// the value of Accept-Encoding for them.
func newCodecs(more map[string]func() Decoder) (codecs map[string]*codec, accept string) {
	codecs = make(map[string]*codec)
	add := func(name string, fits func([]byte) bool, construct func() Decoder) {
		c := &codec{fits: fits}
		c.pool.New = func() any { return &unpacker{dec: construct()} }
		codecs[name] = c
	}
	add("gzip", isGzip, newGunzip)
	add("deflate", isAnything, newInflate)
	add("zstd", isZstd, newUnzstd)
	for name, construct := range more {
		add(strings.ToLower(name), isAnything, construct)
	}
	// Servers tend to take the first one that they know, so this is the order of preference.
	names := []string{"gzip", "zstd", "deflate"}
	for _, name := range slices.Sorted(maps.Keys(codecs)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return codecs, strings.Join(names, ", ")
}

func isAnything([]byte) bool { return true }

// decode undoes the content coding of raw, within the limits. What is of an unknown coding, or
// does not begin like its own, is returned as it is.
func (c *Client) decode(
	raw []byte, cut Truncation, codings []string, limit int64,
) ([]byte, Truncation) {
	coding := codingOf(codings)
	if coding == "" || len(raw) == 0 {
		return raw, cut
	}
	// Servers call plain pages gzip now and then. The page as it is helps a caller more than
	// nothing, and Truncated says that something is wrong.
	known := c.codecs[coding]
	if known == nil || !known.fits(raw) {
		return raw, CutCoding
	}
	// All of raw is there, so the ratio is a limit that is known beforehand, and a bomb costs no
	// more than that: there is no need to watch the two counts grow.
	why := CutLength
	if byRatio := c.ratioLimit(len(raw)); byRatio < limit {
		limit, why = byRatio, CutRatio
	}
	u := known.pool.Get().(*unpacker)
	body, over, err := u.unpack(c.buffers.get(firstGuess(coding, raw, limit)), raw, limit)
	known.pool.Put(u)
	switch {
	case over:
		return body, why
	// What was cut off on the wire ends in the middle of the coding; that is no second fault.
	case cut != Whole:
		return body, cut
	case err != nil:
		return body, CutCoding
	}
	return body, Whole
}

// ratioLimit returns how many bytes n compressed ones may become.
func (c *Client) ratioLimit(n int) int64 {
	if c.opts.MaxRatio < 0 {
		return math.MaxInt64 - 1
	}
	return ratioAllowance + int64(n)*int64(min(c.opts.MaxRatio, math.MaxInt32))
}

// unpack decodes at most limit bytes into buf, which grows, and says whether there are more. On an
// error it returns what came before it.
func (u *unpacker) unpack(
	buf, raw []byte, limit int64,
) (body []byte, over bool, err error) {
	u.src.Reset(raw)
	// The decoder outlives the page in a pool and must not keep it.
	defer u.src.Reset(nil)
	if err := u.dec.Reset(&u.src); err != nil {
		return nil, false, err
	}
	return readUpTo(buf, u.dec, limit, nil)
}

// codingOf returns the content coding that the fields name, "" for none. Several codings on top of
// each other have a name that nothing knows.
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

// maxFirstGuess keeps the first buffer within what an int of 32 bits and most memories can hold.
const maxFirstGuess = 64 << 20

// firstGuess returns the size of the first buffer for a decoded body. Markup shrinks to a fifth or
// less; gzip says how long its last member is, which is believed if it is near that.
func firstGuess(coding string, raw []byte, limit int64) int {
	guess := int64(len(raw)) * 5
	if coding == "gzip" && len(raw) >= 4 {
		guess = min(gzipSize(raw), int64(len(raw))*8)
	}
	return int(min(max(guess, 512), limit, maxFirstGuess) + 1)
}
