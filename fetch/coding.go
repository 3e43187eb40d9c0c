package fetch

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// ratioAllowance is what a compressed body may hold whatever MaxRatio says: a small page of
// repeated lines is no bomb.
const ratioAllowance = 64 << 10

// decode undoes the content coding of raw, within the limits. What cannot be decoded at all is
// returned as it is.
func (c *Client) decode(raw []byte, cut Truncation, codings []string) ([]byte, Truncation) {
	coding := codingOf(codings)
	if coding == "" || len(raw) == 0 {
		return raw, cut
	}
	// Servers call plain pages gzip now and then. The page as it is helps a caller more than
	// nothing, and Truncated says that something is wrong.
	if coding != "gzip" || !isGzip(raw) {
		return raw, CutCoding
	}
	// All of raw is there, so the ratio is a limit that is known beforehand, and a bomb costs no
	// more than that: there is no need to watch the two counts grow.
	limit, why := c.opts.MaxBody, CutLength
	if byRatio := c.ratioLimit(len(raw)); byRatio < limit {
		limit, why = byRatio, CutRatio
	}
	g, ok := c.gunzips.Get().(*gunzip)
	if !ok {
		g = new(gunzip)
	}
	body, over, err := g.decode(raw, limit)
	c.gunzips.Put(g)
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

// codingOf returns the content coding that the fields name, "" for none. Several codings on top of
// each other have a name that nothing knows.
func codingOf(fields []string) string {
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

func isGzip(b []byte) bool { return len(b) >= 2 && b[0] == 0x1f && b[1] == 0x8b }

// gunzip is a decoder that can be used again. It walks from member to member itself, because
// servers pad the last one with bytes that are none, and browsers do not mind.
type gunzip struct {
	src bytes.Reader
	zr  gzip.Reader
}

// decode returns at most limit bytes and whether there are more. On an error it returns what came
// before it.
func (g *gunzip) decode(raw []byte, limit int64) (body []byte, over bool, err error) {
	g.src.Reset(raw)
	// The decoder outlives the page in a pool and must not keep it.
	defer g.src.Reset(nil)
	if err := g.next(); err != nil {
		return nil, false, err
	}
	return readUpTo(g, firstGuess(raw, limit), limit, nil)
}

func (g *gunzip) next() error {
	if err := g.zr.Reset(&g.src); err != nil {
		return err
	}
	g.zr.Multistream(false)
	return nil
}

// Read implements io.Reader over all members.
func (g *gunzip) Read(p []byte) (int, error) {
	for {
		n, err := g.zr.Read(p)
		if n > 0 || err != io.EOF {
			if err == io.EOF {
				err = nil // the next Read returns it again
			}
			return n, err
		}
		if !g.more() {
			return 0, io.EOF
		}
		if err := g.next(); err != nil {
			return 0, err
		}
	}
}

// more reports whether another member follows.
func (g *gunzip) more() bool {
	var magic [2]byte
	n, _ := g.src.ReadAt(magic[:], g.src.Size()-int64(g.src.Len()))
	return isGzip(magic[:n])
}

// firstGuess returns the size of the first buffer: what the last member's trailer says, if that is
// not far from what text becomes.
func firstGuess(raw []byte, limit int64) int {
	guess := int64(0)
	if len(raw) >= 4 {
		guess = int64(binary.LittleEndian.Uint32(raw[len(raw)-4:]))
	}
	return int(min(max(guess, 512), int64(len(raw))*8, limit) + 1)
}
