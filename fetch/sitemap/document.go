package sitemap

import (
	"bytes"
	"io"
	"strings"

	"github.com/spinneret-go/spinneret/internal/webdate"
	"github.com/spinneret-go/spinneret/internal/weburl"
)

// format is how one kind of document names the parts of an Entry.
type format struct {
	kind   Kind
	item   string // the element of one entry
	fields string // of an entry; the ones of interest, separated by blanks
	strict bool   // elements with another prefix than the root's do not count
}

// formats are known by their root element, in lower case.
var formats = map[string]format{
	"urlset":       {Page, "url", " loc lastmod ", false},
	"sitemapindex": {Sitemap, "sitemap", " loc lastmod ", false},
	"rss":          {Item, "item", " link guid title pubdate date ", true},
	"rdf":          {Item, "item", " link title date ", true}, // RSS 0.9 and 1.0
	"feed":         {Item, "entry", " link id title updated published modified issued ", true},
}

// extensions are the prefixes of elements in a sitemap entry that have fields of their own, such as
// the locations of its images.
const extensions = " image video news mobile xhtml pagemap "

// urlFields are fields whose text is a URL, which has no elements.
const urlFields = " loc link guid id "

// maxField is longer than any useful URL or date, including white space around it.
const maxField = 2 * maxURL

// relations may precede the name of a relation (RFC 4287, section 4.2.7.2).
const relations = "http://www.iana.org/assignments/relation/"

// maxDepth bounds the open elements that are remembered.
const maxDepth = 64

// document is a pass over an XML document, token by token, with the current entry.
type document struct {
	format
	prefix     string   // of the root's name, which the names of interest share
	unprefixed bool     // it is not known yet
	open       []string // names of the open elements of the entry
	inside     bool     // an entry is open
	entry      Entry
	url        []byte // of the entry
	guid       []byte // of an RSS item, or the text of a sitemap entry: the URL, if it has no other
	named      bool   // the guid is marked as not being a URL
	field      string // the open field of interest; "" if none
	text       []byte // of the field
}

// document yields the entries of an XML document.
func (l *lister) document() error {
	d := document{}
	for {
		t, err := l.src.next()
		switch {
		case err == io.EOF && d.kind == 0:
			return ErrFormat
		case err != nil:
			return l.ended(&d, err)
		}
		done := false
		switch t.kind {
		case startToken:
			if d.kind == 0 {
				if err := d.root(&t); err != nil {
					return err
				}
				l.src.rooted = true
				l.rebase(&t)
				continue
			}
			done = d.start(&t)
		case endToken:
			done = d.end(lower(t.name))
		default:
			d.add(&t)
		}
		if done {
			if err := l.emit(d.entry, d.url); err != nil {
				return err
			}
		}
		// An unclosed entry ends where the next one starts.
		if t.kind == startToken && d.opens(&t) {
			d.begin()
			if t.empty {
				d.inside = false
			}
		}
	}
}

// rebase applies the xml:base of the root. Those of entries would make short URLs long.
func (l *lister) rebase(root *token) {
	value, _ := root.attr("xml:base")
	base := l.refs.Base()
	u, err := weburl.Parse(string(trimmed(value)), &base)
	if len(value) > 0 && len(value) <= maxURL && err == nil && weburl.IsWeb(&u) {
		l.refs.Reset(u)
	}
}

