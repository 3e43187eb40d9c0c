package page

import "strings"

// element is what a tag means to a walker. Elements whose links are in the same attributes share
// one, even if one of them has no such attribute: nobody writes <img data=...>, and if somebody
// does it leads to something all the same.
type element uint8

const (
	elemNone     element = iota
	elemAnchor           // a, area
	elemFrame            // frame, iframe
	elemMedia            // whatever has src, srcset, data or poster
	elemSVGImage         // image, in SVG
	elemInput
	elemLink
	elemMeta
	elemBase
	elemForm // form, button
	elemTitle
	elemStyle
)

// elementOf returns what the element name is, in any case, and whether its content is text whatever
// it looks like. The content of noscript, noframes and noembed would be text to a browser with
// scripts, frames and plug-ins; a crawler has none.
func elementOf(name []byte) (e element, raw bool) {
	const longest = len("plaintext")
	if len(name) > longest || lengths[name[0]|0x20]&(1<<len(name)) == 0 {
		return elemNone, false
	}
	var lower [longest]byte
	for i, c := range name {
		lower[i] = lowerByte(c)
	}
	switch string(lower[:len(name)]) {
	case "a", "area":
		return elemAnchor, false
	case "frame":
		return elemFrame, false
	case "iframe":
		// What stands in it is for browsers that know no frames: there are none left.
		return elemFrame, true
	case "img", "source", "video", "audio", "track", "embed", "object":
		return elemMedia, false
	case "script":
		return elemMedia, true
	case "image":
		return elemSVGImage, false
	case "input":
		return elemInput, false
	case "link":
		return elemLink, false
	case "meta":
		return elemMeta, false
	case "base":
		return elemBase, false
	case "form", "button":
		return elemForm, false
	case "title":
		return elemTitle, true
	case "style":
		return elemStyle, true
	case "textarea", "xmp", "plaintext":
		return elemNone, true
	}
	return elemNone, false
}

// lengths holds, for the first letter of a name, a bit for each length that names of interest with
// this letter have. It spares most tags the closer look: span, div, p, td, li.
var lengths = func() (table [256]uint16) {
	for name := range strings.FieldsSeq(`a area frame iframe img source video audio track embed
		object script image input link meta base form button style title textarea xmp plaintext`) {
		table[name[0]] |= 1 << len(name)
	}
	return table
}()

func lowerByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// attr is an attribute that some element of a walker has. All others are skipped unread, also on
// the elements of interest.
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
	attrAction
	attrFormaction
	attrHTTPEquiv
	attrCount
)

// attrOf returns which attribute key is, in any case, or attrCount.
func attrOf(key []byte) attr {
	const longest = len("imagesrcset")
	if len(key) > longest {
		return attrCount
	}
	var lower [longest]byte
	for i, c := range key {
		lower[i] = lowerByte(c)
	}
	switch string(lower[:len(key)]) {
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
	case "action":
		return attrAction
	case "formaction":
		return attrFormaction
	case "http-equiv":
		return attrHTTPEquiv
	}
	return attrCount
}

// tag is a start tag. Its values are good until the next one is read.
type tag struct {
	element element
	value   [attrCount][]byte
	present uint16 // a bit for each attribute that is there; its value may still be empty
}

// has reports whether the tag has the attribute, be it empty.
func (t *tag) has(a attr) bool { return t.present&(1<<a) != 0 }

// hrefAttr returns which of the two attributes counts: SVG 2 prefers the one without prefix.
func (t *tag) hrefAttr() attr {
	if t.has(attrXlinkHref) && !t.has(attrHref) {
		return attrXlinkHref
	}
	return attrHref
}
