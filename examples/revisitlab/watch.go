package main

import (
	"math"
	"math/rand/v2"

	"github.com/spinneret-go/spinneret/revisit"
)

// A watcher visits the pages of a host day by day, like a crawler that checks every day which of
// them are worth a visit.
type watcher struct {
	policy revisit.Bayes
	pulse  bool // the host's pages have a common clock
	trust  trust
}

// trust is the way a watcher uses hints.
type trust int

const (
	ignoreHints trust = iota // ignores hints
	followHints              // visits after each hint
	weighHints               // weighs them by how often they were right; silence means nothing
	modelHints               // uses revisit.Hints: silence counts, too
)

// A watch is a watcher during the simulation.
type watch struct {
	watcher
	clock         revisit.Pulse
	hints         revisit.Hints
	hinted, right int // visits with hints, and those that found a change
}

// watch simulates all visits to the pages of one host in a year.
func (l lab) watch(tracks []track, kind watcher) {
	w := watch{watcher: kind}
	random := rand.New(rand.NewPCG(1, 0))
	order := random.Perm(len(tracks))
	used := make([]int, len(tracks)) // hints of each page, up to its last visit
	for today := range year {
		// The first visit of a day affects the others, so it must not always be to the same page.
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, i := range order {
			t := &tracks[i]
			hints := t.page.hints[used[i]:]
			n := 0
			for n < len(hints) && hints[n] <= float64(today) {
				n++
			}
			if t.due <= float64(today) && w.isWorthIt(t, float64(today), n) {
				t.due = float64(today)
				w.visit(l, t, hints[:n])
				used[i] += n
				t.due += l.step
			}
		}
	}
}

// isWorthIt reports whether a page is worth a visit today, given the hints since the last one.
func (w *watch) isWorthIt(t *track, today float64, hints int) bool {
	last := t.history.Last()
	if last.IsZero() {
		return true
	}
	waited := w.clock.Elapsed(last, at(today))
	if w.trust == modelHints {
		return w.policy.Hinted(t.history, waited, w.hints, hints) >= w.policy.Price
	}
	worth := w.policy.Worth(t.history, waited)
	switch {
	case hints == 0 || w.trust == ignoreHints:
	case w.trust == followHints:
		return true
	default: // between an unhinted visit and one that is certain to find a change
		trust := (float64(w.right) + 0.5) / (float64(w.hinted) + 1)
		certain := w.policy.Worth(t.history, math.MaxInt64)
		worth += trust * (certain - worth)
	}
	return worth >= w.policy.Price
}

// visit simulates a visit, with the hints since the last one.
func (w *watch) visit(l lab, t *track, hints []float64) {
	v, seen := l.look(t)
	if n := len(hints); n > 0 && w.trust != ignoreHints {
		w.hinted++
		if v.Changed {
			w.right++
			v.LastModified = at(hints[n-1])
		}
	}
	w.hints.Observe(t.history, v, len(hints))
	if w.pulse {
		v.Elapsed = w.clock.Observe(t.history, v)
	}
	t.take(v, seen)
}

// announce returns the pages with hints: a share of their changes, each on its day, and wrong ones,
// on average this many per page and year.
func announce(pages []page, recall, wrong float64) []page {
	random := rand.New(rand.NewPCG(2, 0))
	announced := make([]page, len(pages))
	for i, p := range pages {
		p.hints = nil
		mistake := random.ExpFloat64() * year / wrong
		next := 0
		for day := range year {
			for ; next < len(p.changes) && p.changes[next] <= float64(day); next++ {
				if random.Float64() < recall {
					p.hints = append(p.hints, float64(day))
				}
			}
			for ; mistake <= float64(day); mistake += random.ExpFloat64() * year / wrong {
				p.hints = append(p.hints, float64(day))
			}
		}
		announced[i] = p
	}
	return announced
}

// weigh gives each page a weight as heavy-tailed as PageRank: one in ten weighs 8 times as much as
// the lightest, one in a hundred 66 times, none more than 100 times. It is independent of how often
// the page changes.
func weigh(pages []page) []page {
	random := rand.New(rand.NewPCG(3, 0))
	weighed := make([]page, len(pages))
	for i, p := range pages {
		p.weight = min(math.Pow(random.Float64(), -1/1.1), 100)
		weighed[i] = p
	}
	return weighed
}
