package pagerank

import "io"

// DefaultDamping is the damping factor that PageRank is nearly always computed with.
const DefaultDamping = 0.85

// A Cutoff sets how far a score travels when a page is fetched. DL1 and AR are those of the paper
// (Yamada et al., 2004, section 3) to the letter, which with Options.Damping 0 pass on all of a
// score. Its other two, PL and VR, are in package compare: neither pays.
type Cutoff uint8

// The cutoffs.
const (
	// Push is our own and the default. It tracks the residual of each page, which is what the page
	// has received and not passed on, and passes it on when it exceeds Options.Threshold of the
	// page's score; all this takes at most half as many score updates as DL1 takes. The order of
	// the queue also considers how long ago a page was found and how many pages of its host are
	// fetched. Pages just found wait until the crawl has grown by a percent.
	Push Cutoff = iota

	// DL1, depth limit 1: only the direct links of a fetched page get a share. No links are kept,
	// unless Options.KeepLinks is set.
	DL1

	// AR, accumulated value ratio: a page passes on its residual when it exceeds Options.Threshold
	// of its score, whatever that costs.
	AR
)

// Options configures a [Frontier]. The zero Options is the recommendation.
type Options struct {
	// Cutoff sets how far scores travel.
	// 0 means Push.
	Cutoff Cutoff

	// Threshold is the share of a page's score that its residual must exceed to be passed on. A
	// lower one costs more and is more exact.
	// 0 means 0.4 with Push, and the paper's 29.0/30 with AR.
	Threshold float64

	// Damping is the share of a page's score that its links pass on. Below 1, [Stats] bounds the
	// error.
	// 0 means 0.85 with Push, and the paper's 1 with the others.
	Damping float64

	// Host returns the number of the host that an id is on, best dense from 0; numbers from Limit
	// on count as 0. It must always return the same number for an id. It is needed for NextReady
	// and HostDamping, it orders ties as the paper does, and Push ranks better with it.
	// nil means that all ids are on host 0.
	Host func(id uint32) uint32

	// HostDamping returns a factor for Damping, from 0 to 1, to drain link farms. It must always
	// return the same factor for a host.
	// nil means 1.
	HostDamping func(host uint32) float64

	// Score returns what a page is worth to you, 1 being average: the verdict of a classifier, a
	// language score, a budget. Each page comes out of the queue by its score times this worth. It
	// is asked when a page is found and whenever it gains; call Discover to have it asked again.
	// What is negative or no number counts as 0.
	// nil means 1 for all pages.
	Score func(id uint32) float64

	// Inherit also lets the links of a page inherit its worth: when it is fetched, a page puts
	// Score of it into the PageRank instead of 1. Use it if Score knows a page only once it was
	// fetched, and let Score return 1 until then.
	// false means that links inherit nothing.
	Inherit bool

	// Trusted starts scores from what Trust puts in and nowhere else: a personalized PageRank.
	// false means that each fetched page puts in 1.
	Trusted bool

	// KeepLinks keeps the links of fetched pages with DL1 too, so that the shares of a page can be
	// taken back when it is fetched again with other links.
	// false means that DL1 keeps none, and passes on nothing when a page is fetched again.
	KeepLinks bool

	// Spill stores the kept links, in blocks of 64 KiB from offset 0. It is read when a residual is
	// passed on. One frontier uses it alone and does not close it. An *os.File is one.
	// nil means that links are kept in memory.
	Spill interface {
		io.ReaderAt
		io.WriterAt
	}

	// Limit bounds the ids, and so the memory: ids from Limit on are ignored.
	// 0 means no limit but that of the type: the highest uint32 is ignored, and on 32-bit platforms
	// the upper half.
	Limit int

	// Capacity is the expected number of ids. It saves copying while tables grow.
	// 0 means unknown.
	Capacity int
}

// normal returns o with defaults in place of zeros and of values that make no sense.
func (o Options) normal() Options {
	if o.Cutoff > AR {
		o.Cutoff = Push
	}
	if !(o.Threshold > 0) {
		o.Threshold = [...]float64{Push: 0.4, DL1: 0, AR: 29.0 / 30}[o.Cutoff]
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
