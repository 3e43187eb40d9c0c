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

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/internal/charset"
	"github.com/spinneret-go/spinneret/internal/weburl"
)

// find returns the version of a URL that was valid at a time, or the first one after it. If there
// is none, it returns that of the URL with the other scheme. A redirect from there to the URL itself
// takes the place of nothing.
func (v *Handler) find(p place) (found archive.Version, err error) {
	// If no version is that old, a resource that was fetched shortly after the page belongs to it.
	for _, look := range []func(string, time.Time) (archive.Version, error){v.archive.At, v.firstAfter} {
		for i, url := range []string{p.url.String(), withScheme(p.url)} {
			if url == "" {
				continue
			}
			found, err = look(url, p.moment)
			if !errors.Is(err, archive.ErrNotFound) && (err != nil || i == 0 || !v.leadsTo(found, p.url)) {
				return found, err
			}
		}
	}
	return archive.Version{}, archive.ErrNotFound
}

// leadsTo reports whether a version is a redirect to a URL.
func (v *Handler) leadsTo(version archive.Version, u weburl.URL) bool {
	if version.ContentStatus/100 != 3 {
		return false
	}
	c, err := v.open(version)
	if err != nil {
		return false
	}
	defer c.close()
	location := c.location()
	if location == "" {
		return false
	}
	from := u
	from.Scheme, _, _ = strings.Cut(version.URL, ":")
	to, err := weburl.Parse(location, &from)
	to.Fragment, to.HasFragment = "", false
	return err == nil && to.String() == u.String()
}

// firstAfter returns the first version of a URL that had none at a time. It halves the time up to
// the last version until nothing is between, so that it takes less than 64 lookups, and no memory
// for a long history.
func (v *Handler) firstAfter(url string, none time.Time) (first archive.Version, err error) {
	first, err = v.archive.At(url, time.Time{})
	for err == nil {
		half := none.Add(first.Time.Sub(none) / 2)
		if half = half.Truncate(time.Microsecond); !half.After(none) {
			return first, nil
		}
		earlier, failed := v.archive.At(url, half)
		switch {
		case failed == nil:
			first = earlier
		case errors.Is(failed, archive.ErrNotFound):
			none = half
		default:
			err = failed
		}
	}
	return first, err
}

// capture is an archived response, open for reading. It is not safe for concurrent use.
type capture struct {
	version archive.Version
	head    *warc.HTTP
	kind    string    // the Content-Type
	guessed bool      // there was none
	body    io.Reader // without content coding
	close   func()
}

// open opens the content of a version. The caller must close it.
func (v *Handler) open(version archive.Version) (*capture, error) {
	return openCapture(v.archive, version, v.maxBody)
}

// openAt opens what find finds.
func (v *Handler) openAt(p place) (*capture, error) {
	found, err := v.find(p)
	if err != nil {
		return nil, err
	}
	return v.open(found)
}

// openCapture is open with a bound on the decoded body.
func openCapture(a *archive.Archive, version archive.Version, maxBody int64) (*capture, error) {
	rec, err := a.Content(version)
	if err != nil {
		return nil, err
	}
	c := &capture{version: version, head: &warc.HTTP{}, close: func() { _ = rec.Close() }}
	var kinds []string
	if rec.Type() == "resource" || rec.Type() == "conversion" { // not HTTP messages
		kinds, c.body = []string{rec.Get("Content-Type")}, rec
	} else {
		if c.head, err = rec.HTTP(); err != nil {
			c.close()
			return nil, err
		}
		kinds = c.head.Values("Content-Type")
		c.body = c.head.Decoded(maxBody)
	}
	c.findKind(kinds)
	return c, nil
}

// findKind finds the Content-Type. A missing or invalid one is replaced by a guess from the bytes.
func (c *capture) findKind(fields []string) {
	media, label := contentType(fields)
	if len(fields) == 1 && len(fields[0]) <= maxKind {
		if whole, _, err := mime.ParseMediaType(fields[0]); err == nil && media != "" && whole == media {
			c.kind = fields[0] // browsers and we understand the same
		}
	}
	switch {
	case media == "":
		c.guessed = true
		start := bufio.NewReaderSize(c.body, sniffLen)
		c.body = start
		seen, _ := start.Peek(sniffLen)
		c.kind, _, _ = strings.Cut(http.DetectContentType(seen), ";") // a charset in it is no declared one
		if c.kind == "text/plain" {
			c.kind = c.sourceKind()
		}
	case strings.HasPrefix(media, "multipart/"):
		c.kind = "application/octet-stream"
	case c.kind != "":
	case label != "":
		c.kind = media + "; charset=" + label
	default:
		c.kind = media
	}
}

