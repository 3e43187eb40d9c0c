package pagerank

// A Cutoff says how far a score is passed on when a page was fetched. The four of the paper (Yamada
// et al., 2004, section 3) are to the letter; with Options.Damping 0 they pass on all of a score.
type Cutoff uint8

// The cutoffs. Threshold and Pages are those of [Options].
const (
	// Push is our own. It keeps book of what each page has received and not passed on, and passes
	// it on when that is more than Threshold of the page's score; the order of the queue also heeds
	// how long ago a page was found and how much of its host is fetched already, and pages just
	// found wait until the crawl has grown by a percent.
	Push Cutoff = iota

	// DL1, depth limit 1: only the pages that a fetched page links to get a share. No links are
	// kept, unless Options.KeepLinks asks for it.
	DL1

	// PL, page number limit: after that, Pages more pages, breadth first from the fetched one, pass
	// on what they have just got.
	PL

	// VR, value ratio: as long as what a page gets is at least Threshold times what it had, it passes
	// that on. A gain below the threshold is ignored, but for those on the fetched page itself.
	VR

	// AR, accumulated value ratio: a page passes on what it has received since it last did so, as
	// soon as this is more than Threshold of its score.
	AR
)

// Options sets how a [Frontier] ranks. The zero Options is the recommendation.
type Options struct {
	// Cutoff says how far scores are passed on.
	// 0 means Push.
	Cutoff Cutoff

	// Threshold is the ratio of VR, AR and Push. The lower it is, the more a page costs; with Damping
	// 1, a gain may go 1/Threshold times round a cycle of pages.
	// 0 means 0.6 with Push, and the paper's 1.5 with VR and 29.0/30 with AR.
	Threshold float64

	// Pages is how many pages PL goes on for.
	// 0 means the paper's 8.
	Pages int

	// Damping is the share of a page's score that its links pass on. Below 1 there are bounds on
	// the error, see [Stats].
	// 0 means 0.85 with Push and the paper's 1 with the others.
	Damping float64

	// Host tells the number of the host that an id is on, best dense from 0; from Limit on, it
	// counts as 0. It has to give the same answer for an id each time. Hosts are needed for the
	// paper's order of ties, for setting aside hosts that are not ready, for HostDamping, and they
	// help Push.
	// nil means that hosts are not known: all ids count as on host 0.
	Host func(id uint32) uint32

	// HostDamping multiplies Damping for the links on a host's pages, to drain link farms. It has to
	// give the same answer for a host each time, from 0 to 1.
	// nil means 1 for all hosts.
	HostDamping func(host uint32) float64

	// Trusted starts scores from what Trust puts in and nowhere else: a personalised PageRank.
	// false means that each page gets 1 when it is fetched.
	Trusted bool

	// KeepLinks keeps the links of fetched pages with DL1 too, so that the shares of a page that is
	// fetched again can be taken back.
	// false means that DL1 keeps none, and passes on nothing when a page is fetched again.
	KeepLinks bool

	// Spill gets the kept links in blocks of 64 KiB, from offset 0 on, and is read when a score is
	// passed on again. It belongs to one frontier and is not closed by it.
	// nil means that links are kept in memory.
	Spill Spill

	// Limit bounds the ids: those from Limit on are ignored, so that one stray id cannot take
	// all memory.
	// 0 means that all of uint32 is taken but its highest number, and half of it where an int has 32
	// bits.
	Limit int

	// Capacity is how many ids are expected, to save growing.
	// 0 means that nothing is known.
	Capacity int
}

// normal returns o with defaults in place of zeros, and values that make sense in place of others.
func (o Options) normal() Options {
	if o.Cutoff > AR {
		o.Cutoff = Push
	}
	if !(o.Threshold > 0) {
		o.Threshold = [...]float64{Push: 0.6, VR: 1.5, AR: 29.0 / 30}[o.Cutoff]
	}
	if o.Pages <= 0 {
		o.Pages = 8
	}
	if !(o.Damping > 0 && o.Damping <= 1) {
		o.Damping = 1
		if o.Cutoff == Push {
			o.Damping = DefaultDamping
		}
	}
	if o.Limit <= 0 || o.Limit > maxIDs {
		o.Limit = maxIDs
	}
	o.KeepLinks = o.KeepLinks || o.Cutoff != DL1
	return o
}
