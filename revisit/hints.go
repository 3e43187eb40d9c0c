package revisit

import "math"

// Hints is how reliable a host's hints are that its pages have changed: which share of the changes
// it announces, and how often it announces one that did not happen. It is learned from visits,
// which find out. The zero Hints is that of a host that gave none; use it by one goroutine at a
// time.
type Hints struct {
	announced, silent float32 // changes with and without a hint
	wrong             float32 // hints without a change
	days              float32 // watched, of all pages together
}

// Before anything is known, a host is taken to announce half of its changes, and to be wrong about
// a page once in a month.
const (
	hintsRecall = 0.5
	hintsWrong  = 1.0 / 30 // a day
	hintsCount  = 1        // changes that the prior counts for
	hintsFade   = 1000     // changes from which on old ones fade
)

// Observe adds a visit to the page with the history h, before the visit is added to h itself. n is
// the number of hints that the host gave about the page since the last visit.
//
// If a visit was made because of a hint and found a change, then set its LastModified to the time
// that the hint named. Otherwise the page looks busier than it is, because visits come right after
// its changes.
func (k *Hints) Observe(h History, v Visit, n int) {
	at := unixSeconds(v.At)
	if h.last == 0 || at <= h.last {
		return
	}
	seconds, hints := float64(at-h.last), float64(max(n, 0))
	k.days += float32(seconds / day)
	right := 0.0
	if v.Changed {
		announced, silent := k.expect(&h, seconds, hints)
		right = announced
		k.announced += float32(announced)
		k.silent += float32(silent)
	}
	k.wrong += float32(hints - right)
	if k.announced+k.silent > hintsFade {
		*k = Hints{k.announced / 2, k.silent / 2, k.wrong / 2, k.days / 2}
	}
}

// expect returns how many changes the host is expected to have announced and not announced in some
// seconds, given its hints and that there was a change. Nobody says which hints were right.
func (k *Hints) expect(h *History, seconds, hints float64) (announced, silent float64) {
	recall, wrong := k.estimate()
	rate := h.usualRate()
	right := recall * rate / (recall*rate + wrong) // chance of each hint
	silent = (1 - recall) * rate * seconds
	// A right hint, or a change without one, is a change: to know that there was one makes both
	// more likely by the same factor.
	changed := max(1-math.Pow(1-right, hints)*math.Exp(-silent), 1e-9)
	return min(hints*right/changed, hints), silent / changed
}

// usualRate returns the geometric mean of the rates that a page may have, per second. The
// arithmetic one would be that of the fastest rates, however unlikely they are.
func (h *History) usualRate() float64 {
	var unknown Prior
	octaves := 0.0
	for k, w := range h.posterior(&unknown) {
		octaves += w * float64(k)
	}
	return slowest * math.Exp2(octaves)
}

// estimate returns the share of changes that are announced, and the wrong hints per second.
func (k *Hints) estimate() (recall, wrong float64) {
	changes := float64(k.announced+k.silent) + hintsCount
	recall = (float64(k.announced) + hintsRecall*hintsCount) / changes
	wrong = (float64(k.wrong) + hintsWrong) / (float64(k.days) + 1)
	return recall, wrong / day
}

// reliability is estimate, but a host that never gave a hint announces nothing.
func (k *Hints) reliability() (recall, wrong float64) {
	if k.announced+k.wrong == 0 {
		return 0, 1
	}
	return k.estimate()
}

// hear weighs the probabilities of the rates by how well they explain the hints of some seconds: the
// faster a page changes, the more of them there are. A page that slept may have turned into another
// one since its last visit, of which the hints are the first to tell.
func (k *Hints) hear(weights *[cells]float64, prior *Prior, seconds float64, hints int) {
	recall, wrong := k.reliability()
	if recall == 0 {
		return
	}
	// A Poisson likelihood, without the factors that all rates share.
	var bits [cells]float64
	best := math.Inf(1)
	for i, rate := range rates {
		announced := recall * rate
		bits[i] = announced*seconds*math.Log2E - float64(hints)*math.Log2(1+announced/wrong)
		best = min(best, bits[i])
	}
	woke := wake * seconds / (1 + wake*seconds)
	sum := 0.0
	for i := range weights {
		weights[i] = (weights[i] + woke*float64(prior.weight[i])) * math.Exp2(best-bits[i])
		sum += weights[i]
	}
	for i := range weights {
		weights[i] /= sum
	}
}

// Signals are the hints about a page whose rate of change is known. Changes that are not announced
// make it likelier to be stale with the time, and each hint does so at once: after a time t and n
// hints it is fresh with the probability exp(-x), where x = silent*t + n*jump.
type signals struct {
	change, recall, wrong float64 // rates per second; recall is a share
}

// gain is what one more visit is worth in versions, at the margin, a time after the last one. A
// policy that visits whenever x reaches a limit makes a visit in T seconds on average and catches C
// versions by it. Of the versions caught in all, a visit more brings C - T*dC/dT, and dC/dT turns
// out to be change*exp(-x): the last seconds of waiting catch a version if the page is still fresh.
// C and T are sums over the number of hints during the wait.
func (s signals) gain(seconds float64, hints int) float64 {
	// Where each hint says next to nothing, there are so many that x grows as if there were none.
	const most = 12
	silent, hinted := (1-s.recall)*s.change, s.recall*s.change+s.wrong
	jump := math.Log(hinted / s.wrong)
	x := silent*seconds + float64(hints)*jump
	if !(x < most*jump) {
		return gain(x)
	}
	all := s.change + s.wrong // changes and wrong hints
	waits, caught, fresh := 0.0, 0.0, 1.0
	for k := 0; float64(k)*jump <= x; k++ {
		left := (x - float64(k)*jump) / silent
		waits += moreThan(k, hinted*left) / hinted
		caught += fresh * moreThan(k, all*left) * s.change / all
		fresh *= s.wrong / all
	}
	return max(caught-s.change*math.Exp(-x)*waits, 0)
}

// moreThan returns the probability that a number with a Poisson distribution exceeds k.
func moreThan(k int, mean float64) float64 {
	if k == 0 {
		return -math.Expm1(-mean)
	}
	term := math.Exp(-mean)
	upTo := term
	for i := 1; i <= k; i++ {
		term *= mean / float64(i)
		upTo += term
	}
	return max(1-upTo, 0)
}