// ended yields the entry in which the document ends with err, if its URL is known.
func (l *lister) ended(d *document, err error) error {
	if d.inside && d.field != "" && bytes.HasPrefix(l.src.rest(), []byte("</")) {
		d.set() // only its end tag is missing
	}
	if d.inside && len(d.url) > 0 {
		if err := l.emit(d.entry, d.url); err != nil {
			return err
		}
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// lower returns name in lower case, up to a length that no known name has: an open element must not
// cost a megabyte of memory.
func lower(name []byte) string {
	const longest = 64
	return strings.ToLower(string(name[:min(len(name), longest)]))
}

// root reads the first tag, which determines the format.
func (d *document) root(t *token) error {
	name := lower(t.name)
	known, ok := formats[name]
	if !ok {
		return ErrFormat
	}
	d.format = known
	d.prefix = string(t.space)
	// RSS 1.0 has another prefix at its root than inside: that of the first item counts.
	d.unprefixed = name == "rdf"
	return nil
}

// own reports whether an element belongs to the format, and not to an extension.
func (d *document) own(t *token) bool {
	if d.strict {
		return string(t.space) == d.prefix
	}
	// Sitemaps have all kinds of namespaces. Only those of known extensions are excluded.
	return string(t.space) == d.prefix || !strings.Contains(extensions, " "+lower(t.space)+" ")
}

// opens reports whether a start tag is that of an entry.
func (d *document) opens(t *token) bool {
	if !bytes.EqualFold(t.name, []byte(d.item)) {
		return false
	}
	if d.unprefixed {
		d.prefix, d.unprefixed = string(t.space), false
	}
	return d.own(t)
}

// begin opens an entry.
func (d *document) begin() {
	d.inside = true
	d.entry = Entry{Kind: d.kind}
	d.url, d.guid, d.open = d.url[:0], d.guid[:0], d.open[:0]
	d.field = ""
}

// start opens an element, and reports whether that completes an entry.
func (d *document) start(t *token) (done bool) {
	if !d.inside {
		return false
	}
	if d.opens(t) {
		return d.close()
	}
	if name := lower(t.name); len(d.open) == 1 && strings.Contains(urlFields, " "+d.field+" ") && d.wants(t, name) {
		d.set() // its end tag is missing: what follows is not part of the URL
		d.field, d.open = "", d.open[:0]
	}
	// The depth distinguishes elements of one name: the link of an item and that of its source.
	if name := lower(t.name); len(d.open) == 0 && d.wants(t, name) {
		d.field, d.text = name, d.text[:0]
		d.attributes(t)
	}
	if t.empty {
		d.field = ""
	} else if len(d.open) < maxDepth {
		d.open = append(d.open, lower(t.name))
	}
	return false
}

// wants reports whether a child of the entry is a field of interest.
func (d *document) wants(t *token, name string) bool {
	if !strings.Contains(d.fields, " "+name+" ") {
		return false
	}
	// RSS has no date of this name, but its feeds use this extension.
	if name == "date" {
		return lower(t.space) == "dc"
	}
	return d.own(t)
}

// attributes reads the values that Atom and RSS put into attributes.
func (d *document) attributes(t *token) {
	switch d.field {
	case "guid":
		value, _ := t.attr("ispermalink")
		d.named = lower(trimmed(value)) == "false"
	case "link":
		// Of an Atom entry's links this one leads to the page; others lead to the entry itself, to
		// comments or to a file.
		href, ok := t.attr("href")
		rel, _ := t.attr("rel")
		main := len(rel) == 0 || strings.TrimPrefix(lower(trimmed(rel)), relations) == "alternate"
		if ok && main && len(d.url) == 0 {
			d.url = append(d.url, href...)
		}
	}
}

// add appends a piece of text. A field that gets too long is dropped entirely: a part of it would
// be another URL.
func (d *document) add(t *token) {
	// If a sitemap entry has no loc, its text is the URL.
	if d.inside && !d.strict && len(d.open) == 0 && len(d.guid)+len(t.text) <= maxField {
		d.guid = appendUnescaped(d.guid, t.text)
		return
	}
	if d.field == "" {
		return
	}
	if len(d.text)+len(t.text) > maxField {
		d.field = ""
		return
	}
	if t.kind == cdataToken {
		d.text = append(d.text, t.text...)
	} else {
		d.text = appendUnescaped(d.text, t.text)
	}
}

// end closes an element and all within it, and reports whether that completes an entry. An end tag
// without a matching element is ignored.
func (d *document) end(name string) (done bool) {
	if !d.inside {
		return false
	}
	for i := len(d.open) - 1; i >= 0; i-- {
		if d.open[i] != name {
			continue
		}
		if d.open = d.open[:i]; i == 0 && d.field != "" {
			d.set()
			d.field = ""
		}
		return false
	}
	return name == d.item && d.close()
}

// close ends the entry, and reports whether it has a URL.
func (d *document) close() bool {
	if d.field != "" {
		d.set() // the field was not closed
	}
	d.inside, d.field = false, ""
	if len(d.url) == 0 {
		d.url = append(d.url, trimmed(d.guid)...)
	}
	return len(d.url) > 0
}

// set copies the text of the closed field into the entry.
func (d *document) set() {
	text := trimmed(d.text)
	switch d.field {
	case "loc", "link":
		if len(d.url) == 0 {
			d.url = append(d.url, text...)
		}
	case "title":
		d.entry.Title = strings.Join(strings.Fields(valid(text)), " ")
	case "id":
		d.entry.ID = valid(text)
	case "guid":
		d.entry.ID = valid(text)
		// A guid that looks like a URL usually is one.
		if !d.named || isWhole(text) {
			d.guid = append(d.guid[:0], text...)
		}
	case "lastmod", "updated", "pubdate", "date", "modified":
		// An invalid date does not overwrite a valid one.
		if at, ok := webdate.Parse(string(text)); ok {
			d.entry.LastMod = at
		}
	case "published", "issued":
		// An updated date counts as well, in either order.
		if d.entry.LastMod.IsZero() {
			d.entry.LastMod, _ = webdate.Parse(string(text))
		}
	}
}

// valid returns text that is UTF-8 even where the document is not.
func valid(text []byte) string { return strings.ToValidUTF8(string(text), "\uFFFD") }
