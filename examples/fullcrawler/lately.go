package main

import (
	"slices"
	"sync/atomic"

	"github.com/spinneret-go/spinneret/dedupe"
	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// lately knows the links that were met lately: those that the filters refused, with the reason, and
// those that passed and are known as they are. Its methods are safe for concurrent use.
//
// The second time, a link that passed changes nothing but a count. It may have another depth, which
// the first sighting has decided. What traps refuse is not remembered: they let a few through, to see
// whether they still are traps.
type lately struct {
	links   *dedupe.LinkCache
	filters atomic.Uint32 // how often they have changed
}

// latelyLinks is how many links are remembered, in 1 MiB.
const latelyLinks = 1 << 16

// refusals are what the filters say, by their verdict in the cache, which begins with none.
var refusals = []stage.Reason{
	"", urlfilter.UnknownSuffix, urlfilter.TooLong, urlfilter.TooDeep, urlfilter.Repeating,
	urlfilter.ManyParams, stage.TooManyLinks, stage.OutOfScope, stage.Excluded, stage.NotIncluded,
	stage.Denied, stage.SwitchedOff,
}

// aContext is what the verdict on a link depends on besides its text.
type aContext struct {
	number uint64
	known  bool // whether there is a verdict; if not, the link is looked at each time
}

// contextOf returns the context of a link. Only the plain links of pages are met again and again.
func (c *crawler) contextOf(it stage.Item) aContext {
	plain := it.Depth > 0 && it.Sitemap == nil && it.Hops == 0
	return aContext{uint64(c.lately.filters.Load())<<32 | uint64(uint32(it.Depth)), plain}
}

func (l *lately) find(link string, in aContext) (why stage.Reason, met bool) {
	if !in.known {
		return "", false
	}
	verdict, met := l.links.Get(link, in.number)
	return refusals[verdict], met
}

func (l *lately) keep(link string, in aContext, why stage.Reason) {
	if verdict := slices.Index(refusals, why); in.known && verdict >= 0 {
		l.links.Put(link, in.number, uint32(verdict))
	}
}

// forget has all links looked at again, since the filters are others now.
func (l *lately) forget() { l.filters.Add(1) }

// widen makes a URL one of those that span the scope.
func (c *crawler) widen(seed string) {
	c.Filter.Scope.Add(seed)
	c.lately.forget()
}
