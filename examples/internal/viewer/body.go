package viewer

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/net/html/charset"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// find returns the version of a URL that was valid at a time, or the first one after it. If there
// is none, the same URL with the other scheme counts.
func (v *Viewer) find(p place) (found archive.Version, err error) {
	urls := []string{p.url.String(), withScheme(p.url)}
	for _, url := range urls {
		if url == "" {
			continue
		}
		found, err = v.archive.At(url, p.moment)
		if !errors.Is(err, archive.ErrNotFound) {
			return found, err
		}
	}
	// There is none up to that time. What was found a moment after the page is what belongs to it.
	for _, url := range urls {
		if url == "" {
			continue
		}
		versions, err := v.archive.Versions(url)
		if err != nil {
			return found, err
		}
		if len(versions) > 0 {
			return v.archive.At(url, versions[0].Time)
		}
	}
	return found, archive.ErrNotFound
}

// capture is an archived answer that is open for reading. It is not safe for concurrent use.
type capture struct {
	version archive.Version
	head    *warc.HTTP
	kind    string    // the Content-Type
	body    io.Reader // without content coding
	close   func()
}

// open opens the content of a version. Close it when it was read.
func (v *Viewer) open(version archive.Version) (*capture, error) {
	rec, err := v.archive.Read(version.Content)
	if err != nil {
		return nil, err
	}
	c := &capture{version: version, head: &warc.HTTP{}, close: func() { _ = rec.Close() }}
	if rec.Type() == "resource" || rec.Type() == "conversion" { // no HTTP
		c.kind, c.body = rec.Get("Content-Type"), rec
	} else {
		if c.head, err = rec.HTTP(); err != nil {
			c.close()
			return nil, err
		}
		c.kind = c.head.Get("Content-Type")
		if err := c.decode(c.head.Get("Content-Encoding")); err != nil {
			c.close()
			return nil, err
		}
		if c.body != c.head.Body {
			// A small record can hold gigabytes of zeros.
			c.body = io.LimitReader(c.body, v.opts.MaxBody)
		}
	}
	c.settleKind()
	return c, nil
}

// settleKind replaces a Content-Type that is missing or makes no sense: by what the bytes look like
// or by one that does nothing.
func (c *capture) settleKind() {
	media, _, err := mime.ParseMediaType(c.kind)
	known := len(media) <= maxKind && (err == nil || errors.Is(err, mime.ErrInvalidMediaParameter))
	switch {
	case c.kind == "":
		start := bufio.NewReaderSize(c.body, sniffLen)
		c.body = start
		seen, _ := start.Peek(sniffLen)
		c.kind = http.DetectContentType(seen)
	case !known || !strings.Contains(media, "/") || strings.HasPrefix(media, "multipart/"):
		c.kind = "application/octet-stream"
	case err != nil || len(c.kind) > maxKind:
		c.kind = media
	}
}

// maxKind is how long a Content-Type may be to be passed on whole.
const maxKind = 200

// sniffLen is what http.DetectContentType looks at.
const sniffLen = 512

