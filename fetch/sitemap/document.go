package sitemap

import (
	"bytes"
	"io"
	"strconv"
	"strings"
)

// format is how one kind of document names what Entry holds.
type format struct {
	kind   Kind
	item   string // the element of one entry
	fields string // of an entry that are of interest, with blanks around them
	strict bool   // elements with another prefix than the root's are something else
}

// formats are known by their root element, in lower case.
var formats = map[string]format{
	"urlset":       {Page, "url", " loc lastmod changefreq priority ", false},
	"sitemapindex": {Sitemap, "sitemap", " loc lastmod ", false},
	"rss":          {Item, "item", " link guid pubdate date ", true},
	"rdf":          {Item, "item", " link date ", true}, // RSS 0.9 and 1.0
	"feed":         {Item, "entry", " link updated published modified issued ", true},
}

// extensions are the prefixes of elements in an entry of a sitemap that have fields of their own,
// such as the locations of its images.
const extensions = " image video news mobile xhtml pagemap "

// maxField is longer than any URL or date that is of use, with white space around it.
const maxField = 2 * maxURL

// maxDepth bounds the open elements that are remembered.
const maxDepth = 64

// document is a walk over an XML document, token by token, with the one entry that is open.
type document struct {
	format
	prefix string   // of the root's name, which the names of interest share
	open   []string // names of the elements in the entry that are open
	inside bool     // an entry is open
	entry  Entry
	url    []byte // of the entry
	guid   []byte // of an RSS item, or the text of a sitemap entry: its URL, if it has no other
	named  bool   // the guid says that it is not a URL
	field  string // that is open; "" if none of interest is
	text   []byte // of the field
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
		// An entry ends where the next one begins, if somebody forgot to close it.
		if t.kind == startToken && d.opens(&t) {
			d.begin()
			if t.empty {
				d.inside = false
			}
		}
	}
}

// ended yields the entry in which the document ends with err, if its URL is known.
func (l *lister) ended(d *document, err error) error {
	if d.inside && d.field != "" && bytes.HasPrefix(l.src.rest(), []byte("</")) {
		d.set() // only its end tag was cut
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

func lower(name []byte) string { return strings.ToLower(string(name)) }

// root reads the tag that tells the format.
func (d *document) root(t *token) error {
	name := lower(t.name)
	known, ok := formats[name]
	if !ok {
		return ErrFormat
	}
	d.format = known
	// RSS 1.0 has a prefix at its root and none within.
	if name != "rdf" {
		d.prefix = string(t.space)
	}
	return nil
}

// own reports whether an element is one of the format, and not one of an extension.
func (d *document) own(t *token) bool {
	if d.strict {
		return string(t.space) == d.prefix
	}
	// Sitemaps have all kinds of namespaces. Only what a known extension has is not meant.
	return string(t.space) == d.prefix || !strings.Contains(extensions, " "+lower(t.space)+" ")
}

// opens reports whether a start tag is that of an entry.
func (d *document) opens(t *token) bool {
	return len(t.name) == len(d.item) && bytes.EqualFold(t.name, []byte(d.item)) && d.own(t)
}

// begin opens an entry.
func (d *document) begin() {
	d.inside = true
	d.entry = Entry{Kind: d.kind, Priority: 0.5}
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
	// The depth keeps apart what has the same name: the link of an item from that of its source.
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
	// RSS has no date of this name, and an extension that all of its feeds use.
	if name == "date" {
		return lower(t.space) == "dc"
	}
	return d.own(t)
}

// attributes reads what Atom and RSS say by attributes.
func (d *document) attributes(t *token) {
	switch d.field {
	case "guid":
		value, _ := t.attr("ispermalink")
		d.named = lower(trimmed(value)) == "false"
	case "link":
		// Of an Atom entry's links this one leads to the page; others to the entry itself, to
		// comments or to a file.
		href, ok := t.attr("href")
		rel, _ := t.attr("rel")
		main := len(rel) == 0 || lower(trimmed(rel)) == "alternate"
		if ok && main && len(d.url) == 0 {
			d.url = append(d.url, href...)
		}
	}
}

// add takes a piece of text. A field that gets too long is dropped whole: the rest of it alone
// would be another URL.
func (d *document) add(t *token) {
	// Of a sitemap entry without a loc, the text is the URL.
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

// end closes an element with all within it, and reports whether that completes an entry. An end
// tag that fits nothing is ignored.
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
		d.set() // somebody forgot to
	}
	d.inside, d.field = false, ""
	if len(d.url) == 0 {
		d.url = append(d.url, trimmed(d.guid)...)
	}
	return len(d.url) > 0
}

// set puts the text of the field that ends into the entry.
func (d *document) set() {
	text := trimmed(d.text)
	switch d.field {
	case "loc", "link":
		if len(d.url) == 0 {
			d.url = append(d.url, text...)
		}
	case "guid":
		// A name that looks like a URL is mostly one.
		if !d.named || isWhole(text) {
			d.guid = append(d.guid[:0], text...)
		}
	case "lastmod", "updated", "pubdate", "date", "modified":
		// A date that makes no sense does not undo one that did.
		if at := parseDate(string(text)); !at.IsZero() {
			d.entry.LastMod = at
		}
	case "published", "issued":
		// What was updated says so, too; in either order.
		if d.entry.LastMod.IsZero() {
			d.entry.LastMod = parseDate(string(text))
		}
	case "changefreq":
		switch word := lower(text); word {
		case "always", "hourly", "daily", "weekly", "monthly", "yearly", "never":
			d.entry.ChangeFreq = word
		}
	case "priority":
		if p, err := strconv.ParseFloat(string(text), 64); err == nil && 0 <= p && p <= 1 {
			d.entry.Priority = p
		}
	}
}
