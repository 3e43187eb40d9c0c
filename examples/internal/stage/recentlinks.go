package stage

import (
	"slices"
	"sync/atomic"

	"github.com/spinneret-go/spinneret/dedupe"
	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
)

// RecentLinks caches the verdict on recent links: those that the filters refused, with the reason,
// and those that passed and are known. Its methods are safe for concurrent use.
//
// A repeated link that passed changes only a count. Its depth may differ, but that of the first
// discovery counts. Links that traps refuse are not cached: traps admit a few, to see whether they
// still are traps.
type RecentLinks struct {
	Links   *dedupe.LinkCache
	filters atomic.Uint32 // number of changes
}

// NewRecentLinks returns an empty RecentLinks.
func NewRecentLinks() *RecentLinks { return &RecentLinks{Links: dedupe.NewLinkCache(recentLinks)} }

// recentLinks is the number of cached links, in 1 MiB.
const recentLinks = 1 << 16

// refusals are the reasons by their verdict in the cache, where the first means none.
var refusals = []Reason{
	"", urlfilter.UnknownSuffix, urlfilter.TooLong, urlfilter.TooDeep, urlfilter.Repeating,
	urlfilter.ManyParams, TooManyLinks, OutOfScope, Excluded, NotIncluded,
	Denied, SwitchedOff,
}

// A LinkContext is the context of a link that the verdict depends on.
type LinkContext struct {
	number uint64
	known  bool // whether the verdict is cached; if not, the link is checked each time
}

// ContextOf returns the context of a link. Only plain links of pages are repeated often.
func (l *RecentLinks) ContextOf(it Item) LinkContext {
	plain := it.Depth > 0 && it.Sitemap == nil && it.Hops == 0
	return LinkContext{uint64(l.filters.Load())<<32 | uint64(uint32(it.Depth)), plain}
}

// Find returns the cached verdict on a link.
func (l *RecentLinks) Find(link string, in LinkContext) (why Reason, met bool) {
	if !in.known {
		return "", false
	}
	verdict, met := l.Links.Get(link, in.number)
	return refusals[verdict], met
}

// Keep caches the verdict: the reason not to follow the link, or "".
func (l *RecentLinks) Keep(link string, in LinkContext, why Reason) {
	if verdict := slices.Index(refusals, why); in.known && verdict >= 0 {
		l.Links.Put(link, in.number, uint32(verdict))
	}
}

// Forget forgets all verdicts, after a change of the filters.
func (l *RecentLinks) Forget() { l.filters.Add(1) }
