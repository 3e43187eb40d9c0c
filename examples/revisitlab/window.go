package main

import (
	"cmp"
	"math"
	"slices"
)

// year is the length of a window in days, as in the paper.
const year = 365

const daySeconds = 24 * 60 * 60

// A page is one page in one window; the paper calls it a URL.
type page struct {
	changes []float64 // days from the start of the window, ascending
	window  int       // numbered backwards from the latest
	half    int       // 1 or 2: see halfOf
	hints   []float64 // days on which its host reports a change: see announce
	weight  float64   // of a version; 0 means 1
}

// gap returns the page's true mean interval in days.
func (p *page) gap() float64 { return year / float64(len(p.changes)) }

// change adds a change at a day. Changes of the first step are seen by the first visit, and changes
// of one step count once.
func (p *page) change(day, step float64) {
	day = math.Floor(day/step) * step
	if day < step || day >= year {
		return
	}
	if n := len(p.changes); n == 0 || p.changes[n-1] < day {
		p.changes = append(p.changes, day)
	}
}

// cut makes windows of a year, of which the last ends with the log. It returns each page that
// existed during a whole window and changed at least this often in it. Changes within one step of
// this many days count once, as the paper counts those of one day. Pages of one window are
// contiguous.
func cut(events []event, step float64, least int) []page {
	end := int64(math.MinInt64)
	for _, e := range events {
		end = max(end, e.at)
	}
	var pages []page
	for rest := events; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(e event) bool { return e.page != rest[0].page })
		if n < 0 {
			n = len(rest)
		}
		half := halfOf(rest[0].page)
		for _, life := range lives(rest[:n], end) {
			for _, p := range life.windows(end, step, least) {
				p.half = half
				pages = append(pages, p)
			}
		}
		rest = rest[n:]
	}
	slices.SortStableFunc(pages, func(a, b page) int { return cmp.Compare(a.window, b.window) })
	return pages
}

// A life is the time between the addition and the deletion of a page.
type life struct {
	from, to int64
	changes  []int64
}

// lives splits the events of one page. A page whose first event is not an addition exists from then
// on.
func lives(events []event, end int64) (all []life) {
	open := false
	for _, e := range events {
		switch {
		case e.op == 'D':
			if open {
				all[len(all)-1].to = e.at
			}
			open = false
		case !open:
			all, open = append(all, life{from: e.at, to: end}), true
		default:
			l := &all[len(all)-1]
			l.changes = append(l.changes, e.at)
		}
	}
	return all
}

// windows returns the page's years.
func (l life) windows(end int64, step float64, least int) (pages []page) {
	const length = year * daySeconds
	for n := 0; ; n++ {
		start := end - int64(n+1)*length
		if start < l.from {
			return pages
		}
		if start+length > l.to {
			continue
		}
		p := page{window: n}
		for _, at := range l.changes {
			p.change(float64(at-start)/daySeconds, step)
		}
		if len(p.changes) >= least {
			pages = append(pages, p)
		}
	}
}
