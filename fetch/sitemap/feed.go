package sitemap

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/mail"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// format is how one kind of document names what Entry holds.
type format struct {
	kind Kind
	item string // the element of one entry
}

// formats are known by their root element. Those of a feed and of a sitemap share no names of
// fields with another meaning, so that one list of fields serves all.
var formats = map[string]format{
	"urlset":       {Page, "url"},
	"sitemapindex": {Sitemap, "sitemap"},
	"rss":          {Item, "item"},
	"RDF":          {Item, "item"}, // RSS 0.9 and 1.0
	"feed":         {Item, "entry"},
}

// maxField is longer than any URL or date that is of use.
const maxField = maxURL

// document is a walk over an XML document, element by element, with the one entry that is open.
type document struct {
	format
	prefix string // of the root's name, which the names of interest share
	depth  int    // of open elements
	open   int    // the depth of the entry; 0 if none is open
	entry  Entry
	url    []byte // of the entry
	guid   []byte // of an RSS item: its URL, if it has no other
	field  string // that is open; "" if none of interest is
	text   []byte // of the field

	declared bool // an encoding was
}

// document yields the entries of an XML document.
func (l *lister) document() error {
	dec := xml.NewDecoder(l.src)
	// Feeds are written by hand and by templates; half of them would not pass. The tokens are raw
	// because the checked ones keep a stack of all open elements.
	dec.Strict = false
	d := document{}
	dec.CharsetReader = d.charset
	for {
		l.src.token = MaxToken
		token, err := dec.RawToken()
		switch {
		case err == io.EOF && d.kind == 0:
			return ErrFormat
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		switch token := token.(type) {
		case xml.StartElement:
			if err := d.start(token); err != nil {
				return err
			}
		case xml.CharData:
			d.add(token)
		case xml.EndElement:
			if !d.end() {
				continue
			}
			if err := l.emit(d.entry, d.url); err != nil {
				return err
			}
		}
	}
}

// start opens an element. The depth keeps apart what has the same name: the link of an item from
// the link of its source, or from that of the whole feed.
func (d *document) start(e xml.StartElement) error {
	d.depth++
	if d.kind == 0 {
		known, ok := formats[e.Name.Local]
		if !ok {
			return ErrFormat
		}
		d.format = known
		// RSS 1.0 has a prefix at its root and none within.
		if e.Name.Local != "RDF" {
			d.prefix = e.Name.Space
		}
		return nil
	}
	// Elements with another prefix are extensions: images and videos of a sitemap have a loc, too.
	own := e.Name.Space == d.prefix
	switch {
	case d.open == 0 && own && e.Name.Local == d.item:
		d.open = d.depth
		d.entry = Entry{Kind: d.kind, Priority: 0.5}
		d.url, d.guid = d.url[:0], d.guid[:0]
	case d.open == 0 || d.depth != d.open+1:
	case own:
		d.field, d.text = e.Name.Local, d.text[:0]
		d.attributes(e)
	// RSS 1.0 has no date of its own, and this extension is what all of its feeds use.
	case e.Name.Space == "dc" && e.Name.Local == "date":
		d.field, d.text = "date", d.text[:0]
	}
	return nil
}

// attributes reads what Atom and RSS say by attributes.
func (d *document) attributes(e xml.StartElement) {
	var href, rel string
	for _, a := range e.Attr {
		switch a.Name.Local {
		case "href":
			href = a.Value
		case "rel":
			rel = a.Value
		case "isPermaLink":
			// Then the guid is a name, and happens to look like a URL at times.
			if a.Value == "false" {
				d.field = ""
			}
		}
	}
	// Of an Atom entry's links this one leads to the page; others to the entry itself, to comments
	// or to a file.
	if d.field == "link" && href != "" && (rel == "" || rel == "alternate") && len(d.url) == 0 {
		d.url = append(d.url, href...)
	}
}

// add takes a piece of text. A field that gets too long is dropped whole: the rest of it alone
// would be another URL.
func (d *document) add(text []byte) {
	if len(d.text)+len(text) > maxField {
		d.field = ""
	}
	if d.field != "" {
		d.text = append(d.text, text...)
	}
}

// end closes an element, and reports whether it was an entry. The names of end tags are not looked
// at: raw tokens come in pairs, except in documents that are broken anyway.
func (d *document) end() (entry bool) {
	if d.field != "" && d.depth == d.open+1 {
		d.set()
		d.field = ""
	}
	if entry = d.open > 0 && d.depth == d.open; entry {
		d.open = 0
		if len(d.url) == 0 {
			d.url = append(d.url, d.guid...)
		}
	}
	d.depth = max(d.depth-1, 0)
	return entry && len(d.url) > 0
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
		d.guid = append(d.guid[:0], text...)
	case "lastmod", "updated", "pubDate", "date":
		// A date that makes no sense does not undo one that did.
		if at := parseDate(string(text)); !at.IsZero() {
			d.entry.LastMod = at
		}
	case "published":
		// What was updated says so, too; in either order.
		if d.entry.LastMod.IsZero() {
			d.entry.LastMod = parseDate(string(text))
		}
	case "changefreq":
		switch word := strings.ToLower(string(text)); word {
		case "always", "hourly", "daily", "weekly", "monthly", "yearly", "never":
			d.entry.ChangeFreq = word
		}
	case "priority":
		if p, err := strconv.ParseFloat(string(text), 64); err == nil && 0 <= p && p <= 1 {
			d.entry.Priority = p
		}
	}
}

