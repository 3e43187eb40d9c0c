package main

import (
	"math/rand/v2"
	"slices"

	"github.com/spinneret-go/spinneret/pagerank"
	"github.com/spinneret-go/spinneret/pagerank/compare"
)

// A quality is a label on a tenth of the pages, the goal of the crawl: training data for language
// models in Craw4LLM (arXiv 2502.13347), relevant pages in arXiv 2506.16146. As there, good pages
// link to good pages.
type quality struct {
	good     []bool
	followed float64 // share of the links of good pages that lead to good pages
}

const (
	goodShare  = 0.1
	poorWorth  = 0.05 // worth of a page that is not good; 1 is that of a good one
	firstPart  = 0.1  // of the crawl
	smoothings = 2    // more make longer chains of good pages
)

// newQuality gives each page a random number, repeatedly replaces it by the mean over the page and
// its links, and labels the pages with the highest numbers.
func newQuality(g *compare.Graph, seed uint64) quality {
	random := rand.New(rand.NewPCG(seed, 10))
	values := make([]float64, g.Len())
	for i := range values {
		values[i] = random.NormFloat64()
	}
	for range smoothings {
		next := make([]float64, len(values))
		for id := range values {
			links := g.Links(uint32(id))
			sum := 0.0
			for _, to := range links {
				sum += values[to]
			}
			next[id] = values[id]/2 + sum/float64(2*max(1, len(links)))
		}
		values = next
	}
	sorted := slices.Sorted(slices.Values(values))
	least := sorted[int((1-goodShare)*float64(len(sorted)))]
	q := quality{good: make([]bool, len(values))}
	all, followed := 0, 0
	for id := range values {
		q.good[id] = values[id] >= least
	}
	for id := range values {
		for _, to := range g.Links(uint32(id)) {
			if q.good[id] {
				all++
				if q.good[to] {
					followed++
				}
			}
		}
	}
	q.followed = float64(followed) / float64(max(1, all))
	return q
}

func (q quality) worth(id uint32) float64 {
	if q.good[id] {
		return 1
	}
	return poorWorth
}

// A harvest is the yield of the first part of a crawl: shares of the good pages, and of their
// PageRank.
type harvest struct {
	name        string
	pages, rank float64
}

// harvests crawls from each seed with strategies that have increasing knowledge about the worth of
// pages.
func (r *result) harvests() (all []harvest, followed float64) {
	for i, s := range r.starts {
		q := newQuality(s.graph, uint64(i))
		followed += q.followed / float64(len(r.starts))
		seen := make([]bool, s.graph.Len())
		seenWorth := func(id uint32) float64 {
			if seen[id] {
				return q.worth(id)
			}
			return 1
		}
		options := func(o pagerank.Options) compare.Strategy {
			o.Host = s.host()
			return pagerank.New(o)
		}
		for k, c := range []struct {
			name     string
			strategy compare.Strategy
		}{
			{nameBF, &compare.BreadthFirst{Host: s.host()}},
			{nameDL1, options(pagerank.Options{Cutoff: pagerank.DL1})},
			{namePush, options(pagerank.Options{})},
			{"Push, Inherit: score known once fetched", options(pagerank.Options{Score: seenWorth, Inherit: true})},
			{"Push, Score: score known before", options(pagerank.Options{Score: q.worth})},
			{"Push, Score and Inherit", options(pagerank.Options{Score: q.worth, Inherit: true})},
		} {
			if i == 0 {
				all = append(all, harvest{name: c.name})
			}
			clear(seen)
			pages, rank := q.harvest(s, c.strategy, seen)
			all[k].pages += pages / float64(len(r.starts))
			all[k].rank += rank / float64(len(r.starts))
		}
	}
	return all, followed
}

// harvest crawls the first part.
func (q quality) harvest(s start, strategy compare.Strategy, seen []bool) (pages, rank float64) {
	for _, id := range s.seeds {
		strategy.Discover(id)
	}
	for range int(firstPart * float64(s.graph.Len())) {
		id, ok := strategy.Next()
		if !ok {
			break
		}
		seen[id] = true
		strategy.Fetched(id, s.graph.Links(id))
	}
	var allPages, allRank float64
	for id, good := range q.good {
		if !good {
			continue
		}
		allPages++
		allRank += s.truth.rank[id]
		if seen[id] {
			pages++
			rank += s.truth.rank[id]
		}
	}
	return pages / max(allPages, 1), rank / max(allRank, 1e-300)
}
