package fetch

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"sync"

	"github.com/spinneret-go/spinneret/internal/content"
)

// ratioAllowance is the decoded size that is allowed whatever MaxRatio says: a small page of
// repeated lines is not a bomb.
const ratioAllowance = 64 << 10

// codings returns the value of Accept-Encoding: in order of preference, since servers tend to take
// the first one that they know.
func (o *Options) codings() string {
	if o.Brotli != nil {
		return "gzip, zstd, deflate, br"
	}
	return "gzip, zstd, deflate"
}

// decodes reports whether a list of codings can be decoded.
func (c *Client) decodes(codings string) bool {
	return codings != "" && (&content.Options{Brotli: c.opts.Brotli}).Known(codings)
}

// unpacker decodes a body that is in memory.
type unpacker struct {
	raw     bytes.Reader
	decoded content.Reader
}

var unpackers = sync.Pool{New: func() any { return new(unpacker) }}

// decodingContext ends when the work on a body does: when the caller leaves, or at the end of its time. The
// context of the exchange does not say that. A limit on the server ends it, too, and what has come before
// is still worth decoding.
func (b *bodyReader) decodingContext() (context.Context, context.CancelFunc) {
	if end := b.x.watch.decoding(); !end.IsZero() {
		return context.WithDeadline(b.x.parent, end)
	}
	return b.x.parent, func() {}
}

// decode decodes raw. A body of an unknown coding, or one that does not begin like its coding, is
// returned as it is.
func (b *bodyReader) decode(raw []byte, cut Kind) ([]byte, Kind) {
	if b.codings == "" || len(raw) == 0 {
		return raw, cut
	}
	// Some servers label plain pages as gzip. The page as it is helps a caller more than nothing,
	// and Truncated says that something is wrong.
	if !b.c.decodes(b.codings) || !content.Fits(b.codings, raw) {
		return raw, CutCoding
	}
	// All of raw is here, so the ratio is a limit known beforehand.
	limit, why := b.limit, CutLength
	if byRatio := b.c.opts.ratioLimit(int64(len(raw))); byRatio < limit {
		limit, why = byRatio, CutRatio
	}
	ctx, cancel := b.decodingContext()
	defer cancel()
	u := unpackers.Get().(*unpacker)
	u.raw.Reset(raw)
	u.decoded.Reset(&u.raw, b.codings, content.Options{Brotli: b.c.opts.Brotli, Max: limit, Until: ctx})
	body, over, err := b.unpack(ctx, u, raw, limit)
	late := ctx.Err() != nil
	u.decoded.Close()
	u.raw.Reset(nil) // or the pool would keep the page
	unpackers.Put(u)
	switch {
	case err == errMemory, err != nil && late && b.waited:
		return body, CutMemory
	case over || errors.Is(err, content.ErrTooLarge):
		return body, why
	// A body that was cut on the wire ends in the middle of its coding. That is not a second fault.
	case cut != Whole:
		return body, cut
	case err != nil && late:
		return body, CutTime
	case err != nil:
		return body, CutCoding
	}
	return body, Whole
}

// unpack reads raw, decoded by u, up to limit bytes, and reports whether there were more. With an
// error it returns what was decoded before.
func (b *bodyReader) unpack(
	ctx context.Context, u *unpacker, raw []byte, limit int64,
) (body []byte, over bool, err error) {
	others := content.Window(b.codings, raw)
	if len(raw) > smallBody {
		others += int64(cap(raw))
	}
	if others > smallBody && !b.reserve(ctx, others) {
		return nil, false, errMemory
	}
	g := growth{&b.c.buffers, min(smallBody, limit), firstGuess(b.codings, raw, limit), true}
	return b.fill(ctx, g, &u.decoded, limit, others, nil)
}

// ratioLimit returns the limit on the decoded size of n compressed bytes.
func (o *Options) ratioLimit(n int64) int64 {
	if o.MaxRatio < 0 {
		return math.MaxInt64 - 1
	}
	return ratioAllowance + n*int64(min(o.MaxRatio, math.MaxInt32))
}

// maxFirstGuess keeps the first buffer within 32 bits and reasonable memory.
const maxFirstGuess = 64 << 20

// firstGuess returns the size of the first buffer for a decoded body. Markup shrinks to a fifth or
// less. The length in a gzip trailer is used if it is plausible.
func firstGuess(codings string, raw []byte, limit int64) int64 {
	guess := int64(len(raw)) * 5
	if strings.HasSuffix(codings, "gzip") && len(raw) >= 4 {
		trailer := int64(binary.LittleEndian.Uint32(raw[len(raw)-4:]))
		guess = min(trailer, int64(len(raw))*8)
	}
	return min(max(guess, 512), limit, maxFirstGuess)
}
