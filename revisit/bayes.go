package revisit

import (
	"math"
	"time"
)

// Defaults of [Bayes]. At this price and fairness, a page that is known to change daily is visited
// every 1.7 days, one that changes every three weeks every five, and one that changes once a year
// three times a year.
const (
	DefaultPrice = 0.5
	DefaultFair  = 30 * 24 * time.Hour
)

// Bayes visits a page as soon as a visit is worth its price. The worth is the expected number of
// versions that one more visit at this point catches in the long run, over all rates of change that
// the page may have: see [Bayes.Worth]. If the rates were known, then one price for all pages would
// catch the most versions that so many visits can catch.
//
// It takes a page for one whose rate may become any other at any time, but that has a rate in the
// long run, too, and it lets what it saw count for less than if changes came at random: real pages
// change in bursts.
type Bayes struct {
	// Price is the one dial between cost and coverage: what a visit costs, in versions of a page
	// that changes daily. 0 means DefaultPrice; what makes sense lies between 0.01 and 5.
	Price float64

	// Fair is the mean interval beyond which pages count alike: if a page changes less often than
	// once in this time, its versions count for more, so that those of a year count together as if it
	// changed that often. 0 means DefaultFair, negative means that all versions count alike; with a
	// day, nearly all pages do. It is for pages of which little is known: one that was quiet in its
	// first 100 days is left alone for 70 more, and would be for 140 without. Where visits are scarce
	// and most pages never change, negative is better.
	Fair time.Duration

	Prior Prior         // what is known before the first visit; its zero value is the usual
	Min   time.Duration // least interval; 0 means DefaultMin, negative means one second
	Max   time.Duration // longest interval; 0 means DefaultMax, negative means a century
}

// Next returns the time after which a visit is worth the price. The worth grows with the time
// waited, so there is one such time; without it in the bounds, the nearer of them.
func (b Bayes) Next(h History) time.Duration {
	if h.last == 0 {
		return 0
	}
	lo, hi := bounds(b.Min, b.Max)
	v := b.value(&h)
	wait := v.reaches(float32(orElse(b.Price, DefaultPrice)), mark(lo.Seconds()), mark(hi.Seconds())+1)
	return min(max(seconds(wait), lo), hi)
}

// Worth returns what a visit is worth when so much time has passed since the last one, in the unit
// of Price. It grows with the time, and reaches Price after Next. Where more is due than can be
// visited, the most worthy first catches the most versions if pages change on their own.
func (b Bayes) Worth(h History, waited time.Duration) float64 {
	if h.last == 0 {
		return math.Inf(1)
	}
	v := b.value(&h)
	return v.after(waited)
}

// Told returns what a visit is worth when somebody says that the page has changed since the last
// one, and is right with a probability of trust: a lastmod in a sitemap, an entry in a feed, a
// ping. A visit is due when it reaches the Price. How far a host is to be trusted is for the caller
// to count: it is the share of its hints after which a visit found a change.
func (b Bayes) Told(h History, waited time.Duration, trust float64) float64 {
	if h.last == 0 {
		return math.Inf(1)
	}
	v := b.value(&h)
	worth := v.after(waited)
	if !(trust > 0) {
		return worth
	}
	// After a century a change is certain, whatever the rate. A hint says nothing about how many
	// versions were missed, so that it cannot be worth more than that.
	certain := v.after(century)
	return worth + min(trust, 1)*(certain-worth)
}
