package revisit

import (
	"math"
	"math/bits"
	"time"
)

// A Visit is what one look at a page showed.
type Visit struct {
	At           time.Time // of the request
	Changed      bool      // the content differs from that of the visit before
	LastModified time.Time // what the server says; zero if it says nothing
}

// A History is what all visits to a page showed, in 32 bytes. The zero History is that of a page
// never visited. It is a plain value: Observe returns a new one and leaves its receiver as it was.
// It is not safe for concurrent use.
//
// Times are kept in seconds, from 1970 to 2106; what lies outside counts as the nearest of them.
type History struct {
	last     uint32 // time of the last visit in Unix seconds; 0 if there was none
	total    uint32 // seconds between visits, all together: T of the paper
	quiet    uint32 // of these, seconds that ended without a change: U
	visits   uint16 // after the first one: n
	changes  uint16 // visits that found a change: m
	streak   uint8  // visits in a row without a change
	shortest short  // least seconds that ended with a change: t_c,min
	interval short  // seconds between the last two visits
	belief   belief
}

// maxVisits is where the counters of a History are halved: they have 12 bits.
const maxVisits = 1<<12 - 1

// Observe returns the history with one more visit. The first visit only sets the clock: nobody
// knows what the page looked like before. A visit that is not later than the last one says nothing
// and is left out.
//
// If the visit found a change, and LastModified lies between the visit before and this one, then
// the page changed at that time and stood still since. Servers lie: a LastModified in the future or
// before the last visit, one that comes without a change, and one of just now, as programs make it
// that set it to the time of the request, count as none.
func (h History) Observe(v Visit) History {
	at := unixSeconds(v.At)
	if h.last == 0 {
		h.last = at
		return h
	}
	if at <= h.last {
		return h
	}
	gap := at - h.last
	tail := uint32(0)
	if v.Changed {
		tail = quietTail(h.last, at, v.LastModified)
	}
	// The belief is kept for all policies: a crawler that tries another one has it at once.
	h.belief.observe(gap, tail, v.Changed)
	h.count(gap, tail, v.Changed)
	h.interval = shorten(gap)
	h.last = at
	return h
}

// count adds one interval to the sums. Equation numbers are those of the paper: T and U of (3),
// with the interval of a change split at LastModified as in its section 4.1.3.
func (h *History) count(gap, tail uint32, changed bool) {
	// Halving all sums together keeps U/T and the mean of (5) as they are. Only histories from
	// elsewhere have a T that is longer than the time since 1970.
	for h.visits == maxVisits || h.total > math.MaxUint32-gap {
		h.visits, h.changes = h.visits/2, h.changes/2
		h.total, h.quiet = h.total/2, h.quiet/2
	}
	h.total += gap
	h.visits++
	if !changed {
		h.quiet += gap
		h.streak = min(h.streak, math.MaxUint8-1) + 1
		return
	}
	h.quiet += tail
	h.changes++
	h.streak = 0
	if moved := shorten(gap - tail); h.shortest == 0 || moved < h.shortest {
		h.shortest = moved
	}
}

// freshShare is the share of an interval within which a LastModified counts as made up. A page that
// really changed so late loses little: its whole interval counts as one with a change.
const freshShare = 64

// quietTail returns for how many seconds before at the page has stood still, going by its server;
// 0 if the server does not say it or is not to be believed.
func quietTail(last, at uint32, modified time.Time) uint32 {
	if modified.IsZero() {
		return 0
	}
	m := modified.Unix()
	if m <= int64(last) || m > int64(at) {
		return 0
	}
	tail := at - uint32(m)
	if tail <= (at-last)/freshShare {
		return 0
	}
	return tail
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

// Interval returns the time between the last two visits, within 0.03 %, or 0 if there were not two.
func (h History) Interval() time.Duration { return seconds(h.interval.long()) }

// Visits returns how many visits there were after the first one, and how many of them found a
// change. Past 4,095 visits both are halved, so that old ones fade.
func (h History) Visits() (visits, changes int) { return int(h.visits), int(h.changes) }

// seconds returns s as a duration.
func seconds(s float64) time.Duration {
	const longest = float64(math.MaxInt64 / int64(time.Second))
	return time.Duration(min(s, longest) * float64(time.Second))
}

// A short is a number of seconds in 16 bits: 5 of exponent above 11 of mantissa. Order is kept, so
// that two of them compare like the numbers.
type short uint16

const mantissaBits = 11

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
