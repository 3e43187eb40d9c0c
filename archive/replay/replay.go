package replay

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/internal/weburl"
)

// replay serves archived content to the frame of a view: the page and its resources.
func (v *Handler) replay(w http.ResponseWriter, r *http.Request, tail string) {
	owner, tail, _ := strings.Cut(tail, "/")
	seal, tail, _ := strings.Cut(tail, "/")
	p, ok := parsePlace(tail)
	switch {
	case ok && isNavigation(r):
		// In a separate window it would lack the frame, whose policy prevents scripts from
		// navigating to the live web. The address may also be one of an earlier run.
		v.secure(w, r)
		v.redirectTo(w, at(viewPath, p.moment, p.url.String()))
		return
	case !ok || !v.permits(owner, seal, p):
		v.secure(w, r)
		http.Error(w, "Page not found.", http.StatusNotFound)
		return
	case framed(r) && owner != v.owner(p.url):
		// Another site in a frame. The page around it cannot read where a redirect leads.
		v.archived(w, r, p, v.owner(p.url), served{})
		v.redirectTo(w, v.replayAddress(v.owner(p.url), p))
		return
	}
	p.url = v.stored(p.url) // which tells what is in the archive
	// If a browser does not send the destination of the request, no script runs.
	scripts := v.opts.Scripts && framed(r)
	c, err := v.openAt(p)
	if err != nil {
		v.absent(w, r, p, err)
		return
	}
	defer func() { c.close() }()
	if v.redirect(w, r, p, owner, c) {
		return
	}
	c.loadedAs(r, owner == v.owner(p.url))
	h := w.Header()
	h.Set("Memento-Datetime", stamp(c.version.Time)) // RFC 7089, for tools that compare archives
	h.Set("X-Archive-Status", strconv.Itoa(c.version.Status))
	if language := c.head.Get("Content-Language"); isPlainValue(language) {
		h.Set("Content-Language", language)
	}
	v.show(w, r, p, owner, c, scripts)
}

// framed reports whether the response is for a frame. Scripts may only run there.
func framed(r *http.Request) bool {
	dest := r.Header.Get("Sec-Fetch-Dest")
	return dest == "iframe" || dest == "frame"
}

// isPlainValue reports whether an archived field may be sent.
func isPlainValue(s string) bool {
	return s != "" && len(s) < 100 && !strings.ContainsFunc(s, func(r rune) bool {
		return r < ' ' || r > '~'
	})
}

// linkerAt returns the linker of a document.
func (v *Handler) linkerAt(p place, url, owner string, scripts bool) *linker {
	base, err := parseURL(url)
	if err != nil {
		base = p.url
	}
	return &linker{base: base, page: base.String(), owner: owner, scripts: scripts,
		view: func(u weburl.URL) string { return at(viewPath, p.moment, u.String()) },
		load: func(u weburl.URL) string { return v.replayAddress(owner, place{p.moment, u}) }}
}

// show writes archived content. Pages and style sheets are rewritten, unless they are too long.
func (v *Handler) show(w http.ResponseWriter, r *http.Request, p place, owner string, c *capture,
	scripts bool) {
	page := c.isHTML()
	if page || c.media() == "text/css" {
		// Relative URLs are relative to the URL found, which may have the other scheme.
		links := v.linkerAt(p, c.version.URL, owner, scripts)
		links.path = v.opts.Base
		if v.rewrite(w, r, p, c, links) {
			return
		}
	}
	kind := c.kind
	if dest := r.Header.Get("Sec-Fetch-Dest"); framed(r) || dest == "object" || dest == "embed" ||
		dest == "" {
		switch {
		case c.media() == svg && dest != "":
			v.showPicture(w, r, p, owner)
			return
		case c.media() == svg:
			// The browser does not say whether it is for an image, which ignores this.
			w.Header().Set("Content-Disposition", "attachment")
		case page || isXML(c.media()):
			kind = c.sourceKind()
		case dest != "" && !isShown(c.media()):
			kind = "application/octet-stream" // for a signed exchange a browser asks the live web
		}
	}
	w.Header().Set("Content-Type", kind)
	v.archived(w, r, p, owner, served{c.media(), scripts, false, v.isShared(c, owner)})
	w.WriteHeader(c.status())
	c.send(w, r)
}

// A document that is not rewritten would be a hole in the policy, which does not cover preconnect
// links. So only pages are documents: XML is shown as its source, and SVG as an image.

// svg is the type that is an image or a document, depending on where it is used.
const svg = "image/svg+xml"

// isXML reports whether browsers parse a media type as XML.
func isXML(media string) bool {
	return media == "text/xml" || media == "application/xml" || media == "text/xsl" ||
		media == "text/rdf" || strings.HasSuffix(media, "+xml")
}

// showPicture writes a page with only an image.
func (v *Handler) showPicture(w http.ResponseWriter, r *http.Request, p place, owner string) {
	v.archived(w, r, p, owner, served{rewritten: true})
	v.writePage(w, http.StatusOK, "picture", frameOf{Title: p.url.String(),
		Page: v.replayAddress(owner, p)})
}

// send writes the body. If that fails, the connection ends: otherwise a browser would take the part
// that could be read for the whole.
func (c *capture) send(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		return
	}
	out := patiently(w, r)
	if _, err := io.Copy(struct{ io.Writer }{out}, c.body); err != nil { // not all at once
		panic(http.ErrAbortHandler)
	}
	out.end()
}