// media returns the Content-Type without parameters.
func (c *capture) media() string {
	media, _, _ := strings.Cut(c.kind, ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// isHTML tells whether it is a page. XHTML becomes HTML, as which it was written in most places:
// the tags that are written anew would not all be closed, and XML knows no half measures.
func (c *capture) isHTML() bool {
	return c.media() == "text/html" || c.media() == "application/xhtml+xml"
}

// status returns the status code to answer with. Those that would make a browser ask for a password
// or try again become others.
func (c *capture) status() int {
	switch s := c.head.Status(); {
	case s == 403, s == 404, s == 410, s == 451, s == 500, s == 503:
		return s
	case s >= 500:
		return http.StatusInternalServerError
	case s >= 400:
		return http.StatusNotFound
	}
	return http.StatusOK
}

// location returns where a redirect leads to, or "".
func (c *capture) location() string {
	switch c.head.Status() {
	case 301, 302, 303, 307, 308:
		return c.head.Get("Location")
	}
	return ""
}

// read returns a body of up to max bytes. If it is longer, whole is false, and the rest is still to
// be read. A body that ends in damage is returned as far as it could be read.
func (c *capture) read(max int64) (body []byte, whole bool) {
	body, _ = io.ReadAll(io.LimitReader(c.body, max+1))
	return body, int64(len(body)) <= max
}

// errCoding is returned for a body that cannot be decoded.
var errCoding = errors.New("viewer: unknown content coding")

// maxCodings is how many content codings may lie over each other. More than one is rare, and each
// has its window in memory.
const maxCodings = 3

// maxWindow is what RFC 9659 lets a zstd body demand of memory.
const maxWindow = 8 << 20

// decode takes the content codings off the body. Some that the head names were taken off before the
// page was archived: then its bytes show that.
func (c *capture) decode(codings string) error {
	c.body = c.head.Body
	list := strings.FieldsFunc(strings.ToLower(codings), func(r rune) bool {
		return r == ',' || r <= ' '
	})
	if len(list) > maxCodings {
		return errCoding
	}
	for _, coding := range slices.Backward(list) {
		if err := c.decodeOne(coding); err != nil {
			return err
		}
	}
	return nil
}

func (c *capture) decodeOne(coding string) (err error) {
	r := bufio.NewReader(c.body)
	c.body = r
	start, _ := r.Peek(4)
	switch coding {
	case "identity":
	case "gzip", "x-gzip":
		if bytes.HasPrefix(start, []byte{0x1f, 0x8b}) {
			c.body, err = gzip.NewReader(r)
		}
	case "deflate":
		// The coding is zlib's format, but some servers send the bare stream.
		if len(start) >= 2 && start[0]&0x0f == 8 && binary.BigEndian.Uint16(start)%31 == 0 {
			c.body, err = zlib.NewReader(r)
		} else {
			c.body = flate.NewReader(r)
		}
	case "br":
		c.body = brotli.NewReader(r)
	case "zstd":
		if bytes.HasPrefix(start, []byte{0x28, 0xb5, 0x2f, 0xfd}) {
			return c.decodeZstd(r)
		}
	default:
		return fmt.Errorf("%w %.40q", errCoding, coding)
	}
	return err
}

func (c *capture) decodeZstd(r io.Reader) error {
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return err
	}
	c.body = d
	c.close = func(next func()) func() { return func() { d.Close(); next() } }(c.close)
	return nil
}

// toUTF8 converts a page, by the HTML standard's steps to find its encoding.
func toUTF8(page []byte, kind string) []byte {
	e, name, certain := charset.DetermineEncoding(page, kind)
	// Only the first kilobyte was looked at. In many pages it has no letter beyond ASCII.
	if name != "utf-8" && (certain || !utf8.Valid(page)) {
		if converted, err := e.NewDecoder().Bytes(page); err == nil {
			page = converted
		}
	}
	return bytes.ToValidUTF8(bytes.TrimPrefix(page, []byte("\xef\xbb\xbf")), []byte("\uFFFD"))
}

// sheetUTF8 does so with a style sheet, by those of the CSS Syntax standard.
func sheetUTF8(sheet []byte, kind string) []byte {
	if _, params, err := mime.ParseMediaType(kind); err == nil && params["charset"] != "" {
		return toUTF8(sheet, kind)
	}
	if rest, ok := bytes.CutPrefix(sheet, []byte(`@charset "`)); ok {
		if name, _, ok := bytes.Cut(rest, []byte(`";`)); ok && len(name) < 40 {
			return toUTF8(sheet, "text/css; charset="+string(name))
		}
	}
	if utf8.Valid(sheet) {
		return toUTF8(sheet, "text/css; charset=utf-8")
	}
	return toUTF8(sheet, "text/css; charset=windows-1252")
}

// stamp returns a time as HTTP has it.
func stamp(t time.Time) string { return t.UTC().Format(http.TimeFormat) }
