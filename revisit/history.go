package revisit

import (
	"math"
	"math/bits"
	"time"
)

// A Visit is what one fetch of a page found.
type Visit struct {
	At           time.Time // of the request
	Changed      bool      // the content differs from that of the previous visit
	LastModified time.Time // from the server; zero if unknown

	// Elapsed is the time since the last visit on the clock of the host, from [Pulse.Observe]. Zero
	// or negative means the wall clock.
	Elapsed time.Duration
}

// A History summarizes all visits to a page in 40 bytes. The zero History is that of a page never
// visited. It is a plain value: Observe returns a new one and leaves its receiver unchanged. It is
// not safe for concurrent use.
//
// Times are kept in seconds, from 1970 to 2106. Times outside are clamped.
type History struct {
	last     uint32 // time of the last visit in Unix seconds; 0 if there was none
	total    uint32 // sum of all intervals in seconds: T of the paper
	quiet    uint32 // of these, seconds in intervals without a change: U
	visits   uint16 // after the first one: n
	changes  uint16 // visits that found a change: m
	shortest short  // shortest interval with a change, in seconds: t_c,min
	gaps     gaps
	plan     plan
	belief   belief
}

// maxVisits is where the counters of a History are halved.
const maxVisits = 1<<12 - 1

const (
	// lateReport is how many seconds before the last visit another one may be reported.
	lateReport = day

	// longestGap is the number of seconds beyond which an interval is no evidence.
	longestGap = 4 * 365 * day
)

// Observe returns the history with one more visit. The first visit only starts the clock, since
// there is nothing to compare with.
//
// A visit at the time of the last one, or up to a day earlier, is taken for a late or repeated
// report and ignored. If it is earlier than that, one of the two had a wrong clock. Such a visit
// starts the clock anew, and so does one that is more than four years later: what it found is not
// counted. The next one shows which clock it was: if an interval before was too long, the time is taken
// out of the sums, and if this one is longer than all before, it is not counted. The belief of [Bayes]
// leaves it out in either case.
//
// A time that is much longer than all before may be a wrong clock, too. So an interval more than eight to
// twelve times as long as the longest so far counts in the sums only, which bounds what it says to Bayes.
//
// If the visit found a change and LastModified lies between the previous visit and this one, the
// page is taken to have changed at that time and not since. A LastModified is ignored if it cannot
// be true: in the future, before the last visit, or without a change. It is also ignored if it is
// close to the time of the request, which is what programs send that do not know when a page
// changed.
func (h History) Observe(v Visit) History {
	at := unixSeconds(v.At)
	if h.last == 0 {
		h.last = at
		return h
	}
	wall, ok := h.gapTo(at)
	switch {
	case ok:
	case at > h.last:
		h.putBack(at - h.last)
		h.last = at
		return h
	case h.last-at > lateReport:
		h.turnBack(h.last - at)
		h.last = at
		return h
	default:
		return h
	}
	gap := wall
	if v.Elapsed > 0 {
		gap = uint32(min(max(v.Elapsed.Seconds(), 1), math.MaxUint32))
	}
	tail := uint32(0)
	if v.Changed {
		// On the clock of the host, the same share of the interval was quiet.
		tail = quietTail(h.last, at, v.LastModified)
		tail = min(uint32(uint64(tail)*uint64(gap)/uint64(wall)), gap-1)
	}
	// Belief and plan are kept for all policies, so that a crawler can switch to another one.
	chance, bound := h.throw(at), h.gaps.bound()
	if gap <= bound && h.gaps.doubt() == 0 {
		h.belief.observe(float64(gap), float64(tail), v.Changed, &chance)
	}
	h.plan.observe(min(gap, h.gaps.longest()), v.Changed)
	h.count(gap, tail, v.Changed, &chance)
	h.gaps = h.gaps.observe(gap)
	h.last = at
	return h
}

// count adds one interval to the sums. Equation numbers are those of the paper: T and U of (3),
// with the interval of a change split at LastModified as in its section 4.1.3.
func (h *History) count(gap, tail uint32, changed bool, chance *dice) {
	for h.visits == maxVisits || h.total > math.MaxUint32-gap {
		h.halve(chance)
	}
	h.total += gap
	h.visits++
	if !changed {
		h.quiet += gap
		return
	}
	h.quiet += tail
	h.changes++
	if moved := shorten(gap - tail); h.shortest == 0 || moved < h.shortest {
		h.shortest = moved
	}
}