// loadedAs makes the Content-Type one with which a browser takes the response for what it loads. From a server
// without nosniff, which the handler sends, it takes images and scripts of any type, and style sheets without one.
func (c *capture) loadedAs(r *http.Request, own bool) {
	kind, sub, _ := strings.Cut(c.media(), "/")
	strict := strings.EqualFold(c.head.Get("X-Content-Type-Options"), "nosniff")
	dest := r.Header.Get("Sec-Fetch-Dest")
	switch accepted := r.Header.Get("Accept"); { // over plain HTTP browsers say no more
	case dest == "" && strings.HasPrefix(accepted, "image/"):
		dest = "image"
	case dest == "" && strings.HasPrefix(accepted, "text/css"):
		dest = "style"
	}
	switch {
	case dest == "image" && kind != "image":
		c.kind = "application/octet-stream"
	case strict:
	case dest == "style" && c.guessed:
		c.kind = "text/css"
	case dest == "script" && r.Header.Get("Sec-Fetch-Mode") == "no-cors": // modules need their type
		_, params, found := strings.Cut(c.kind, ";")
		foreign := !own && (c.isHTML() || isXML(c.media()) || strings.HasSuffix(sub, "json"))
		switch {
		case foreign, strings.HasSuffix(sub, "script"), kind == "image", kind == "audio", kind == "video", sub == "csv":
		case found && !c.guessed:
			c.kind = "text/javascript;" + params
		default:
			c.kind = "text/javascript"
		}
	}
}

// contentType returns the media type and the charset that Content-Type fields declare, as browsers
// understand them (Fetch Standard, section 2.2.2), which are less strict than RFC 9110: the last valid
// one of a list counts, and the first charset of it. media is "" if none is valid.
func contentType(fields []string) (media, label string) {
	for one := range strings.SplitSeq(strings.Join(fields, ","), ",") {
		one = strings.Trim(one, whitespace)
		end := strings.IndexAny(one, "; \t(")
		if end < 0 {
			end = len(one)
		}
		kind, sub, _ := strings.Cut(strings.ToLower(one[:end]), "/")
		if !isToken(kind) || !isToken(sub) || kind == "*" || end > maxKind {
			continue
		}
		if kind += "/" + sub; kind != media {
			media, label = kind, ""
		}
		for _, param := range strings.FieldsFunc(one[end:], func(r rune) bool { return strings.ContainsRune("; \t", r) }) {
			name, value, _ := strings.Cut(param, "=")
			if value = strings.Trim(value, `"'`); strings.EqualFold(name, "charset") && isToken(value) {
				label = value
				break
			}
		}
	}
	return media, label[:min(len(label), maxLabel)]
}

// isToken reports whether a text is a token of a field (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	return s != "" && strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~") == ""
}

// maxLabel is how much of the name of a charset is kept, which is longer than any.
const maxLabel = 40

// maxKind is the longest Content-Type that is served unchanged.
const maxKind = 200

// sniffLen is how many bytes http.DetectContentType examines.
const sniffLen = 512

