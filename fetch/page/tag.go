package page

import (
	"bytes"
	"strings"
)

// element is what a start tag means to a walker. Elements whose links are in the same attributes
// share one, even if one of them lacks such an attribute: almost nobody writes <img data=...>, and
// if they do, it is a link anyway.
type element uint8

const (
	elemNone    element = iota
	elemAnchor          // a, area
	elemFrame           // iframe, frame
	elemMedia           // any element with src, srcset, data or poster
	elemGraphic         // in SVG: any element that needs the resource in its href
	elemInput
	elemLink
	elemMeta
	elemBase
	elemTitle
	elemStyle
)

// nameClass is what the scanner needs to know about the name of an HTML element.
type nameClass struct {
	element  element
	raw      bool // its content is text in any case
	shown    bool // to the reader, although it is raw
	svg      bool // it starts SVG, which has other parsing rules
	template bool // its content is no part of the page
}

// classOf returns the class of a name in any case. To a browser, the content of noscript, noframes and
// noembed is text that it does not show; it was written for clients such as crawlers, which read it.
func classOf(name []byte) nameClass {
	if len(name) > longestName || lengths[name[0]|0x20]&(1<<len(name)) == 0 {
		return nameClass{}
	}
	var lower [longestName]byte
	switch string(appendLower(lower[:0], name)) {
	case "a", "area":
		return nameClass{element: elemAnchor}
	case "frame":
		return nameClass{element: elemFrame}
	case "iframe":
		// Its content is for browsers that do not support frames; there are none left.
		return nameClass{element: elemFrame, raw: true}
	case "img", "image", "source", "video", "audio", "track", "embed", "object":
		return nameClass{element: elemMedia}
	case "script":
		return nameClass{element: elemMedia, raw: true}
	case "input":
		return nameClass{element: elemInput}
	case "link":
		return nameClass{element: elemLink}
	case "meta":
		return nameClass{element: elemMeta}
	case "base":
		return nameClass{element: elemBase}
	case "title":
		return nameClass{element: elemTitle, raw: true}
	case "style":
		return nameClass{element: elemStyle, raw: true}
	case "textarea", "xmp", "plaintext":
		return nameClass{raw: true, shown: true}
	case "svg":
		return nameClass{svg: true}
	case "template":
		return nameClass{template: true}
	}
	return nameClass{}
}

// isInline reports whether a tag with the name stands within a line of text: that of an element
// that marks up words, or of one that HTML does not have.
func isInline(name []byte) bool {
	if bytes.IndexByte(name, '-') >= 0 {
		return true
	}
	var lower [len("acronym")]byte
	return inline[string(appendLower(lower[:0], name))]
}

var inline = func() map[string]bool {
	names := make(map[string]bool)
	for name := range strings.FieldsSeq(`a abbr acronym b bdi bdo big cite code data del dfn em font i ins
		kbd label mark nobr output q ruby rb rtc s samp small span strike strong sub sup time tt u var wbr`) {
		names[name] = true
	}
	return names
}()

const longestName = len("plaintext")

// lengths has, for the first letter of a name, a bit for each length of interesting names with this
// letter. With it, most tags need no further examination: span, div, p, td, li.
var lengths = func() (table [256]uint16) {
	for _, name := range []string{"a", "area", "iframe", "img", "image", "source", "video", "audio",
		"track", "embed", "object", "script", "input", "link", "meta", "base",
		"title", "style", "textarea", "xmp", "plaintext", "svg",
		"frame", "template"} {
		table[name[0]] |= 1 << len(name)
	}
	return table
}()

// appendLower appends the name in lower case, or nothing if that exceeds the capacity: then it is none
// that matters.
func appendLower(dst, name []byte) []byte {
	if len(name) > cap(dst) {
		return dst
	}
	for _, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

// attr is an attribute of some element that a walker is interested in. All others are skipped
// unread, also on these elements.
type attr uint8

const (
	attrHref attr = iota
	attrXlinkHref
	attrSrc
	attrSrcset
	attrImagesrcset
	attrData
	attrPoster
	attrRel
	attrHreflang
	attrType
	attrName
	attrContent
	attrHTTPEquiv
	attrProperty
	attrID
	attrCharset
	attrCount
)

// attrOf returns which attribute key is, in any case, or attrCount.
func attrOf(key []byte) attr {
	var lower [len("imagesrcset")]byte
	switch string(appendLower(lower[:0], key)) {
	case "href":
		return attrHref
	case "xlink:href":
		return attrXlinkHref
	case "src":
		return attrSrc
	case "srcset":
		return attrSrcset
	case "imagesrcset":
		return attrImagesrcset
	case "data":
		return attrData
	case "poster":
		return attrPoster
	case "rel":
		return attrRel
	case "hreflang":
		return attrHreflang
	case "type":
		return attrType
	case "name":
		return attrName
	case "content":
		return attrContent
	case "http-equiv":
		return attrHTTPEquiv
	case "property":
		return attrProperty
	case "id":
		return attrID
	case "charset":
		return attrCharset
	}
	return attrCount
}

// tag is a start tag. Its values are valid until the next one is read.
type tag struct {
	element element
	foreign bool              // it is in SVG, not in HTML
	present uint32            // a bit for each attribute that is present, even if empty
	value   [attrCount][]byte // of those that are present
}

// has reports whether the tag has the attribute, even if it is empty.
func (t *tag) has(a attr) bool { return t.present&(1<<a) != 0 }

// get returns the value of an attribute, or nil.
func (t *tag) get(a attr) []byte {
	if !t.has(a) {
		return nil
	}
	return t.value[a]
}

// hrefAttr returns the attribute with the tag's target: SVG has two, of which SVG 2 prefers the one
// without prefix.
func (t *tag) hrefAttr() attr {
	if t.foreign && t.has(attrXlinkHref) && !t.has(attrHref) {
		return attrXlinkHref
	}
	return attrHref
}
