package replay

import (
	"slices"
	"strings"
)

// attribute is an attribute of a tag from the tokenizer: the name in lower case, the value with
// entities decoded.
type attribute struct{ name, value string }

// treatment is how an attribute is rewritten.
type treatment uint8

const (
	keep     treatment = iota
	drop               // useless in an archive, or points outside it
	link               // a URL that a person follows
	picture            // a URL of passive content
	document           // a URL of content that loads more content, or runs
	pictures           // a list of images
	style              // CSS: declarations, or a value that may have url()
	nested             // a whole document
)

// treatments are the treatments of attributes by name. The element hardly matters: browsers ignore
// attributes that an element does not know.
var treatments = map[string]treatment{
	// They send data, or report a click.
	"action": drop, "formaction": drop, "formtarget": drop, "ping": drop, "attributionsrc": drop,
	// They change the base of other URLs, or name obsolete programs.
	"codebase": drop, "xml:base": drop, "archive": drop, "classid": drop, "code": drop,
	// Browsers do not load them, and users do not follow them.
	"cite": drop, "longdesc": drop, "profile": drop, "manifest": drop,
	// They control loading, which the handler decides: a rewritten sheet does not match its
	// checksum, and a CORS request would be refused.
	"crossorigin": drop, "integrity": drop, "nonce": drop, "referrerpolicy": drop,
	// They control where content is shown, and its permissions. In a nested sandbox, links could
	// not be followed.
	"allow": drop, "credentialless": drop, "csp": drop, "sandbox": drop, "target": drop,
	"download": drop,

	"href": picture, "xlink:href": picture, "src": picture, "poster": picture,
	"background": picture, "dynsrc": picture, "lowsrc": picture, "icon": picture,
	"srcset": pictures, "imagesrcset": pictures, "data": document, "srcdoc": nested,

	// In SVG their values may contain url(); in HTML they mean nothing.
	"style": style, "fill": style, "stroke": style, "filter": style, "mask": style,
	"clip-path": style, "cursor": style, "marker": style, "marker-start": style,
	"marker-mid": style, "marker-end": style,
}

// ofElements are the exceptions: attributes that are links in some elements, and loaded in others.
var ofElements = map[string]map[string]treatment{
	"a":      {"href": link, "xlink:href": link, "rel": drop}, // a noreferrer would be refused
	"area":   {"href": link, "rel": drop},
	"script": {"src": document, "href": document, "xlink:href": document},
	"iframe": {"src": document}, "frame": {"src": document}, "embed": {"src": document},
	"portal": {"src": document}, "fencedframe": {"src": document}, "bgsound": {"src": picture},
	"use": {"href": document, "xlink:href": document},
}

// treat returns the treatment of an attribute of an element.
func (p *pageRewriter) treat(element, name string) treatment {
	if t, ok := ofElements[element][name]; ok {
		return t
	}
	if t, ok := treatments[name]; ok {
		return t
	}
	if strings.HasPrefix(name, "on") && !p.links.scripts {
		return drop
	}
	return keep
}

// attribute returns the rewritten attribute, or false if it is dropped.
func (p *pageRewriter) attribute(element string, a attribute) (attribute, bool) {
	ok := true
	switch p.treat(element, a.name) {
	case drop:
		return a, false
	case link:
		a.value, ok = p.links.rewrite(a.value, asLink)
	case picture:
		a.value, ok = p.links.rewrite(a.value, asImage)
	case document:
		if element == "script" && p.links.scripts && isPlainData(a.value) {
			return a, true // it runs like the text of an element
		}
		if a.value, ok = p.links.rewrite(a.value, asDocument); !ok && element == "script" {
			a.value, ok = nowhere, true // without it, the text of the element would run
		}
	case pictures:
		a.value = p.links.srcset(a.value)
		ok = a.value != ""
	case style:
		ok = len(a.value) <= maxStyle
		a.value = rewrittenCSS(a.value, p.links)
	case nested:
		a.value, ok = p.nested(a.value)
	}
	return a, ok
}

// attributes rewrites the attributes of a tag.
func (p *pageRewriter) attributes(element string, attrs []attribute) []attribute {
	var out []attribute
	for _, a := range attrs {
		if a, ok := p.attribute(element, a); ok {
			out = append(out, a)
		}
	}
	switch element {
	case "a", "area":
		return p.leading(out)
	case "img", "source":
		return p.awake(attrs, out)
	case "button", "input": // a script may listen to them; the policy keeps it from sending the form
		kind := strings.ToLower(value(out, "type"))
		if !p.links.scripts && (element == "button" || kind == "submit" || kind == "image") {
			return append(out, attribute{"disabled", ""})
		}
	case "animate", "set", "animatetransform", "animatemotion":
		return p.still(out)
	}
	return out
}

// leading makes a link replace the whole window instead of only the frame, so that the bar above
// the page changes too. A document that runs scripts may not do that.
func (p *pageRewriter) leading(attrs []attribute) []attribute {
	href := value(attrs, "href") + value(attrs, "xlink:href")
	if p.links.scripts || href == "" || strings.HasPrefix(href, "#") {
		return attrs
	}
	return append(attrs, attribute{"target", "_top"})
}

// awake shows lazily loaded images when there are no scripts to load them. The names are those of
// the most common scripts.
func (p *pageRewriter) awake(attrs, out []attribute) []attribute {
	if p.links.scripts {
		return out
	}
	for _, lazy := range []struct{ from, to string }{{"data-src", "src"}, {"data-original", "src"},
		{"data-lazy-src", "src"}, {"data-srcset", "srcset"}} {
		ref, has := value(attrs, lazy.from), value(out, lazy.to)
		if ref == "" || has != "" && !strings.HasPrefix(has, "data:") {
			continue
		}
		a, ok := p.attribute("img", attribute{lazy.to, ref})
		if !ok {
			continue
		}
		out = slices.DeleteFunc(out, func(a attribute) bool { return a.name == lazy.to })
		out = append(out, a)
	}
	return out
}

// still prevents an SVG animation from giving an element a URL.
func (p *pageRewriter) still(attrs []attribute) []attribute {
	name := strings.ToLower(strings.TrimSpace(value(attrs, "attributename")))
	if p.treat("a", name) == keep {
		return attrs
	}
	return slices.DeleteFunc(attrs, func(a attribute) bool { return a.name == "attributename" })
}

// value returns the value of the attribute of that name, or "".
func value(attrs []attribute, name string) string {
	for _, a := range attrs {
		if a.name == name {
			return a.value
		}
	}
	return ""
}

// isPlainName reports whether every parser reads the name of a tag or an attribute in the same way.
// Broken markup has quotes and tags in names; a page loses nothing without them.
func isPlainName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if c <= ' ' || c == 0x7f || strings.IndexByte("\"'<>/=`&", c) >= 0 {
			return false
		}
	}
	return name != ""
}