// dateForms are those of sitemaps and Atom (W3C date and time), and what people write instead.
var dateForms = []string{
	time.RFC3339, "2006-01-02", "2006-01-02T15:04Z07:00", "2006-01", "2006",
	"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04:05-0700",
}

// parseDate returns the zero time for what is no date.
func parseDate(s string) time.Time {
	const longest = 64
	if len(s) > longest {
		return time.Time{}
	}
	for _, form := range dateForms {
		if at, err := time.Parse(form, s); err == nil {
			return at
		}
	}
	// RSS has the dates of mail.
	at, err := mail.ParseDate(s)
	if err != nil {
		return time.Time{}
	}
	return at
}

// charset is the CharsetReader of package xml, which asks for one at each declaration. The first
// one holds for the whole document: converters on top of each other would make two bytes of one
// again and again, and so grow it without bound.
func (d *document) charset(label string, r io.Reader) (io.Reader, error) {
	if d.declared {
		return r, nil
	}
	d.declared = true
	return decodeXML(label, r)
}

// decodeXML reads the encodings that sitemaps are in, beside UTF-8: the protocol allows no other,
// and feeds have Latin-1 at most.
func decodeXML(label string, r io.Reader) (io.Reader, error) {
	switch strings.ToLower(label) {
	case "utf8", "us-ascii", "ascii":
		return r, nil
	case "iso-8859-1", "latin1", "windows-1252":
		bytes, ok := r.(io.ByteReader)
		if !ok {
			return nil, fmt.Errorf("%q without a reader of bytes", label)
		}
		return &latin1{src: bytes}, nil
	}
	return nil, fmt.Errorf("encoding %q", label)
}

// latin1 converts ISO 8859-1 to UTF-8. What windows-1252 has on top of it are quotes and dashes, of
// no use in a URL.
type latin1 struct {
	src  io.ByteReader
	rest []byte // of a character that did not fit
	buf  [utf8.UTFMax]byte
}

// Read implements io.Reader. It reads no further than it must, so that the meter sees each token.
func (l *latin1) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(l.rest) == 0 {
		c, err := l.src.ReadByte()
		if err != nil {
			return 0, err
		}
		l.rest = utf8.AppendRune(l.buf[:0], rune(c))
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}
