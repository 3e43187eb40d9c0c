package main

import (
	"fmt"

	"github.com/spinneret-go/spinneret/pagerank"
	"github.com/spinneret-go/spinneret/pagerank/compare"
)

// A contender is a strategy to try.
type contender struct {
	name  string
	make  func(s start) compare.Strategy
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

// recomputations is how often the paper recomputed PR in a crawl.
const recomputations = 100

// contenders returns all strategies: those of the paper, others, and the oracle.
func contenders(hosts bool) []contender {
	frontier := func(opts pagerank.Options) func(s start) compare.Strategy {
		return func(s start) compare.Strategy {
			opts := opts
			opts.Host = s.host()
			return pagerank.New(opts)
		}
	}
	all := []contender{
		{nameBF, func(s start) compare.Strategy {
			return &compare.BreadthFirst{Host: s.host()}
		}, false, true},
		{nameBLC, func(s start) compare.Strategy {
			return &compare.BackLinks{Host: s.host(), Tie: lookup(s.ties)}
		}, false, true},
		{namePR, func(s start) compare.Strategy {
			return &compare.Batch{Host: s.host(), Every: s.graph.Len()/recomputations + 1}
		}, true, true},
		{nameDL1, frontier(pagerank.Options{Cutoff: pagerank.DL1}), false, true},
		{namePL, func(s start) compare.Strategy { return &compare.PL{Host: s.host()} }, true, true},
		{nameVR, func(s start) compare.Strategy { return &compare.VR{Host: s.host()} }, true, true},
		{nameAR, frontier(pagerank.Options{Cutoff: pagerank.AR}), true, true},
		{"AR 1/2, d=.85", frontier(pagerank.Options{
			Cutoff: pagerank.AR, Threshold: 0.5, Damping: pagerank.DefaultDamping,
		}), true, false},
		{namePush, frontier(pagerank.Options{}), true, true},
		{nameOPIC, func(s start) compare.Strategy { return &compare.OPIC{Host: s.host()} }, false, false},
		{nameOracle, func(s start) compare.Strategy { return newOracle(s.truth) }, false, false},
	}
	if hosts {
		all = append(all, contender{"Push, no hosts", func(start) compare.Strategy {
			return pagerank.New(pagerank.Options{})
		}, true, false})
	}
	return all
}

// thresholds returns Push with other thresholds, with hosts and without.
func thresholds(all []float64) (list []contender) {
	for _, t := range all {
		list = append(list, contender{fmt.Sprintf("Push %g", t), func(s start) compare.Strategy {
			return pagerank.New(pagerank.Options{Threshold: t, Host: s.host()})
		}, true, false}, contender{fmt.Sprintf("Push %g, no hosts", t), func(start) compare.Strategy {
			return pagerank.New(pagerank.Options{Threshold: t})
		}, true, false})
	}
	return list
}

// workOf returns the cost of a strategy as far as it is known.
func workOf(s compare.Strategy) (stats pagerank.Stats) {
	switch s := s.(type) {
	case interface{ Stats() pagerank.Stats }:
		return s.Stats()
	case interface{ Updates() int }:
		stats.Updates = s.Updates()
	}
	return stats
}
