package main

import "github.com/spinneret-go/spinneret/pagerank"

// A contender is a strategy to try.
type contender struct {
	name  string
	make  func(s start) pagerank.Strategy
	keeps bool // it keeps links
	fast  bool // its speed is measured
}

// Names that the claims refer to.
const (
	nameBF, nameBLC, namePR = "BF", "BLC", "PR"
	nameDL1, namePL, nameVR = "DL1", "PL 8", "VR 1.5"
	nameAR, namePush        = "AR 29/30", "Push"
	nameOPIC, nameOracle    = "OPIC", "oracle"
)

// recomputations is how often the paper's PR was computed in the course of a crawl.
const recomputations = 100

// contenders returns all strategies: those of the paper, others, and what cannot be beaten.
func contenders(hosts bool) []contender {
	frontier := func(opts pagerank.Options) func(s start) pagerank.Strategy {
		return func(s start) pagerank.Strategy {
			opts := opts
			opts.Host = s.host()
			return pagerank.New(opts)
		}
	}
	all := []contender{
		{nameBF, func(s start) pagerank.Strategy {
			return &pagerank.BreadthFirst{Host: s.host()}
		}, false, true},
		{nameBLC, func(s start) pagerank.Strategy {
			return &pagerank.BackLinks{Host: s.host(), Tie: lookup(s.ties)}
		}, false, true},
		{namePR, func(s start) pagerank.Strategy {
			return &pagerank.Batch{Host: s.host(), Every: s.graph.Len()/recomputations + 1}
		}, true, true},
		{nameDL1, frontier(pagerank.Options{Cutoff: pagerank.DL1}), false, true},
		{namePL, frontier(pagerank.Options{Cutoff: pagerank.PL}), true, true},
		{nameVR, frontier(pagerank.Options{Cutoff: pagerank.VR}), true, true},
		{nameAR, frontier(pagerank.Options{Cutoff: pagerank.AR}), true, true},
		{"AR 1/2, d=.85", frontier(pagerank.Options{
			Cutoff: pagerank.AR, Threshold: 0.5, Damping: pagerank.DefaultDamping,
		}), true, false},
		{namePush, frontier(pagerank.Options{}), true, true},
		{nameOPIC, func(s start) pagerank.Strategy { return &pagerank.OPIC{Host: s.host()} }, false, false},
		{"RankMass", func(s start) pagerank.Strategy {
			return &trusting{pagerank.RankMass(pagerank.Options{Threshold: 0.5, Host: s.host()})}
		}, true, false},
		{nameOracle, func(s start) pagerank.Strategy { return newOracle(s.truth) }, false, false},
	}
	if hosts {
		all = append(all, contender{"Push, no hosts", func(start) pagerank.Strategy {
			return pagerank.New(pagerank.Options{})
		}, true, false})
	}
	return all
}

// trusting trusts the seeds.
type trusting struct{ *pagerank.Frontier }

func (t *trusting) Discover(id uint32) { t.Trust(id, 1) }

// statsOf returns what a strategy knows about itself, if it is a frontier.
func statsOf(s pagerank.Strategy) (stats pagerank.Stats, ok bool) {
	switch s := s.(type) {
	case *pagerank.Frontier:
		return s.Stats(), true
	case *trusting:
		return s.Stats(), true
	}
	return stats, false
}
