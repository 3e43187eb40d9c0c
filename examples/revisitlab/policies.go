package main

import (
	"fmt"
	"math"
	"time"

	"github.com/spinneret-go/spinneret/revisit"
	"github.com/spinneret-go/spinneret/revisit/optimal"
)

const day = 24 * time.Hour

// plain returns a strategy for a policy of the library.
func plain(name string, p revisit.Policy) strategy {
	return strategy{name: name, next: func(t *track) float64 { return inDays(p.Next(t.history)) }}
}

func inDays(d time.Duration) float64 { return d.Seconds() / daySeconds }

// pooled is a Bayes that learns its prior from the visits to the other pages of the window, as they
// happen.
func pooled(name string, b revisit.Bayes) strategy {
	const sample = 500
	s := plain(name, b)
	s.learn = func(seen []track) chooser {
		var histories []revisit.History
		for i := 0; i < len(seen); i += max(1, len(seen)/sample) {
			histories = append(histories, seen[i].history)
		}
		c := b
		c.Prior = revisit.Fit(histories, b.Prior)
		return plain(name, c).next
	}
	return s
}

// exact is MLE without its approximation: equation 2 over all gaps, and the bounds of equation 5.
func exact(p revisit.MLE) strategy {
	next := func(t *track) float64 {
		n := len(t.gaps)
		if n == 0 {
			return inDays(p.Next(t.history))
		}
		rate := optimal.Rate(t.gaps)
		if rate == 0 || math.IsInf(rate, 1) {
			return inDays(p.Next(t.history))
		}
		return math.Min(1/rate, inDays(revisit.DefaultMax))
	}
	return strategy{name: "MLE.full", next: next, gaps: true}
}

// gain is the marginal worth of a visit, in versions, when x changes are expected.
func gain(x float64) float64 { return 1 - (1+x)*math.Exp(-x) }

// worthWaiting returns the expected changes at which a visit is worth the price.
func worthWaiting(price float64) float64 {
	low, high := 0.0, 40.0
	for range 60 {
		if x := (low + high) / 2; gain(x) < price {
			low = x
		} else {
			high = x
		}
	}
	return low
}

// oracle knows the true yearly rate of each page, and nothing else. It uses the rule of Bayes.
func oracle(price float64) strategy {
	x := worthWaiting(price)
	next := func(t *track) float64 { return min(x*t.page.gap(), year) }
	return strategy{name: fmt.Sprintf("oracle(%v)", price), next: next}
}

// fairOracle is an oracle for which all pages count alike that change less often than this. It
// shows what no choice of Fair can reach, however well the rates are known.
func fairOracle(price, fair float64) strategy {
	next := func(t *track) float64 {
		counts := max(1, t.page.gap()/fair)
		return min(worthWaiting(price/counts)*t.page.gap(), year)
	}
	return strategy{name: fmt.Sprintf("oracle(%v, %v)", price, fair), next: next}
}

// paced is the oracle that visits each page once in its true mean interval. In the figures it shows
// how far the others are from knowing the rates, by interval and month by month.
func paced() strategy {
	s := oracle(gain(1))
	s.name = "rate oracle"
	return s
}

// paperPolicies returns those of Figure 5, the rules of other crawlers, our own and an oracle.
func paperPolicies() []strategy {
	return []strategy{
		plain("MLE.mix(0.1-10)", revisit.MLE{}),
		plain("MLE.mix(0.1-10) x0.5", revisit.MLE{Alpha: 0.5}),
		plain("MLE.min(0.1-10)", revisit.MLE{Rep: revisit.Shortest}),
		plain("MLE.avg(0.1-10)", revisit.MLE{Rep: revisit.Mean}),
		plain("MLE.mix(0.1-10, 15d)", revisit.MLE{Second: 15 * day}),
		plain("MLE.mix(0.5-2)", revisit.MLE{Low: 0.5, High: 2}),
		plain("MLE.mix(0.5-2) x0.5", revisit.MLE{Low: 0.5, High: 2, Alpha: 0.5}),
		plain("AIMD(1, 0.5)", revisit.AIMD{}),
		plain("AIMD(1/2, 0.5)", revisit.AIMD{Patience: 2}),
		plain("CGM", optimal.CGM{}),
		plain("Nutch", revisit.Nutch()),
		plain("StormCrawler", revisit.StormCrawler()),
		plain("every 7 days", revisit.Every(7*day)),
		plain("Bayes", revisit.Bayes{}),
		pooled("Bayes.pool", revisit.Bayes{}),
		paced(),
	}
}

