package revisit

import (
	"math"
	"time"
)

// A Pulse is the rhythm in which one host publishes, learned from the visits to its pages, in 64
// bytes. Many sites publish in bulk: most of their pages change on a few days, and hardly any in
// between. The visits to one page cannot show when that happens, but those to all pages of the host
// can.
//
// A Pulse turns the rhythm into a clock of the host. It runs fast on days when pages change and
// slow on the others, and in the long run as fast as the wall clock. Policies use it like the wall
// clock:
//
//	visit.Elapsed = pulse.Observe(page, visit)
//	page = page.Observe(visit)
//
// When a page is due, check the clock before visiting it. If the host has been quiet, the visit may
// not be worth its price yet. If the host has just published, pages are worth a visit long before
// they are due:
//
//	worth := policy.Worth(page, pulse.Elapsed(page.Last(), now))
//
// The clock starts only when it explains the results of visits better than the wall clock, and
// stops when it no longer does. The zero Pulse is that of a host never visited, ready to use by one
// goroutine at a time.
//
// The model is an inhomogeneous Poisson process common to the pages of a host: the rate of a page
// is its own rate times the activity of the host. Activity is constant within two days and has a
// Gamma distribution. Each visit updates it for the days since the last visit to the page, in
// proportion to the changes expected in them.
type Pulse struct {
	newest   uint16      // number of the newest span; 0 if there was none
	pace     short       // activity in the long run
	lead     float32     // how much better than time the clock explains the visits, in nats
	activity [spans]span // newest first
}

// A span is two days of a host's life.
type span struct {
	changes short // estimated number seen in it, plus pulsePrior
	visits  short // number expected by the rates of the pages visited, plus pulsePrior
}

const (
	spans      = 14
	spanLength = 2 * day // seconds

	// pulsePrior is the weight of the prior in changes, in both numbers of a span. The lower it is,
	// the more bursts are expected.
	pulsePrior = 0.6

	// leadOn is the lead above which the clock is used. The lead fades by leadFade per visit, and
	// is bounded by leadMost.
	leadOn   = 20
	leadFade = 0.001
	leadMost = 30

	// settled is the age, in spans, from which the activity of a span is final, and paceShare its
	// share in the pace.
	settled   = 10
	paceShare = 2.0 / 90
	leastPace = 0.02

	unit = 1 << 12 // of the numbers of a span and of the pace

	// mostSeen is where the numbers of a span are halved, which keeps its activity.
	mostSeen = 1 << 19
)

func pack(v float64) short       { return shorten(uint32(v*unit + 0.5)) }
func (s short) unpack() float64  { return s.long() / unit }
func (s span) activity() float64 { return s.changes.unpack() / s.visits.unpack() }

// Observe adds a visit to the page with the history h, and returns the time on the clock of the
// host since the last visit to the page. Call it before adding the visit to h itself. It takes
// constant time.
//
// A visit 28 days before the latest one to the host says nothing about its rhythm. Either it comes
// from an old log, or the clock was ahead: if it was so for the same page, or if many such visits
// come, the rhythm is learned anew.
func (p *Pulse) Observe(h History, v Visit) (elapsed time.Duration) {
	at := unixSeconds(v.At)
	chance := h.throw(at)
	number := spanOf(at)
	stale := p.newest != 0 && int(p.newest)-number >= spans && spanOf(h.last)-number < spans
	if stale {
		p.recede(number)
	} else {
		p.advance(number, &chance)
	}
	if h.last == 0 || at <= h.last {
		return 0
	}
	if wall, ok := h.gapTo(at); ok && !stale {
		p.judge(&h, float64(wall), p.elapsed(h.last, at), v.Changed)
		p.learn(&h, at, v.Changed, &chance)
	}
	return p.Elapsed(h.Last(), v.At)
}

// Elapsed returns the time on the clock of the host between two times, with a rhythm at most a century.
// Earlier than the last 28 days, and for a host without a rhythm, it is real time.
func (p *Pulse) Elapsed(since, now time.Time) time.Duration {
	if p.lead <= leadOn {
		return max(0, now.Sub(since))
	}
	from, to := unixSeconds(since), unixSeconds(now)
	// A single busy span may count as millions of years.
	return time.Duration(min(p.elapsed(from, max(from, to)), century.Seconds()) * float64(time.Second))
}