// media returns the Content-Type without parameters.
func (c *capture) media() string {
	media, _, _ := strings.Cut(c.kind, ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// isHTML reports whether the content is a page.
func (c *capture) isHTML() bool { return isPage(c.media()) }

// isPage reports whether a media type is that of pages. XHTML is served as HTML, because XML
// requires that every tag is closed, and rewritten tags may not be.
func isPage(media string) bool {
	return media == "text/html" || media == "application/xhtml+xml"
}

// status returns the status code to serve. Codes that would make a browser ask for a password or
// retry are replaced. An error page keeps its status: a browser shows it in a frame, but runs no
// script from it.
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

// read returns a body of up to max bytes, as far as it can be read. If there is more, the error is
// [warc.ErrTooLarge], and the rest can still be read.
func (c *capture) read(max int64) (body []byte, err error) {
	body, err = io.ReadAll(io.LimitReader(c.body, max+1))
	if err == nil && int64(len(body)) > max {
		err = warc.ErrTooLarge
	}
	return body, err
}

// readAs returns the encoding of a text. Without a declared one it is UTF-8 if it looks like it, and
// windows-1252 if not.
func readAs(text []byte, kind string) *charset.Charset {
	c, known := encodingOf(text, kind)
	if !known && !looksUTF8(text) {
		return charset.Windows1252
	}
	return c
}

// toUTF8 converts a text to UTF-8. If the result is longer than max, whole is false, and the rest is missing.
func toUTF8(text []byte, kind string, max int64) (converted []byte, whole bool) {
	c := readAs(text, kind)
	switch valid := utf8.Valid(text); {
	case valid && c == nil:
		converted = text
	case c == nil:
		converted = c.Decode(nil, text)
	default: // decoders replace what is invalid
		converted, _ = io.ReadAll(io.LimitReader(c.NewReader(bytes.NewReader(text)), max+1))
	}
	whole = int64(len(converted)) <= max
	return bytes.TrimPrefix(converted, []byte("\xef\xbb\xbf")), whole
}

// looksUTF8 reports whether a text without a declared encoding is read as UTF-8, as the crawler does:
// the last character may be cut, and after letters in UTF-8 at the beginning, invalid bytes are
// mistakes.
func looksUTF8(text []byte) bool {
	head := text[:min(len(text), 1024)]
	return utf8.Valid(text) || charset.Letters(text) > 0 || len(head) < len(text) && charset.Letters(head) > 0
}

// declaredWithin is how much of a page may declare its encoding, in bytes. The HTML standard
// searches a kilobyte, but a browser that finds the declaration later starts again.
const declaredWithin = 64 << 10

// encodingOf returns the encoding that a text declares: by a mark, in its Content-Type, or in its
// beginning.
func encodingOf(text []byte, kind string) (c *charset.Charset, known bool) {
	if c, _, known = charset.Marked(text); known {
		return c, true
	}
	media, params, _ := mime.ParseMediaType(kind)
	if c, known = charset.Named(params["charset"]); known {
		return c, true
	}
	start := text[:min(len(text), declaredWithin)]
	if isPage(media) {
		for name, attrs := range startTags(start, false) {
			if name != "meta" {
				continue
			}
			if c, known = charset.Named(charsetOf(attrs)); known {
				return c.AsDeclared(), true
			}
		}
	}
	return charset.OfXML(start)
}

// charsetOf returns the label of the encoding in a meta element.
func charsetOf(attrs []attribute) string {
	label := value(attrs, "charset")
	if label != "" || !strings.EqualFold(value(attrs, "http-equiv"), "content-type") {
		return label
	}
	return charset.OfContent(value(attrs, "content"))
}

// sourceKind returns the Content-Type with which a document is shown as its source.
func (c *capture) sourceKind() string {
	buffered := bufio.NewReaderSize(c.body, declaredWithin)
	c.body = buffered
	start, _ := buffered.Peek(declaredWithin)
	return "text/plain; charset=" + readAs(start, c.kind).String()
}

// sheetUTF8 converts a style sheet to UTF-8, by the algorithm of the CSS Syntax standard, except
// that the page around a sheet is not known here.
func sheetUTF8(sheet []byte, kind string, max int64) (converted []byte, whole bool) {
	if _, params, _ := mime.ParseMediaType(kind); params["charset"] != "" {
		return toUTF8(sheet, kind, max)
	}
	if rest, ok := bytes.CutPrefix(sheet, []byte(`@charset "`)); ok {
		if name, _, ok := bytes.Cut(rest, []byte(`";`)); ok && len(name) < 40 {
			return toUTF8(sheet, "text/css; charset="+string(name), max)
		}
	}
	return toUTF8(sheet, kind, max)
}

// stamp formats a time for HTTP.
func stamp(t time.Time) string { return t.UTC().Format(http.TimeFormat) }