// A family is one policy with its cost parameter swept.
type family struct {
	name       string
	strategies []strategy
}

func sweep(name string, knobs []float64, of func(knob float64) strategy) family {
	f := family{name: name}
	for _, k := range knobs {
		f.strategies = append(f.strategies, of(k))
	}
	return f
}

// Indexes into families for the tables.
const (
	ofMLE    = 0
	ofAIMD   = 2
	ofNutch  = 3
	ofStorm  = 4
	ofEvery  = 5
	ofBayes  = 6
	ofPool   = 7
	ofOracle = 8
	ofEven   = 10
	ofKnower = 11
)

// mleAlphas are the cost settings of MLE.
var mleAlphas = []float64{8, 4, 2, 1, .5, .3, .15}

// everyDays are the fixed intervals, from a day to a year. They are close together, because an
// interval that divides the year catches the last change and others lose it: only luck
// distinguishes a visit on day 360 from none after day 250.
func everyDays() (days []float64) {
	for d := float64(year); d > 1; d /= 1.15 {
		days = append(days, d)
	}
	return append(days, 1)
}

// families are the curves at equal cost. The others are compared with the first one.
func families() []family {
	prices := []float64{.98, .95, .9, .8, .7, .6, .5, .4, .3, .2, .13, .08, .05, .03, .015}
	// Slow pages weigh more than 1, so prices may exceed it. At 1, busy pages drop out.
	fairPrices := []float64{
		6, 4.5, 3.5, 2.8, 2.2, 1.8, 1.5, 1.3, 1.2, 1.1, 1, .95, .9, .85, .8, .7, .6, .5, .4, .3, .2, .13,
		.08, .05, .03, .015,
	}
	evenPrices := []float64{
		30, 22, 16, 12, 9, 7, 5.5, 4.4, 3.5, 2.8, 2.2, 1.8, 1.5, 1.3, 1.1, .95, .8, .65, .5, .4, .3, .2,
		.13, .08, .05, .03, .015,
	}
	days := func(k float64) time.Duration { return time.Duration(k * float64(day)) }
	return []family{
		sweep("MLE.mix(0.1-10)", mleAlphas, func(k float64) strategy {
			return plain("", revisit.MLE{Alpha: k})
		}),
		sweep("MLE.mix(0.5-2)", mleAlphas, func(k float64) strategy {
			return plain("", revisit.MLE{Alpha: k, Low: 0.5, High: 2})
		}),
		sweep("AIMD", []float64{60, 30, 14, 7, 3, 1.5, .75, .3}, func(k float64) strategy {
			return plain("", revisit.AIMD{Add: days(k)})
		}),
		sweep("Nutch", []float64{8, 4, 2.5, 1.8, 1.4, 1.2, 1.1, 1.05}, func(k float64) strategy {
			return plain("", revisit.Scale{Grow: k, Shrink: 0.8})
		}),
		sweep("StormCrawler", []float64{8, 4, 2.5, 1.8, 1.4, 1.2, 1.1}, func(k float64) strategy {
			return plain("", revisit.Scale{Grow: k, Shrink: 0.5})
		}),
		sweep("every", everyDays(), func(k float64) strategy {
			return plain("", revisit.Every(days(k)))
		}),
		sweep("Bayes", fairPrices, func(k float64) strategy {
			return plain("", revisit.Bayes{Price: k})
		}),
		sweep("Bayes.pool", fairPrices, func(k float64) strategy {
			return pooled("", revisit.Bayes{Price: k})
		}),
		sweep("rate oracle", prices, oracle),
		sweep("Bayes, Fair off", prices, func(k float64) strategy {
			return plain("", revisit.Bayes{Price: k, Fair: -1})
		}),
		sweep("Bayes, Fair 7 days", evenPrices, func(k float64) strategy {
			return plain("", revisit.Bayes{Price: k, Fair: 7 * day})
		}),
		sweep("rate oracle, Fair 14 days", evenPrices, func(k float64) strategy {
			return fairOracle(k, 14)
		}),
	}
}
