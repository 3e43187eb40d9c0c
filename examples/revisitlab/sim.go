package main

import (
	"math"
	"time"

	"github.com/spinneret-go/spinneret/revisit"
	"github.com/spinneret-go/spinneret/revisit/optimal"
)

// A strategy is a policy as the laboratory runs it: with a name, and with information that a policy
// does not have.
type strategy struct {
	name string
	next chooser
	// learn, if set, is shown all pages of a window at times, and returns the chooser to use from
	// then on.
	learn func(seen []track) chooser
	gaps  bool // next uses the gaps
	// watch, if set, replaces next: it visits all pages of a window in the order of time, so that
	// the result of one visit affects the others.
	watch *watcher
}

// A chooser returns the days from the last visit to the next one.
type chooser func(t *track) float64

// A track is one page during the year.
type track struct {
	page     *page
	history  revisit.History
	gaps     []optimal.Gap
	belief   *belief // of strategies that keep their own
	due      float64 // day of the next visit
	last     float64 // day of the last one
	seen     int     // changes up to the last visit
	visits   int     // after the first one, as the paper counts them
	captured int     // versions
	months   [months]int32
}

const months = 12

// learnDays are the days on which strategies learn.
var learnDays = []float64{30, 60, 120, 240}

// A lab is shared by all simulations.
type lab struct {
	step     float64 // minimum days between two visits to a page
	modified bool    // servers say when a page changed
	closing  bool    // at the end of the year each page is visited once more, at no cost
}

// at returns a day as a time. Which year it is does not matter.
func at(days float64) time.Time {
	return time.Unix(1_000_000_000, 0).Add(duration(days))
}

// duration returns whole seconds, the resolution of a History.
func duration(days float64) time.Duration {
	return time.Duration(math.Round(days*daySeconds)) * time.Second
}

// simulate simulates a year of the pages of one window.
func (l lab) simulate(pages []page, s *strategy) []track {
	tracks := make([]track, len(pages))
	for i := range pages {
		tracks[i].page = &pages[i]
	}
	l.send(tracks, s)
	for i := range tracks {
		if t := &tracks[i]; l.closing && t.seen < len(t.page.changes) {
			t.captured++
		}
	}
	return tracks
}

// send simulates all visits of the year.
func (l lab) send(tracks []track, s *strategy) {
	if s.watch != nil {
		l.watch(tracks, *s.watch)
		return
	}
	next := s.next
	if s.learn != nil {
		for _, day := range learnDays {
			l.run(tracks, s, next, day)
			next = s.learn(tracks)
		}
	}
	l.run(tracks, s, next, year)
}

// run simulates all visits that are due before the given day.
func (l lab) run(tracks []track, s *strategy, next chooser, until float64) {
	for i := range tracks {
		t := &tracks[i]
		for t.due < until {
			l.visit(t, s.gaps)
			// The pages of a log change at whole steps; visits keep their fractions, so that an
			// interval of a day and a half is possible.
			t.due += max(next(t), l.step)
		}
	}
}

// visit simulates the visit that is due.
func (l lab) visit(t *track, gaps bool) {
	v, seen := l.look(t)
	last, first := t.last, t.history == revisit.History{}
	t.take(v, seen)
	if gaps && !first {
		t.gaps = append(t.gaps, optimal.Gap{Length: duration(t.due - last), Changed: v.Changed})
	}
}

// look returns the result of the visit that is due, and the number of changes until then.
func (l lab) look(t *track) (v revisit.Visit, seen int) {
	const rounding = 1e-6
	changes, seen := t.page.changes, t.seen
	for seen < len(changes) && changes[seen] <= t.due+rounding {
		seen++
	}
	v = revisit.Visit{At: at(t.due), Changed: seen > t.seen}
	if l.modified && v.Changed {
		v.LastModified = at(changes[seen-1])
	}
	return v, seen
}

// take adds a visit to the track. It catches the newest version; versions between it and the last
// one caught are lost.
func (t *track) take(v revisit.Visit, seen int) {
	first := t.history == revisit.History{}
	t.history = t.history.Observe(v)
	if !first {
		t.visits++
		if v.Changed {
			t.captured++
			t.months[monthOf(t.page.changes[seen-1])]++
		}
	}
	t.seen, t.last = seen, t.due
}

func monthOf(day float64) int { return min(int(day*months/year), months-1) }
