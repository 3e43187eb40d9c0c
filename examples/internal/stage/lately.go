package stage

import (
	"slices"
	"sync/atomic"

	"github.com/spinneret-go/spinneret/dedupe"
	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
)

// A Lately knows the links that were met lately: those that the filters refused, with the reason, and
// those that passed and are known as they are. Its methods are safe for concurrent use.
//
// The second time, a link that passed changes nothing but a count. It may have another depth, which
// the first discovery has decided. What traps refuse is not remembered: they let a few through, to see
// whether they still are traps.
type Lately struct {
	Links   *dedupe.LinkCache
	filters atomic.Uint32 // how often they have changed
}

// NewLately returns an empty one.
func NewLately() *Lately { return &Lately{Links: dedupe.NewLinkCache(latelyLinks)} }

// latelyLinks is how many links are remembered, in 1 MiB.
const latelyLinks = 1 << 16

// refusals are what the filters say, by their verdict in the cache, which begins with none.
var refusals = []Reason{
	"", urlfilter.UnknownSuffix, urlfilter.TooLong, urlfilter.TooDeep, urlfilter.Repeating,
	urlfilter.ManyParams, TooManyLinks, OutOfScope, Excluded, NotIncluded,
	Denied, SwitchedOff,
}

// A LinkContext is what the verdict on a link depends on besides its text.
type LinkContext struct {
	number uint64
	known  bool // whether there is a verdict; if not, the link is looked at each time
}

// ContextOf returns the context of a link. Only the plain links of pages are met again and again.
func (l *Lately) ContextOf(it Item) LinkContext {
	plain := it.Depth > 0 && it.Sitemap == nil && it.Hops == 0
	return LinkContext{uint64(l.filters.Load())<<32 | uint64(uint32(it.Depth)), plain}
}

// Find returns what was found out about a link.
func (l *Lately) Find(link string, in LinkContext) (why Reason, met bool) {
	if !in.known {
		return "", false
	}
	verdict, met := l.Links.Get(link, in.number)
	return refusals[verdict], met
}

// Keep remembers it: why the link is not followed, or "".
func (l *Lately) Keep(link string, in LinkContext, why Reason) {
	if verdict := slices.Index(refusals, why); in.known && verdict >= 0 {
		l.Links.Put(link, in.number, uint32(verdict))
	}
}

// Forget has all links looked at again, since the filters are others now.
func (l *Lately) Forget() { l.filters.Add(1) }
