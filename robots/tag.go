package robots

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Tag is what a page asks of those who fetched it, in meta elements and in the header fields of its
// response. The zero Tag asks for nothing. What it asks is for the caller to heed: the package
// enforces none of it.
type Tag struct {
	NoIndex              bool // noindex, none: do not show the page in results
	NoFollow             bool // nofollow, none: do not follow its links
	NoArchive            bool // noarchive: do not show a copy of it
	NoCache              bool // nocache: Bing's word for that
	NoSnippet            bool // nosnippet: quote none of its text; outranks MaxSnippet
	NoImageIndex         bool // noimageindex: do not index its images
	NoTranslate          bool // notranslate: do not offer a translation
	NoAI                 bool // noai: do not train on its text
	NoImageAI            bool // noimageai: do not train on its images
	NoPageReadAloud      bool // nopagereadaloud: do not read it aloud
	NoSitelinksSearchBox bool // nositelinkssearchbox: show no search box for the site

	// IndexIfEmbedded takes NoIndex back for a page that is shown in a frame of another.
	IndexIfEmbedded bool

	MaxSnippet      Limit     // characters of a snippet
	MaxVideoPreview Limit     // seconds of a preview
	MaxImagePreview string    // none, standard or large; empty if the page does not say
	Unavailable     time.Time // unavailable_after: do not show the page from then on; zero is never

	// Other holds all other directives as written, sorted, each once.
	Other []string
}

// Limit is a number that may be limited. The zero Limit is no limit, as is -1 in a page.
type Limit struct {
	Limited bool
	Max     int
}

// FromHeader returns what the X-Robots-Tag and Robots-Tag fields of a response ask of one crawler:
// what they ask of all, and what they ask of it by name. The agent is as for [File.Rules].
//
// A field holds directives between commas. A name and a colon before a directive mean that it and
// all up to the next name are for that crawler only; each field starts with directives for all. A
// name is whatever has the form of a product token and is no directive. Robots-Tag is the list of
// draft-illyes-repext-03, ignored as a whole if it is malformed.
func FromHeader(h http.Header, agent string) Tag {
	own := productToken(agent)
	var t Tag
	for _, field := range h.Values("X-Robots-Tag") {
		t.read(field, own, true)
	}
	t.readList(strings.Join(h.Values("Robots-Tag"), ","), own)
	t.settle()
	return t
}

// FromMeta returns what one meta element of a page asks of one crawler. It asks nothing if its name
// is neither robots nor the crawler's. A page may have several: [Tag.Merge] combines them.
func FromMeta(name, content, agent string) Tag {
	var t Tag
	if names(strings.TrimSpace(name), productToken(agent)) {
		t.read(content, "", false)
		t.settle()
	}
	return t
}

// Merge combines what two sources ask, such as the header and the meta elements of a page. The most
// restrictive counts, except that IndexIfEmbedded may stand apart from the noindex that it limits,
// and counts wherever it stands.
func (t Tag) Merge(other Tag) Tag {
	t.NoIndex = t.NoIndex || other.NoIndex
	t.NoFollow = t.NoFollow || other.NoFollow
	t.NoArchive = t.NoArchive || other.NoArchive
	t.NoCache = t.NoCache || other.NoCache
	t.NoSnippet = t.NoSnippet || other.NoSnippet
	t.NoImageIndex = t.NoImageIndex || other.NoImageIndex
	t.NoTranslate = t.NoTranslate || other.NoTranslate
	t.NoAI = t.NoAI || other.NoAI
	t.NoImageAI = t.NoImageAI || other.NoImageAI
	t.NoPageReadAloud = t.NoPageReadAloud || other.NoPageReadAloud
	t.NoSitelinksSearchBox = t.NoSitelinksSearchBox || other.NoSitelinksSearchBox
	t.IndexIfEmbedded = t.IndexIfEmbedded || other.IndexIfEmbedded
	t.MaxSnippet = t.MaxSnippet.lower(other.MaxSnippet)
	t.MaxVideoPreview = t.MaxVideoPreview.lower(other.MaxVideoPreview)
	t.MaxImagePreview = smaller(t.MaxImagePreview, other.MaxImagePreview)
	t.Unavailable = earlier(t.Unavailable, other.Unavailable)
	t.Other = slices.Concat(t.Other, other.Other)
	t.settle()
	return t
}

// MayIndex reports whether the page may be shown in results at some time, as itself or embedded
// in another page.
func (t Tag) MayIndex(at time.Time, embedded bool) bool {
	if !t.Unavailable.IsZero() && !at.Before(t.Unavailable) {
		return false
	}
	return !t.NoIndex || embedded && t.IndexIfEmbedded
}

// settle brings Other into the form that is promised. It may not share memory with what it came
// from, which is a whole header.
func (t *Tag) settle() {
	slices.Sort(t.Other)
	t.Other = exact(slices.Compact(t.Other))
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

// Rel is what a link says of itself. Search engines take these for hints of how much the link is
// worth; none of them forbids to follow it.
type Rel struct {
	NoFollow  bool // nofollow: the page does not vouch for it
	UGC       bool // ugc: its users wrote it
	Sponsored bool // sponsored: it is paid for
}

// FromRel reads the rel attribute of a link.
func FromRel(rel string) (r Rel) {
	for word := range strings.FieldsSeq(rel) {
		r.NoFollow = r.NoFollow || strings.EqualFold(word, "nofollow")
		r.UGC = r.UGC || strings.EqualFold(word, "ugc")
		r.Sponsored = r.Sponsored || strings.EqualFold(word, "sponsored")
	}
	return r
}

// Endorsed reports whether nothing qualifies the link.
func (r Rel) Endorsed() bool { return r == Rel{} }