// halve halves all sums together, which keeps U/T and the mean of (5) as they are. There may be few changes
// in thousands of visits, so half of one counts as one as often as not.
func (h *History) halve(chance *dice) {
	h.total, h.quiet, h.visits = h.total/2, h.quiet/2, h.visits/2
	half := uint32(float64(h.changes)/2 + chance.roll())
	h.changes = uint16(min(half, uint32(h.visits), h.total-h.quiet))
}

// gapTo returns the seconds from the last visit to another one, and whether they are evidence.
func (h *History) gapTo(at uint32) (gap uint32, ok bool) {
	if h.last == 0 || at <= h.last || at-h.last > longestGap {
		return 0, false
	}
	gap = at - h.last
	return gap, h.gaps.doubt() == 0 || gap <= h.gaps.longest()
}

// turnBack is for a visit that is earlier than the last one by some seconds. It takes these out of the
// sums, where an interval is too long if the clock had been ahead: the last one, or one before if the
// last has not so many. Each visit keeps a second.
func (h *History) turnBack(seconds uint32) {
	if h.visits == 0 {
		return
	}
	inQuiet := seconds <= h.quiet
	inRest := seconds <= h.total-h.quiet-uint32(h.changes)
	doubt := doubtful
	switch {
	case h.gaps.doubt() == doubtful || seconds > longestGap || seconds > h.total-uint32(h.visits): // was not counted
	case inQuiet && (h.plan.outcomes&1 == 0 || !inRest):
		h.total -= seconds
		h.quiet -= seconds
		doubt = tookQuiet
	case inRest:
		h.total -= seconds
		doubt = tookRest
	}
	h.gaps = h.gaps.certain() | doubt
}

// putBack is the inverse of turnBack, for an interval that shows that the clock had been behind. If nothing
// was taken, the interval is too long to be counted, and turnBack must not take it either.
func (h *History) putBack(gap uint32) {
	doubt := h.gaps.doubt()
	h.gaps = h.gaps.certain()
	if doubt == 0 && h.visits > 0 {
		h.gaps |= doubtful
	}
	gap = min(gap, longestGap) // turnBack took no more
	if gap > math.MaxUint32-h.total {
		return
	}
	switch doubt {
	case tookQuiet:
		h.total += gap
		h.quiet += gap
	case tookRest:
		h.total += gap
	}
}

// freshShare is the share of an interval within which a LastModified is considered made up. A page
// that really changed so late loses little: its whole interval counts as one with a change.
const freshShare = 64

// quietTail returns for how many seconds before at the page has not changed, according to its
// server; 0 if the server does not say or is not credible.
func quietTail(last, at uint32, modified time.Time) uint32 {
	m := modified.Unix() // that of the zero time is before last
	if m <= int64(last) || m >= int64(at-(at-last)/freshShare) {
		return 0
	}
	return at - uint32(m)
}

// unixSeconds returns t as a number that is never 0, since 0 means never.
func unixSeconds(t time.Time) uint32 {
	return uint32(min(max(t.Unix(), 1), math.MaxUint32))
}

// Last returns the time of the last visit, or the zero time if there was none.
func (h History) Last() time.Time {
	if h.last == 0 {
		return time.Time{}
	}
	return time.Unix(int64(h.last), 0).UTC()
}

// Span returns the sum of all intervals that count: the time between the first visit and the last
// one, by Elapsed where it was told, without gaps over four years. After 4,095 visits it is halved
// together with the counts of Visits, so that old visits fade.
func (h History) Span() time.Duration { return time.Duration(h.total) * time.Second }

// Visits returns the number of visits after the first one, and how many of them found a change.
func (h History) Visits() (visits, changes int) { return int(h.visits), int(h.changes) }

// A short is a number of seconds in 16 bits: 5 of exponent above 11 of mantissa. Encoded values
// compare like the numbers.
type short uint16

const mantissaBits = 11

// longestShort is the highest that shorten returns.
var longestShort = shorten(math.MaxUint32)

// shorten rounds s to the nearest short.
func shorten(s uint32) short {
	const implicit = 1 << mantissaBits
	if s < implicit {
		return short(s) // exponent 0 counts single seconds
	}
	shift := bits.Len32(s) - mantissaBits - 1
	v := (uint64(s) + 1<<shift>>1) >> shift
	// A mantissa that was rounded up to the next power of two carries into the exponent.
	return short(shift)<<mantissaBits + short(v)
}

func (s short) long() float64 {
	exponent, mantissa := s>>mantissaBits, float64(s&(1<<mantissaBits-1))
	if exponent == 0 {
		return mantissa
	}
	return (mantissa + 1<<mantissaBits) * float64(uint64(1)<<(exponent-1))
}
