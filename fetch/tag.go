package fetch

import "golang.org/x/net/html"

// element is what a tag means to a walker. Elements with the same attributes share one.
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
	elemFallback // what browsers with scripts, frames or plug-ins do not show
)

func elementOf(name []byte) element {
	switch string(name) {
	case "a", "area":
		return elemAnchor
	case "iframe", "frame":
		return elemFrame
	case "img", "script", "source", "video", "audio", "track", "embed", "object":
		return elemMedia
	case "image":
		return elemSVGImage
	case "input":
		return elemInput
	case "link":
		return elemLink
	case "meta":
		return elemMeta
	case "base":
		return elemBase
	case "noscript", "noframes", "noembed":
		return elemFallback
	}
	return elemNone
}

// attr is an attribute that some element of a walker has.
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
	attrType
	attrName
	attrContent
	attrHTTPEquiv
	attrCount
)

func attrOf(key []byte) attr {
	switch string(key) {
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
	case "type":
		return attrType
	case "name":
		return attrName
	case "content":
		return attrContent
	case "http-equiv":
		return attrHTTPEquiv
	}
	return attrCount
}

// tag is a start tag. Its values are good until the tokenizer moves on.
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

// read takes the tokenizer's present tag, and reports whether it can have links. The tokenizer
// copies each name and value that it is asked for, so that the name is looked up in the raw bytes
// first: most tags of a page are of no interest.
func (t *tag) read(z *html.Tokenizer) bool {
	var lower [16]byte
	t.element = elementOf(lowerName(&lower, z.Raw()))
	switch t.element {
	case elemNone:
		return false
	case elemFallback:
		// The tokenizer takes the content for text, as a browser does that runs scripts.
		z.NextIsNotRawText()
		return false
	}
	t.value, t.present = [attrCount][]byte{}, 0
	for more := true; more; {
		var key, value []byte
		key, value, more = z.TagAttr()
		if a := attrOf(key); a < attrCount {
			t.value[a] = value
			t.present |= 1 << a
		}
	}
	return true
}

// lowerName returns the name of the tag raw in lower case, cut at the buffer's length, which is
// longer than any name of interest.
func lowerName(buf *[16]byte, raw []byte) []byte {
	n := 0
	for _, c := range raw[1:] {
		switch c {
		case ' ', '\n', '\r', '\t', '\f', '/', '>':
			return buf[:n]
		}
		if n == len(buf) {
			break
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		buf[n] = c
		n++
	}
	return buf[:n]
}
