package replay

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	htmlcharset "golang.org/x/net/html/charset"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/internal/charset"
)

// find returns the version of a URL that was valid at a time, or the first one after it. If there
// is none, it returns that of the URL with the other scheme.
func (v *Handler) find(p place) (found archive.Version, err error) {
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
	// No version is that old. A resource that was fetched shortly after the page belongs to it.
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

// capture is an archived response, open for reading. It is not safe for concurrent use.
type capture struct {
	version archive.Version
	head    *warc.HTTP
	kind    string    // the Content-Type
	body    io.Reader // without content coding
	close   func()
}

// open opens the content of a version. The caller must close it.
func (v *Handler) open(version archive.Version) (*capture, error) {
	return openCapture(v.archive, version, v.maxBody)
}

// openCapture is open with a bound on the decoded body.
func openCapture(a *archive.Archive, version archive.Version, maxBody int64) (*capture, error) {
	rec, err := a.Content(version)
	if err != nil {
		return nil, err
	}
	c := &capture{version: version, head: &warc.HTTP{}, close: func() { _ = rec.Close() }}
	if rec.Type() == "resource" || rec.Type() == "conversion" { // not HTTP messages
		c.kind, c.body = rec.Get("Content-Type"), rec
	} else {
		if c.head, err = rec.HTTP(); err != nil {
			c.close()
			return nil, err
		}
		c.kind = c.head.Get("Content-Type")
		c.body = c.head.Decoded(maxBody)
	}
	c.normalizeKind()
	return c, nil
}

// normalizeKind replaces a missing Content-Type by a guess from the bytes, and an invalid one by a
// passive type.
func (c *capture) normalizeKind() {
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

// maxKind is the longest Content-Type that is served unchanged.
const maxKind = 200

// sniffLen is how many bytes http.DetectContentType examines.
const sniffLen = 512

// media returns the Content-Type without parameters.
func (c *capture) media() string {
	media, _, _ := strings.Cut(c.kind, ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// isHTML reports whether the content is a page. XHTML is served as HTML, because XML requires that
// every tag is closed, and rewritten tags may not be.
func (c *capture) isHTML() bool {
	return c.media() == "text/html" || c.media() == "application/xhtml+xml"
}

// status returns the status code to serve. Codes that would make a browser ask for a password or
// retry are replaced.
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

// location returns the target of a redirect, or "".
func (c *capture) location() string {
	switch c.head.Status() {
	case 301, 302, 303, 307, 308:
		return c.head.Get("Location")
	}
	return ""
}

// read returns a body of up to max bytes. If it is longer, whole is false, and the rest can still
// be read. A damaged body is returned as far as it can be read.
func (c *capture) read(max int64) (body []byte, whole bool) {
	body, _ = io.ReadAll(io.LimitReader(c.body, max+1))
	return body, int64(len(body)) <= max
}

// toUTF8 converts a page to UTF-8. It finds the encoding by the algorithm of the HTML standard. If
// the result is longer than max, whole is false, and the rest is missing.
func toUTF8(page []byte, kind string, max int64) (converted []byte, whole bool) {
	_, name, certain := htmlcharset.DetermineEncoding(page, kind)
	c, _ := charset.Named(name)
	// Only the first kilobyte was examined. In many pages that is all ASCII.
	switch valid := utf8.Valid(page); {
	case valid && (c == nil || !certain):
		converted = page
	case c == nil:
		converted = c.Decode(nil, page)
	default: // decoders replace what is invalid
		converted, _ = io.ReadAll(io.LimitReader(c.NewReader(bytes.NewReader(page)), max+1))
	}
	whole = int64(len(converted)) <= max
	return bytes.TrimPrefix(converted, []byte("\xef\xbb\xbf")), whole
}

// sheetUTF8 converts a style sheet to UTF-8, by the algorithm of the CSS Syntax standard.
func sheetUTF8(sheet []byte, kind string, max int64) (converted []byte, whole bool) {
	if _, params, err := mime.ParseMediaType(kind); err == nil && params["charset"] != "" {
		return toUTF8(sheet, kind, max)
	}
	if rest, ok := bytes.CutPrefix(sheet, []byte(`@charset "`)); ok {
		if name, _, ok := bytes.Cut(rest, []byte(`";`)); ok && len(name) < 40 {
			return toUTF8(sheet, "text/css; charset="+string(name), max)
		}
	}
	if utf8.Valid(sheet) {
		return toUTF8(sheet, "text/css; charset=utf-8", max)
	}
	return toUTF8(sheet, "text/css; charset=windows-1252", max)
}

// stamp formats a time for HTTP.
func stamp(t time.Time) string { return t.UTC().Format(http.TimeFormat) }
