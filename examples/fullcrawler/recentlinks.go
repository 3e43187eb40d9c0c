package main

import (
	"slices"
	"sync/atomic"

	"github.com/spinneret-go/spinneret/dedupe"
	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// recentLinks caches the verdict on recent links: those that the filters refused, with the reason,
// and those that passed and are known. Its methods are safe for concurrent use.
//
// A repeated link that passed changes only a count. Its depth may differ, but that of the first
// discovery counts. Links that traps refuse are not cached: traps admit a few, to see whether they
// still are traps.
type recentLinks struct {
	links   *dedupe.LinkCache
	filters atomic.Uint32 // number of changes
}

// newRecentLinks returns a recentLinks with an empty cache.
func newRecentLinks(links *dedupe.LinkCache) *recentLinks { return &recentLinks{links: links} }

// recentSize is the number of cached links, in 1 MiB.
const recentSize = 1 << 16

// refusals are the reasons by their verdict in the cache, where the first means none.
var refusals = []stage.Reason{
	"", urlfilter.UnknownSuffix, urlfilter.TooLong, urlfilter.TooDeep, urlfilter.Repeating,
	urlfilter.ManyParams, stage.TooManyLinks, stage.OutOfScope, stage.Excluded, stage.NotIncluded,
	stage.Denied, stage.SwitchedOff,
}

// A linkContext is the context of a link that the verdict depends on.
type linkContext struct {
	number uint64
	known  bool // whether the verdict is cached; if not, the link is checked each time
}

// contextOf returns the context of a link. Only plain links of pages are repeated often.
func (l *recentLinks) contextOf(it stage.Item) linkContext {
	plain := it.Depth > 0 && it.Sitemap == nil && it.Hops == 0
	return linkContext{uint64(l.filters.Load())<<32 | uint64(uint32(it.Depth)), plain}
}

// find returns the cached verdict on a link.
func (l *recentLinks) find(link string, in linkContext) (why stage.Reason, met bool) {
	if !in.known {
		return "", false
	}
	verdict, met := l.links.Get(link, in.number)
	return refusals[verdict], met
}

// keep caches the verdict: the reason not to follow the link, or "".
func (l *recentLinks) keep(link string, in linkContext, why stage.Reason) {
	if verdict := slices.Index(refusals, why); in.known && verdict >= 0 {
		l.links.Put(link, in.number, uint32(verdict))
	}
}

// forget forgets all verdicts, after a change of the filters.
func (l *recentLinks) forget() { l.filters.Add(1) }
