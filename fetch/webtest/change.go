package webtest

import (
	"iter"
	"math"
	"strconv"
	"time"
)

// Times of changes are relative to the start of the web, and clamped to a range in which sums of a
// few of them cannot overflow.
const (
	maxMean    = 10 * 365 * 24 * time.Hour
	maxElapsed = 100 * 365 * 24 * time.Hour
)

// window is the mean number of changes of a Poisson process per window. The process is memoryless,
// so it may start anew in each window. Any moment's version is found by drawing one window, rarely
// two, however long the web has been running.
const window = 8

// process is the changes of one page.
type process struct {
	mean     time.Duration // 0 means none
	periodic bool
	key      rng
}

// process draws the rate of a page. The key is what is left of its stream, so that pages with the
// same rate still change at different times.
func (w *Web) process(host, page int) process {
	c := w.hosts[host].traits.Change
	p := process{periodic: c.Periodic, key: w.stream(saltChange, host, page)}
	if c.Mean <= 0 {
		return p
	}
	mean := float64(c.Mean)
	if c.Sigma > 0 {
		mean *= math.Exp(c.Sigma * p.key.norm())
	}
	p.mean = time.Duration(min(max(1, mean), float64(maxMean)))
	return p
}

// last returns the time of the last change at or before t.
func (p process) last(t time.Duration) time.Duration {
	if p.periodic {
		phase := time.Duration(p.key.unit() * float64(p.mean))
		return floorDiv(t-phase, p.mean)*p.mean + phase
	}
	for n := floorDiv(t, window*p.mean); ; n-- {
		found := false
		var at time.Duration
		for change := range p.window(n) {
			if change > t {
				break
			}
			found, at = true, change
		}
		if found {
			return at
		}
	}
}

// window yields the changes in window n of a Poisson process, in order.
func (p process) window(n time.Duration) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		r := rng(mix(uint64(p.key) + uint64(n)))
		at := 0.0
		for {
			at -= math.Log(r.unit())
			if at >= window || !yield(n*window*p.mean+time.Duration(at*float64(p.mean))) {
				return
			}
		}
	}
}

// between yields the changes in (from, to], in order.
func (p process) between(from, to time.Duration) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		if p.mean == 0 {
			return
		}
		if p.periodic {
			for at := p.last(from) + p.mean; at <= to && yield(at); at += p.mean {
			}
			return
		}
		for n := floorDiv(from, window*p.mean); n*window*p.mean <= to; n++ {
			for at := range p.window(n) {
				if at > to || at > from && !yield(at) {
					return
				}
			}
		}
	}
}

// floorDiv rounds down: times before the start of the web are negative.
func floorDiv(a, b time.Duration) time.Duration {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// version is one state of a page. Its number goes into text and ETag; two states of a page never
// share one.
type version struct {
	number   uint64
	modified time.Time
}

// epoch is the latest Last-Modified of pages that never change. It is a constant, so that their
// headers are the same in every run.
var epoch = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// version is the current state of the page. Pages that never change have a date too, as files on a
// disk do.
func (w *Web) version(host, page int) version {
	p := w.process(host, page)
	if p.mean == 0 {
		return version{modified: epoch.Add(-time.Duration(p.key.below(365*24)) * time.Hour)}
	}
	at := p.last(clampElapsed(w.now().Sub(w.start)))
	return version{number: mix(uint64(at)), modified: w.start.Add(at)}
}

// clampElapsed keeps a clock that is wrong by centuries from overflowing the sums.
func clampElapsed(d time.Duration) time.Duration { return min(max(-maxElapsed, d), maxElapsed) }

// etag returns the quoted strong validator of one version of a page, in one encoding.
func (w *Web) etag(host, page int, v version, gzip bool) string {
	r := w.stream(saltStamp, host, page)
	b := append(make([]byte, 0, 24), '"')
	b = strconv.AppendUint(b, mix(uint64(r)+v.number), 36)
	if gzip {
		b = append(b, "-gz"...)
	}
	return string(append(b, '"'))
}

// Changes returns the times in (from, to] at which the page behind url changed, in order: the truth
// against which to measure a revisiting crawler. A URL that is not a page never changes.
func (w *Web) Changes(url string, from, to time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		host, page, ok := w.locate(url)
		if !ok {
			return
		}
		first, last := clampElapsed(from.Sub(w.start)), clampElapsed(to.Sub(w.start))
		for at := range w.process(host, page).between(first, last) {
			if !yield(w.start.Add(at)) {
				return
			}
		}
	}
}
