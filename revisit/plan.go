package revisit

import "math/bits"

// A plan is what the rules that step from interval to interval (AIMD, Scale, and MLE before the
// first change) need: the interval that was planned, not the time that really passed. A late visit
// must not lengthen the intervals after it; under load, that would slow down every page for good.
//
// A History does not store what its policy planned, but the rule can be replayed: from an interval
// known, through the outcomes since. That is exact, and serves every rule. Once in 31 visits the
// interval that really passed becomes the known one. If it was late then, the rule makes up for it,
// as it does for any interval that does not fit the page.
type plan struct {
	from     short  // interval before the first outcome; 0: the first one of the policy
	outcomes uint32 // a bit for each visit since, 1 for a change, the newest lowest; above them a 1
}

const mostOutcomes = 31

func (p *plan) observe(gap uint32, changed bool) {
	if bits.Len32(p.outcomes) > mostOutcomes {
		p.from, p.outcomes = shorten(gap), 0
	}
	bit := uint32(0)
	if changed {
		bit = 1
	}
	p.outcomes = max(p.outcomes, 1)<<1 | bit
}

// repeat returns the interval in seconds that a rule comes to, which begins with second and stays
// between two bounds. The rule gets an interval and the number of quiet visits in a row, 0 after a
// change.
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
