// Package content decodes the content codings of HTTP bodies, within bounds: a small record can
// expand to gigabytes of zeros.
package content

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// Errors that callers may want to distinguish.
var (
	// ErrCoding means that a coding is unknown, or that there are too many.
	ErrCoding = errors.New("unknown content coding")

	// ErrTooLarge means that the decoded body exceeds a bound.
	ErrTooLarge = errors.New("decoded body too large")
)

const (
	maxCodings = 3       // more than one is rare, and each needs a window in memory
	maxWindow  = 8 << 20 // the largest window of a zstd body by RFC 9659
	maxRatio   = 200     // decoded bytes per coded byte; real pages stay below 100
	free       = 1 << 20 // decoded bytes to which the ratio does not apply
)

// Decode returns body without the codings that a Content-Encoding field lists. Some writers decode
// the body and keep the field, so gzip and zstd without their magic number are returned unchanged.
//
// Reading more than limit decoded bytes, or 200 times the coded ones beyond 1 MiB, fails with
// [ErrTooLarge]. Without codings neither bound applies: the stored body is as large.
func Decode(body io.Reader, codings string, limit int64) (io.Reader, error) {
	list := strings.FieldsFunc(strings.ToLower(codings), func(r rune) bool {
		return r == ',' || r <= ' '
	})
	if len(list) > maxCodings {
		return nil, fmt.Errorf("%w: a list of %d, over %d", ErrCoding, len(list), maxCodings)
	}
	coded := &counter{r: body}
	decoded := io.Reader(coded)
	for _, coding := range slices.Backward(list) {
		var err error
		if decoded, err = decodeOne(decoded, coding); err != nil {
			return nil, err
		}
	}
	if len(list) == 0 {
		return body, nil
	}
	return &bounded{r: decoded, coded: coded, limit: limit}, nil
}

func decodeOne(body io.Reader, coding string) (io.Reader, error) {
	r := bufio.NewReader(body)
	start, err := r.Peek(4)
	if len(start) == 0 {
		if err == io.EOF {
			return r, nil
		}
		return nil, err
	}
	switch coding {
	case "identity":
	case "gzip", "x-gzip":
		if bytes.HasPrefix(start, []byte{0x1f, 0x8b}) {
			return gzip.NewReader(r)
		}
	case "deflate":
		// The coding is the zlib format, but some servers send a raw deflate stream.
		if len(start) >= 2 && start[0]&0x0f == 8 && binary.BigEndian.Uint16(start)%31 == 0 {
			return zlib.NewReader(r)
		}
		return flate.NewReader(r), nil
	case "br":
		return brotli.NewReader(r), nil
	case "zstd":
		if bytes.HasPrefix(start, []byte{0x28, 0xb5, 0x2f, 0xfd}) {
			return newZstd(r)
		}
	default:
		return nil, fmt.Errorf("%w %.40q", ErrCoding, coding)
	}
	return r, nil
}

// newZstd needs no Close: with one decoder zstd starts no goroutine.
func newZstd(r io.Reader) (io.Reader, error) {
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow))
}

// counter counts the bytes that are read through it.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// bounded fails when a decoded body exceeds its bounds.
type bounded struct {
	r     io.Reader
	coded *counter
	limit int64
	n     int64
	err   error
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	// Read one byte past the limit, to distinguish a body that ends there from a longer one.
	if left := b.limit - b.n; int64(len(p)) > left {
		p = p[:left+1]
	}
	n, err := b.r.Read(p)
	b.n += int64(n)
	switch {
	case b.n > b.limit:
		n--
		err = fmt.Errorf("%w: more than %d bytes", ErrTooLarge, b.limit)
	case b.n > free && b.n/maxRatio > b.coded.n:
		err = fmt.Errorf("%w: more than %d times its coded size", ErrTooLarge, maxRatio)
	}
	b.err = err
	return n, err
}
