package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGoodPagesLinkToGoodPages(t *testing.T) {
	g := sites(5000, 1).graph
	q := newQuality(g, 1)
	good := 0
	for _, is := range q.good {
		if is {
			good++
		}
	}
	require.InDelta(t, goodShare, float64(good)/5000, .001)
	require.Greater(t, q.followed, 1.5*goodShare)
	require.Equal(t, q, newQuality(g, 1))
	require.NotEqual(t, q.good, newQuality(g, 2).good)
}

func TestKnowingTheWorthOfPagesHelps(t *testing.T) {
	w := sites(5000, 2)
	r := &result{web: w, starts: w.starts(2)}
	for i := range r.starts {
		r.starts[i].truth = newTruth(r.starts[i].graph, 1)
	}
	all, followed := r.harvests()
	require.Greater(t, followed, goodShare)
	got := map[string]harvest{}
	for _, h := range all {
		require.Greater(t, h.pages, 0.0)
		require.LessOrEqual(t, h.pages, 1.0)
		require.LessOrEqual(t, h.rank, 1.0)
		got[h.name] = h
	}
	push, inherit := got[namePush], got["Push, Inherit: score known once fetched"]
	require.Greater(t, inherit.pages, 1.2*push.pages, "good pages lead to good pages")
	require.Greater(t, got["Push, Score: score known before"].pages, inherit.pages)
}

func TestSitesAreLarge(t *testing.T) {
	w := sites(6000, 1)
	hosts, same := map[uint32]int{}, 0
	for id := range uint32(6000) {
		hosts[w.hosts[id]]++
		for _, to := range w.graph.Links(id) {
			if w.hosts[to] == w.hosts[id] {
				same++
			}
		}
	}
	require.Less(t, len(hosts), 120, "50 pages each, or more")
	links := float64(w.graph.Size())
	require.Greater(t, links/6000, 10.0)
	require.Greater(t, float64(same)/links, .9)
	require.Equal(t, w.graph, sites(6000, 1).graph)
}
