package revisit

import "math/bits"

// A plan is the input of the rules that step from interval to interval (AIMD, Scale, and MLE before
// the first change): the planned interval, not the time that really passed. A late visit must not
// lengthen the intervals after it. Under load, that would slow down every page permanently.
//
// A History does not store what its policy planned. Instead, the rule is replayed from a known
// interval, through the outcomes since. That is exact, and works for every rule. After 31 visits
// the interval that really passed becomes the known one, or the longest before if that visit was later.
type plan struct {
	from     short  // interval before the first outcome; 0: the policy's first one
	outcomes uint32 // a bit for each visit since, 1 for a change, newest lowest; a 1 above them
}

const mostOutcomes = 31

func (p *plan) observe(gap uint32, changed bool) {
	if bits.Len32(p.outcomes) > mostOutcomes {
		p.from, p.outcomes = shorten(gap), 0
	}
	p.outcomes = max(p.outcomes, 1) << 1
	if changed {
		p.outcomes |= 1
	}
}

// repeat applies a rule repeatedly and returns the interval in seconds. It starts with second and
// stays within two bounds. The rule gets an interval and the number of consecutive quiet visits, 0
// after a change.
func (p *plan) repeat(second, low, high float64, rule func(interval float64, quiet int) float64) float64 {
	interval := p.from.long()
	if p.from == 0 {
		interval = min(max(second, low), high)
	}
	quiet := 0
	for i := bits.Len32(p.outcomes) - 2; i >= 0; i-- {
		quiet++
		if p.outcomes>>i&1 != 0 {
			quiet = 0
		}
		interval = min(max(rule(interval, quiet), low), high)
	}
	return interval
}
