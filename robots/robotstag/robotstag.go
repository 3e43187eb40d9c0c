// Package robotstag reads what a page asks of crawlers, in the robots meta elements of HTML and in
// the header fields X-Robots-Tag and Robots-Tag.
//
//	page := robotstag.FromHeader(resp.Header, "examplebot")
//	page = page.Merge(robotstag.FromMeta("robots", "noindex, nofollow", "examplebot"))
//	if page.NoFollow { ... }
//
// # Promises
//
// It fails closed: where the text is ambiguous, the stricter reading counts, and an unknown
// directive, or a date, hides no known one but what looks like its own value, as in "max-audio: none".
// Sources may be merged in any order; the most restrictive wins.
// Reading is linear in the text and never fails; merging takes constant time and keeps no text.
//
// # What it does not do
//
// It enforces nothing, and does not parse HTML: pass it the name and content of each meta element.
package robotstag

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/robots/internal/rep"
)

// Directives is what a page asks for. The zero Directives asks for nothing.
type Directives struct {
	NoIndex      bool // noindex, none: do not show the page in results
	NoFollow     bool // nofollow, none: do not follow its links
	NoArchive    bool // noarchive: do not show a copy of it
	NoSnippet    bool // nosnippet: quote none of its text; outranks MaxSnippet
	NoImageIndex bool // noimageindex: do not index its images
	NoTranslate  bool // notranslate: do not offer a translation
	NoAI         bool // noai: do not train on its text
	NoImageAI    bool // noimageai: do not train on its images

	// IndexIfEmbedded lifts NoIndex where the page is embedded in a frame of another page.
	IndexIfEmbedded bool

	MaxSnippet      Limit     // characters of a snippet
	MaxVideoPreview Limit     // seconds of a preview
	MaxImagePreview string    // none, standard or large; empty if the page does not say
	Unavailable     time.Time // unavailable_after: do not show the page from then on; zero is never
}

// Limit is a number that may be unlimited. The zero Limit is unlimited, as is -1 in a page.
type Limit struct {
	Limited bool
	Max     int
}

// FromHeader returns what the X-Robots-Tag and Robots-Tag fields of a response ask of one crawler,
// either by name or as one of all crawlers. The agent is a product token or a User-Agent header.
//
// X-Robots-Tag has directives separated by commas. A name and a colon before a directive mean that
// it, and all directives up to the next name, are for that crawler only. Each field begins with
// directives for all crawlers. The text before a colon is such a name if it is the crawler's own,
// or if a known directive follows. Otherwise it is an unknown directive with a value. Blanks separate
// directives as commas do, so a value is one word, or a date.
//
// Robots-Tag, of draft-illyes-repext, is read in the same way, but an equals sign may also follow a
// name. Directives that its syntax addresses to other crawlers then count for all.
func FromHeader(h http.Header, agent string) (d Directives) {
	own := rep.OwnToken(agent)
	for _, field := range h.Values("X-Robots-Tag") {
		d.read(field, own, ":")
	}
	for _, field := range h.Values("Robots-Tag") {
		d.read(field, own, ":=")
	}
	return d
}

// FromMeta returns what one meta element of a page asks of one crawler: nothing, if the name is
// neither robots nor the crawler's. A page may have several elements; combine them with
// [Directives.Merge].
func FromMeta(name, content, agent string) (d Directives) {
	if names(strings.TrimSpace(name), rep.OwnToken(agent)) {
		d.read(content, "", "")
	}
	return d
}

// names reports whether a name in a header or a meta element refers to the crawler with that token,
// by the same rules as the groups of a robots.txt.
func names(name, own string) bool {
	return name == rep.AnyAgent || strings.EqualFold(name, "robots") ||
		own != "" && rep.Names(rep.NameOf(name), own)
}

// Merge combines what two sources ask, such as the header and the meta elements of a page. The most
// restrictive counts. The exception is IndexIfEmbedded: it may be in another source than the
// noindex that it limits, so it counts wherever it is.
func (d Directives) Merge(other Directives) Directives {
	for _, name := range flagNames {
		flag := d.flag(name)
		*flag = *flag || *other.flag(name)
	}
	d.MaxSnippet = d.MaxSnippet.lower(other.MaxSnippet)
	d.MaxVideoPreview = d.MaxVideoPreview.lower(other.MaxVideoPreview)
	d.MaxImagePreview = smaller(d.MaxImagePreview, other.MaxImagePreview)
	d.Unavailable = earlier(d.Unavailable, other.Unavailable)
	return d
}

func (l Limit) lower(other Limit) Limit {
	if !l.Limited || other.Limited && other.Max < l.Max {
		return other
	}
	return l
}

// previews are the sizes of images from the smallest on.
var previews = []string{"none", "standard", "large"}

func smaller(a, b string) string {
	if a == "" || b != "" && slices.Index(previews, b) < slices.Index(previews, a) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
