package revisit

import "math"

// Hints is how reliably a host announces changes of its pages: the share of changes that it
// announces, and how often it announces a change that did not happen. It is learned from visits.
// The zero Hints is that of a host without hints; use it by one goroutine at a time.
type Hints struct {
	announced, silent float32 // changes with and without a hint
	wrong             float32 // hints without a change
	days              float32 // watched, all pages together
}

// The prior: a host announces half of its changes, and makes one wrong announcement per page and
// month.
const (
	hintsRecall = 0.5
	hintsWrong  = 1.0 / 30 // a day
	hintsCount  = 1        // weight of the prior, in changes
	hintsFade   = 1000     // number of changes beyond which old ones fade

	// Bounds that keep the estimates finite: of hints at one visit, of changes, and of the other counts.
	hintsVisit   = 1000
	hintsChanges = 1 << 17
	hintsMost    = 1 << 40
)

// Observe adds a visit to the page with the history h. Call it before adding the visit to h itself.
// n is the number of hints about the page since the last visit.
//
// If a visit was made because of a hint and found a change, set its LastModified to the time in the
// hint. Otherwise the page appears busier than it is, because visits come right after its changes.
func (k *Hints) Observe(h History, v Visit, n int) {
	at := unixSeconds(v.At)
	gap, ok := h.gapTo(at)
	if !ok {
		return
	}
	chance := h.throw(at) // a visit is a tiny part of the days of a large host
	seconds, hints := float64(gap), float64(min(max(n, 0), hintsVisit))
	k.days = min(chance.float32(float64(k.days)+seconds/day), hintsMost)
	right := 0.0
	if v.Changed {
		announced, silent := k.expect(&h, seconds, hints)
		right = announced
		k.announced = chance.float32(float64(k.announced) + announced)
		k.silent = chance.float32(float64(k.silent) + silent)
	}
	k.wrong = min(chance.float32(float64(k.wrong)+hints-right), hintsMost)
	if k.announced+k.silent > hintsFade {
		*k = Hints{k.announced / 2, k.silent / 2, k.wrong / 2, k.days / 2}
	}
}

// expect returns the expected number of announced and unannounced changes in some seconds, given
// the hints and that there was a change. It is not known which hints were right.
func (k *Hints) expect(h *History, seconds, hints float64) (announced, silent float64) {
	recall, wrong := k.estimate()
	rate := h.usualRate()
	right := recall * rate / (recall*rate + wrong) // chance of each hint
	silent = (1 - recall) * rate * seconds
	// A right hint is a change, and so is an unannounced one. Knowing that there was a change makes
	// both more likely by the same factor.
	changed := max(1-math.Pow(1-right, hints)*math.Exp(-silent), 1e-9)
	return min(hints*right/changed, hints), silent / changed
}

// usualRate returns the geometric mean of the page's possible rates, per second. The arithmetic
// mean would be dominated by the fastest rates, however unlikely they are.
func (h *History) usualRate() float64 {
	octaves := 0.0
	for k, w := range h.posterior(&usual) {
		octaves += w * float64(k)
	}
	return slowest * math.Exp2(octaves)
}

// estimate returns the share of changes that are announced, and the wrong hints per second.
func (k *Hints) estimate() (recall, wrong float64) {
	changes := float64(k.announced) + float64(k.silent) + hintsCount
	recall = (float64(k.announced) + hintsRecall*hintsCount) / changes
	wrong = (float64(k.wrong) + hintsWrong) / (float64(k.days) + 1)
	return recall, wrong / day
}

// reliability is estimate, except that a host that never gave a hint announces nothing.
func (k *Hints) reliability() (recall, wrong float64) {
	if k.announced+k.wrong == 0 {
		return 0, 1
	}
	return k.estimate()
}

// hear weighs the probabilities of the rates by how well they explain the number of hints in some
// seconds: fast pages get more hints. A page that slept may have changed its rate since the last
// visit, and hints are the first sign of that.
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
	woke, usual := wake*seconds/(1+wake*seconds), prior.scaled()
	sum := 0.0
	for i := range weights {
		weights[i] = (weights[i] + woke*float64(usual.weight[i])) * math.Exp2(best-bits[i])
		sum += weights[i]
	}
	for i := range weights {
		weights[i] /= sum
	}
}

// Signals are the hints about a page with a known rate of change. Unannounced changes make it more
// likely to be stale as time passes, and each hint does so at once: after a time t and n hints it
// is fresh with probability exp(-x), where x = silent*t + n*jump.
type signals struct {
	change, recall, wrong float64 // rates per second; recall is a share
}

// gain is the marginal worth of one more visit, in versions, some time after the last one. A policy
// that visits whenever x reaches a limit makes a visit in T seconds on average and catches C
// versions by it. One visit more adds C - T*dC/dT to all versions caught, and dC/dT turns out to be
// change*exp(-x): the last seconds of waiting catch a version if the page is still fresh. C and T
// are sums over the number of hints during the wait.
func (s signals) gain(seconds float64, hints int) float64 {
	// If a single hint is weak evidence, there are so many that x grows as if there were none.
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