// recede moves the newest span a sixteenth of the way back to a number before all of them. One such
// visit costs two days of the rhythm, and a clock that was years ahead is forgotten after a hundred.
func (p *Pulse) recede(number int) {
	back := max(1, (int(p.newest)-number)/16)
	p.newest -= uint16(back)
	kept := copy(p.activity[:], p.activity[min(back, spans):])
	forget(p.activity[kept:])
}

// spanOf returns the number of the span that contains a time.
func spanOf(at uint32) int { return int(uint16(at/spanLength) + 1) }

// advance makes the span with a number the newest one.
func (p *Pulse) advance(number int, chance *dice) {
	if p.newest == 0 {
		p.pace = pack(1)
	}
	passed := number - int(p.newest)
	if p.newest == 0 || passed <= -spans { // the clock was ahead
		p.newest = uint16(number)
		forget(p.activity[:])
		return
	}
	if passed <= 0 {
		return
	}
	for i := range min(passed, settled) { // those that become final
		pace := p.pace.unpack()
		pace += (p.activity[settled-1-i].activity() - pace) * paceShare
		p.pace = chance.pack(max(pace, leastPace))
	}
	passed = min(passed, spans)
	copy(p.activity[passed:], p.activity[:])
	forget(p.activity[:passed])
	p.newest = uint16(number)
}

var unknown = span{pack(pulsePrior), pack(pulsePrior)}

// forget resets spans to unknown.
func forget(list []span) {
	for i := range list {
		list[i] = unknown
	}
}

// each calls visit with each span between two times and the seconds of it that lie between them,
// and returns the seconds outside all spans.
func (p *Pulse) each(from, to uint32, visit func(s *span, seconds float64)) (rest float64) {
	covered := uint32(0)
	for i := range p.activity {
		number := int64(p.newest) - 1 - int64(i)
		start := max(number*spanLength, int64(from))
		end := min((number+1)*spanLength, int64(to))
		if start < end {
			visit(&p.activity[i], float64(end-start))
			covered += uint32(end - start)
		}
	}
	return float64(to - from - covered)
}

// elapsed returns the seconds on the clock between two times.
func (p *Pulse) elapsed(from, to uint32) (seconds float64) {
	pace := max(p.pace.unpack(), leastPace)
	rest := p.each(from, to, func(s *span, overlap float64) { seconds += overlap * s.activity() })
	return seconds/pace + rest
}

// judge compares how likely the outcome of a visit was by the clock and by real time.
func (p *Pulse) judge(h *History, wall, clock float64, changed bool) {
	byWall, byClock := 0.0, 0.0
	for k, w := range h.posterior(&usual) {
		byWall += w * math.Exp(-rates[k]*wall)
		byClock += w * math.Exp(-rates[k]*clock)
	}
	if changed {
		byWall, byClock = 1-byWall, 1-byClock
	}
	const least = 1e-9
	lead := float64(p.lead) + math.Log(max(byClock, least)/max(byWall, least))
	p.lead = float32(min(max(lead*(1-leadFade), -leadMost), leadMost))
}

// learn adds a visit to the spans since the one before. On a large host, that is a tiny part of their
// numbers.
func (p *Pulse) learn(h *History, at uint32, changed bool, chance *dice) {
	pace := max(p.pace.unpack(), leastPace)
	rate := h.rate() / pace
	clock := p.elapsed(h.last, at) * pace
	// If there was a change, this many are expected.
	changes := 0.0
	if changed {
		x := rate * clock
		changes = x / -math.Expm1(-x)
	}
	p.each(h.last, at, func(s *span, overlap float64) {
		share := overlap * s.activity() / clock
		seen, expected := s.changes.unpack()+changes*share, s.visits.unpack()+rate*overlap
		if max(seen, expected) > mostSeen {
			seen, expected = max(seen/2, pulsePrior), max(expected/2, pulsePrior)
		}
		s.changes, s.visits = chance.pack(seen), chance.pack(expected)
	})
}

// rate returns the expected rate of change of a page per second.
func (h *History) rate() (mean float64) {
	for k, w := range h.posterior(&usual) {
		mean += w * rates[k]
	}
	return mean
}
