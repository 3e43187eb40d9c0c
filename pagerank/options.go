package pagerank

// DefaultDamping is the usual damping factor of PageRank.
const DefaultDamping = 0.85

// A Cutoff limits how far a score travels when a page is fetched. DL1 and AR are exactly those of
// the paper (Yamada et al., 2004, section 3); with Options.Damping 0, they pass on all of a score.
// The paper's other two, PL and VR, are in package compare: neither is worth its cost.
type Cutoff uint8

// The cutoffs.
const (
	// Push, the default, is new. It tracks the residual of each page, the part of its score that
	// was not passed on, and passes it on when it exceeds Options.Threshold of the score. This costs
	// at most half as many score updates again as DL1, and once the links of one page, since a residual
	// goes over all of them. The order of the queue also considers how long ago a page was discovered
	// and how many pages of its host are fetched. Newly discovered pages wait until the crawl has
	// grown by a percent.
	Push Cutoff = iota

	// DL1, depth limit 1: only the direct links of a fetched page get a share. Links are not kept, so
	// a page that is fetched again passes on nothing. AR with a Threshold of 1 has the same scores,
	// and keeps links.
	DL1

	// AR, accumulated value ratio: a page passes on its residual when it exceeds Options.Threshold
	// of its score, at any cost.
	AR
)

// Options configures a [Frontier]. The zero Options orders best: the sum of three criteria, between -1
// and 2, has a mean of 1.37 on the six graphs of examples/pageranklab. DL1 has 1.19, and an order by
// true PageRank, which no crawler knows, 1.60.
type Options struct {
	// Cutoff limits how far scores travel. 0 means Push.
	Cutoff Cutoff

	// Threshold is the share of a page's score that its residual must exceed to be passed on. A
	// lower one costs more and is more exact. With Push, it was chosen by leaving kinds of graphs
	// out in turn: on those left out, 0.4 orders better than 0.6 by 0.011 on average, of a sum of
	// three criteria between -1 and 2, for 1.2 times the updates; on single graphs by -0.04 to
	// 0.05. README.md of examples/pageranklab has the tables.
	// 0 means 0.4 with Push, and the paper's 29.0/30 with AR.
	Threshold float64

	// Damping is the share of a page's score that its links pass on. Below 1, [Stats] bounds the
	// error.
	// 0 means 0.85 with Push, and the paper's 1 with the others.
	Damping float64

	// Host returns the number of an id's host. Numbers have to be dense from 0, as ids are: Push has
	// 8 bytes for each, up to the highest. It must always return the same number for an id. NextReady
	// needs it, ties are ordered by it as in the paper, and Push ranks better with it. nil means that
	// all ids are on host 0.
	Host func(id uint32) uint32

	// Score returns how much a page is worth to you, 1 being average: the result of a classifier, a
	// language score, a budget. Pages leave the queue in the order of their score times this worth; products
	// below 2^-48 count as equal, and so do those above 2^48.
	// It is called when a page is discovered and whenever its score changes; call Discover to have
	// it called again. Negative values and NaN count as 0. nil means 1 for all pages.
	Score func(id uint32) float64

	// Inherit also lets a page's links inherit its worth: when it is fetched, it gets Score instead
	// of 1. Use it if Score knows a page only after the fetch, and let Score return 1 until then.
	// false means that links inherit nothing.
	Inherit bool

	// Limit bounds the ids, and so the memory: ids from Limit on are ignored. 0 means the limit of
	// the type: the highest uint32 is ignored, and on 32-bit platforms the upper half.
	Limit int
}

// normal returns o with defaults in place of zeros and invalid values.
func (o Options) normal() Options {
	if o.Cutoff > AR {
		o.Cutoff = Push
	}
	if !(o.Threshold > 0) {
		o.Threshold = [...]float64{Push: 0.4, DL1: 0, AR: 29.0 / 30}[o.Cutoff]
	}
	if !(o.Damping > 0 && o.Damping <= 1) {
		o.Damping = [...]float64{Push: DefaultDamping, DL1: 1, AR: 1}[o.Cutoff]
	}
	if o.Limit <= 0 || o.Limit > maxIDs {
		o.Limit = maxIDs
	}
	return o
}