// rewrite serves a page or a style sheet with rewritten URLs. It is false if that is too long, and c is
// at its beginning again.
func (v *Handler) rewrite(w http.ResponseWriter, r *http.Request, p place, c *capture,
	links *linker) bool {
	c.close() // the request may wait, and a decoder takes megabytes
	c.body, c.head.Body, c.close = nil, nil, func() {}
	for i, room := range []int64{min(smallPage, v.maxRewrite), v.maxRewrite} {
		giveBack, ok := v.take(w, r, []*budget{v.small, v.memory}[i], room*perByte)
		if !ok {
			return true // nobody waits for an answer
		}
		again, err := v.open(c.version)
		if err != nil {
			giveBack()
			v.absent(w, r, p, err) // erased while the request waited
			return true
		}
		again.kind = c.kind
		ok = v.rewriteWithin(w, r, p, again, links, room)
		again.close()
		giveBack()
		if ok {
			return true
		}
	}
	again, err := v.open(c.version)
	if err != nil {
		v.absent(w, r, p, err)
		return true
	}
	again.kind = c.kind
	*c = *again
	return false
}

// rewriteWithin is rewrite for a document of up to room bytes, also in UTF-8.
func (v *Handler) rewriteWithin(w http.ResponseWriter, r *http.Request, p place, c *capture,
	links *linker, room int64) bool {
	body, _ := c.read(room) // a damaged page is shown as far as it can be read
	whole := int64(len(body)) <= room
	if !whole {
		return false
	}
	page := c.isHTML()
	if page {
		encoding := readAs(body, c.kind)
		if links.encoder = encoding.Encoder(); links.encoder != nil {
			links.charset = encoding.String()
		}
		body, whole = toUTF8(body, c.kind, room)
		body = asHTML(body, c.kind)
	} else {
		body, whole = sheetUTF8(body, c.kind, room)
	}
	if !whole || int64(len(body)+2*bytes.Count(body, []byte{0})) > room { // a NUL may become U+FFFD
		return false
	}
	links.left = minLinks + perLink*len(body)
	kind := "text/css"
	if page {
		kind = "text/html"
	}
	w.Header().Set("Content-Type", kind+"; charset=utf-8")
	v.archived(w, r, p, links.owner, served{c.media(), links.scripts, page,
		v.isShared(c, links.owner)})
	w.WriteHeader(c.status())
	if r.Method == http.MethodHead {
		return true
	}
	out := bufio.NewWriterSize(w, 32<<10)
	if page {
		rewriteHTML(out, body, links)
	} else {
		rewriteCSS(out, string(body), links)
	}
	_ = out.Flush()                           // the browser may have disconnected
	_ = http.NewResponseController(w).Flush() // before the deadline ends
	return true
}

// redirect serves an archived redirect as a redirect within the archive.
func (v *Handler) redirect(w http.ResponseWriter, r *http.Request, p place, owner string,
	c *capture) bool {
	location := c.location()
	if location == "" {
		return false
	}
	links := v.linkerAt(p, c.version.URL, owner, true)
	address, ok := links.rewrite(location, asDocument)
	if !ok {
		return false
	}
	if u, err := weburl.Parse(location, &links.base); err == nil {
		// If only one scheme of a URL was archived, it stands in for the other. Then a redirect
		// from one scheme to the other would be a loop.
		next, err := v.find(place{p.moment, u})
		loop := err == nil && next.Location == c.version.Location
		// After a redirect, a policy allows all addresses of the handler.
		if loop || siteOf(u) != siteOf(p.url) && !embeds(r) {
			v.absent(w, r, p, archive.ErrNotFound)
			return true
		}
	}
	v.archived(w, r, p, owner, served{shared: v.isShared(c, owner)})
	v.redirectTo(w, address)
	return true
}

// absent responds to a request for a missing page. Only in a frame is it a page; elsewhere a short
// text is enough for a broken image or style sheet.
func (v *Handler) absent(w http.ResponseWriter, r *http.Request, p place, err error) {
	v.archived(w, r, p, v.owner(p.url), served{rewritten: true})
	for _, name := range []string{"Memento-Datetime", "X-Archive-Status", "Content-Language"} {
		w.Header().Del(name) // of a version that was found at first
	}
	code, text := http.StatusNotFound, "This is not in the archive."
	if !errors.Is(err, archive.ErrNotFound) {
		code, text = http.StatusBadGateway, "The archive cannot read this."
	}
	if !framed(r) {
		http.Error(w, text, code)
		return
	}
	v.writePage(w, code, "absent", frameOf{Title: text, Query: p.url.String()})
}

// download sends the archived body as a file to save.
func (v *Handler) download(w http.ResponseWriter, r *http.Request, tail string) {
	seal, tail, _ := strings.Cut(tail, "/")
	p, ok := v.placeAt(tail)
	switch {
	case !ok:
		v.fail(w, http.StatusBadRequest, "Invalid address", "A time and a URL are needed.")
		return
	case !hmac.Equal([]byte(seal), []byte(v.fileSeal(p))):
		v.redirectTo(w, at(viewPath, p.moment, p.url.String()))
		return
	}
	c, err := v.openAt(p)
	if err != nil {
		v.missing(w, p, err, 0)
		return
	}
	defer c.close()
	h := w.Header()
	// With its own type, the user could still tell a browser to open it here.
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", `attachment; filename="`+fileName(p.url)+`"`)
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	c.send(w, r)
}

// maxFileName bounds the name of a file, in bytes. The end is kept, since it has the extension.
const maxFileName = 80

// fileName returns a file name from the last segment of a path. It has no characters that are
// special in a header or a shell, and is not that of a hidden file.
func fileName(u weburl.URL) string {
	name := u.Path[strings.LastIndexByte(u.Path, '/')+1:]
	name = strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (isNameByte(byte(r)) || r == '.') {
			return r
		}
		return '_'
	}, name)
	name = strings.TrimLeft(name[max(0, len(name)-maxFileName):], ".")
	if name == "" {
		return "index.html"
	}
	return name
}
