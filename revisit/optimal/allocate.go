package optimal

import (
	"cmp"
	"math"
)

// A Page is one with a known rate of change, for [Allocate].
type Page struct {
	Rate   float64 // changes per day
	Weight float64 // worth of one version, or of being fresh; 0 means 1
	Host   int     // index into the bounds of the hosts
}

// A Budget is the number of visits per day.
type Budget struct {
	Visits float64   // for all pages
	Hosts  []float64 // for the pages of each host; nil means no bounds, as does a host beyond
}

// Allocate returns the visits per day for each page that let an archive catch the most versions,
// and the price: every page is visited until one more visit per day would add less than the price.
// A page that is worth nothing gets none.
//
// It is a water-filling: with equal weights, all intervals are one multiple of the pages' mean
// intervals. It takes some 100 passes over the pages.
func Allocate(pages []Page, b Budget) (perDay []float64, price float64) {
	return fill(pages, b, weightOf)
}

// Freshen does the same for the pages' freshness: the expected share of time during which the copy
// is current, as Cho and Garcia-Molina (2003) define it. It abandons pages that change too fast to
// be kept fresh.
func Freshen(pages []Page, b Budget) (perDay []float64, price float64) {
	// Visits at a rate of r keep a page fresh for r/l(1-exp(-l/r)) of the time: the versions
	// caught, divided by l.
	return fill(pages, b, func(p Page) float64 { return weightOf(p) / p.Rate })
}

func weightOf(p Page) float64 { return cmp.Or(p.Weight, 1) }

// leastPrice, times the greatest worth of a version, is where the search for a price ends. At a
// lower price each page would get 700,000 visits per change; there is nothing left to allocate.
const leastPrice = 1e-12

// A pool is the water-filling of one set of pages.
type pool struct {
	pages  []Page
	worth  []float64 // of one version
	budget Budget
	hosts  []float64 // visits per day of bounded hosts, at the price being tried
	perDay []float64
}

func fill(pages []Page, b Budget, worth func(Page) float64) (perDay []float64, price float64) {
	f := pool{
		pages: pages, budget: b,
		worth: make([]float64, len(pages)), perDay: make([]float64, len(pages)),
		hosts: make([]float64, len(b.Hosts)),
	}
	most := 0.0
	for i, p := range pages {
		if w := worth(p); p.Rate > 0 && w > 0 && !math.IsInf(p.Rate+w, 1) {
			f.worth[i] = w
			most = max(most, w)
		}
	}
	if !(b.Visits > 0) || most == 0 {
		return f.perDay, most
	}
	// The demand grows without bound as the price falls, unless all hosts are bounded.
	price = bisect(leastPrice*most, most, func(price float64) bool {
		return f.demand(price) > b.Visits
	})
	f.share(price)
	return f.perDay, price
}

// demand returns the visits per day that are worth more than the price, within the hosts' bounds.
// It falls as the price rises, which is all that the bisection needs.
func (f *pool) demand(price float64) (sum float64) {
	clear(f.hosts)
	for i, p := range f.pages {
		v := f.visits(i, price)
		if p.Host >= 0 && p.Host < len(f.hosts) {
			f.hosts[p.Host] += v
		} else {
			sum += v
		}
	}
	for h, v := range f.hosts {
		sum += min(v, max(f.budget.Hosts[h], 0))
	}
	return sum
}

// visits returns the visits per day at which one more for page i is worth the price.
func (f *pool) visits(i int, price float64) float64 {
	if f.worth[i] <= price {
		return 0
	}
	return f.pages[i].Rate / gainInverse(price/f.worth[i])
}

// share sets the visits at a price, and at a higher one for the hosts that would exceed their
// bounds.
func (f *pool) share(price float64) {
	f.demand(price) // the bisection may have tried another one last
	all, bounded := make([]int, len(f.pages)), make([][]int, len(f.hosts))
	for i, p := range f.pages {
		all[i] = i
		if h := p.Host; h >= 0 && h < len(f.hosts) && f.hosts[h] > f.budget.Hosts[h] {
			bounded[h] = append(bounded[h], i)
		} else {
			f.perDay[i] = f.visits(i, price)
		}
	}
	for h, members := range bounded {
		if f.budget.Hosts[h] > 0 {
			f.shareHost(members, f.budget.Hosts[h])
		}
	}
	f.trim(all, price, f.budget.Visits)
}

// shareHost shares the bound of one host between its pages.
func (f *pool) shareHost(members []int, bound float64) {
	most := 0.0
	for _, i := range members {
		most = max(most, f.worth[i])
	}
	price := bisect(leastPrice*most, most, func(price float64) bool {
		sum := 0.0
		for _, i := range members {
			sum += f.visits(i, price)
		}
		return sum > bound
	})
	for _, i := range members {
		f.perDay[i] = f.visits(i, price)
	}
	f.trim(members, price, bound)
}

// trim reduces the visits of the members to a bound. The price is the highest one at which they
// want more.
//
// If visits are so rare that each finds a new version, worth and price are equal to the last digit,
// and the visits to a page jump from none to one in about 40 mean intervals. Pages at that edge get
// what the others leave.
func (f *pool) trim(members []int, price, bound float64) {
	const edge = 1 + 1e-12
	sum, edged := 0.0, 0.0
	for _, i := range members {
		sum += f.perDay[i]
		if f.worth[i] <= price*edge {
			edged += f.perDay[i]
		}
	}
	if sum <= bound {
		return
	}
	cut := sum - bound
	for _, i := range members {
		switch {
		case edged < cut: // no edge, only rounding
			f.perDay[i] *= 1 - cut/sum
		case f.worth[i] <= price*edge:
			f.perDay[i] *= 1 - cut/edged
		}
	}
}

// gainInverse returns the x at which gain(x) is y, for y between 0 and 1.
func gainInverse(y float64) float64 {
	// Newton's method from sqrt(2y), which lies below: gain rises with slope x*exp(-x). Above its
	// turning point at 1 the steps are bounded by the function's tail.
	x := math.Sqrt(2 * y)
	if x == 0 {
		return math.SmallestNonzeroFloat32
	}
	for range 100 {
		step := (y - gain(x)) / (x * math.Exp(-x))
		x += min(max(step, -x/2), 1)
		if math.Abs(step) < 1e-12*x {
			break
		}
	}
	return x
}

// gain is the marginal worth of one more visit, in versions, to a page that has changed x times on
// average since the last one: the derivative of r(1-exp(-l/r)) with respect to r, with x = l/r.
func gain(x float64) float64 {
	if x < 1e-3 { // avoids cancellation in the difference below
		return x * x * (0.5 - x*(1.0/3-x/8))
	}
	return 1 - (1+x)*math.Exp(-x)
}
