package replay

import (
	"cmp"
	"strings"

	"github.com/spinneret-go/spinneret/internal/htmlattr"
	"github.com/spinneret-go/spinneret/internal/weburl"
)

// linker turns the URLs of one document into addresses of the handler. It is not safe for
// concurrent use.
type linker struct {
	base    weburl.URL     // the base of references
	page    string         // the URL of the document, without fragment
	owner   string         // of the document
	path    string         // prefix of the addresses
	scripts bool           // the document may run scripts
	charset string         // of the document as archived; "" means UTF-8
	encoder weburl.Encoder // of the document as archived, for queries; nil means UTF-8
	left    int            // of the total length of the rewritten URLs
	work    int            // total length of what references were resolved against

	// The addresses of a page for a person, and of what the document loads.
	view, load func(weburl.URL) string
}

// The total length of the rewritten URLs of a document is bounded by minLinks bytes, plus perLink
// for each of its own. Otherwise a long base and a million short references could turn a small
// document into one of any size.
const minLinks, perLink = 1 << 20, 3

// maxWork bounds the total length of what the references of a document are resolved against: a link
// to a place in the page is short, whatever the length of the page's URL.
const maxWork = 64 << 20

// usage is the purpose of a URL.
type usage uint8

const (
	asLink     usage = iota // followed by a person
	asImage                 // loaded as passive content: images, fonts, sound
	asDocument              // loaded as content that has URLs of its own, or runs
)

// nowhere replaces a forbidden URL where some URL is required.
const nowhere = "data:,"

// rewrite returns the replacement of a reference, or false if the reference must go because it does
// not resolve to a web page.
func (l *linker) rewrite(ref string, use usage) (string, bool) {
	if len(ref) > maxURL && !isPlainData(ref) {
		return "", false
	}
	l.work += len(ref) + len(l.base.Host) + len(l.base.Path) + len(l.base.Query)
	if l.left < 0 || l.work > maxWork {
		return "", false
	}
	url, ok := l.resolve(ref, use)
	l.left -= len(url)
	return url, ok
}

func (l *linker) resolve(ref string, use usage) (string, bool) {
	// Trim as browsers do, before looking for a number sign.
	trimmed := strings.TrimFunc(ref, func(r rune) bool { return r <= ' ' })
	if use != asLink && (trimmed == "" || trimmed[0] == '#') { // an empty one loads nothing
		return trimmed, len(trimmed) > 1
	}
	u, err := weburl.ParseEncoded(trimmed, &l.base, l.encoder)
	if err != nil {
		return "", false
	}
	if u.Scheme == "data" && use == asImage && isPassive(u.Path) {
		return u.String(), true
	}
	if !weburl.IsWeb(&u) || u.Host == "" {
		return "", false
	}
	u.Username, u.Password = "", ""
	fragment := ""
	if u.HasFragment {
		fragment = "#" + u.Fragment
	}
	u.Fragment, u.HasFragment = "", false
	switch {
	case use == asLink && fragment != "" && u.String() == l.page:
		return fragment, true // the frame only scrolls
	case use == asLink && !l.scripts:
		return l.path + l.view(u) + fragment, true
	}
	// Frames and style sheets need no separate path: they are recognized by their types.
	return l.path + l.load(u) + fragment, true
}

// isPlainData reports whether a reference is a data: URL that does not grow when it is written.
func isPlainData(ref string) bool {
	ref = strings.TrimLeft(ref, whitespace)
	return len(ref) > 5 && strings.EqualFold(ref[:5], "data:") &&
		!strings.ContainsFunc(ref, func(r rune) bool { return r < ' ' && r != '\n' && r != '\r' && r != '\t' || r > '~' })
}

// isPassive reports by its media type whether a data: URL contains no further URL that a browser
// would load. SVG loads nothing while it is used as an image.
func isPassive(path string) bool {
	media, _, found := strings.Cut(strings.ToLower(path), ",")
	if !found {
		return false
	}
	media, _, _ = strings.Cut(media, ";")
	if media == "" {
		return true // plain text, but an image if it is used as one
	}
	for _, kind := range []string{"image/", "img/", "font/", "audio/", "video/", "application/font-",
		"application/x-font-", "application/vnd.ms-fontobject", "application/octet-stream"} {
		if strings.HasPrefix(media, kind) {
			return true
		}
	}
	return false
}

const whitespace = htmlattr.Whitespace

// srcset rewrites a list of images with descriptors.
func (l *linker) srcset(list string) string {
	var out strings.Builder
	for {
		ref, descriptor, rest := htmlattr.CutImage(list)
		if ref == "" {
			return out.String()
		}
		list = rest
		url, ok := l.rewrite(ref, asImage)
		if !ok {
			continue
		}
		url = strings.TrimRight(url, ",") // at the end of the list it may end in a comma
		if out.Len() > 0 {
			out.WriteString(", ")
		}
		out.WriteString(url)
		for part := range strings.FieldsSeq(descriptor) {
			out.WriteString(" " + part)
		}
	}
}

// refresh rewrites the content of a meta refresh.
func (l *linker) refresh(content string) (string, bool) {
	wait, ref, ok := htmlattr.CutRefresh(content)
	if !ok || ref == "" {
		return "", false // reloading does not change an archived page
	}
	url, ok := l.rewrite(ref, asDocument)
	return cmp.Or(wait, "0") + ";url=" + url, ok
}
