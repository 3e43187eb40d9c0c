package main

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spinneret-go/spinneret/pagerank/compare"
	"github.com/stretchr/testify/require"
)

// four is a truth of four pages, the best first.
var four = &truth{rank: []float64{.4, .3, .2, .1}, order: []uint32{0, 1, 2, 3}}

func TestCriteriaWorkedByHand(t *testing.T) {
	best := four.rate([]uint32{0, 1, 2, 3})
	require.InDelta(t, 1, best.top[2], 1e-12, "the first page of four is the top 10 %")
	require.InDelta(t, .4+.75*.3+.5*.2+.25*.1, best.sum, 1e-12)
	require.Zero(t, best.error)

	worst := four.rate([]uint32{3, 2, 1, 0})
	require.InDelta(t, .25, worst.top[0], 1e-12)
	require.InDelta(t, 1, worst.error, 1e-12)
	require.InDelta(t, .25+worst.sum-1, worst.all(), 1e-12)
	require.InDelta(t, 1+best.sum, best.all(), 1e-12)

	swapped := four.rate([]uint32{0, 2, 1, 3})
	require.Greater(t, swapped.error, 0.0)
	require.Less(t, swapped.error, four.rate([]uint32{1, 0, 2, 3}).error, "early places weigh more")
	require.InDelta(t, .6, swapped.curves[nTops][curvePoints/2-1], 1e-12, "half of the crawl")
	require.InDelta(t, 1, swapped.curves[nTops][curvePoints-1], 1e-12)
}

func TestMeansOfScores(t *testing.T) {
	a, b := four.rate([]uint32{0, 1, 2, 3}), four.rate([]uint32{3, 2, 1, 0})
	mean := &score{}
	mean.add(a)
	mean.add(b)
	mean.divide(2)
	require.InDelta(t, (a.sum+b.sum)/2, mean.sum, 1e-12)
	require.InDelta(t, .5, mean.error, 1e-12)
	require.InDelta(t, (1+.25)/2, mean.top[1], 1e-12)
	require.InDelta(t, .5, mean.curves[0][0], 1e-12)
}

func TestTheOracleTakesTheBestKnownPage(t *testing.T) {
	g := compare.NewGraph(4, func(yield func(a, b uint32) bool) {
		for _, l := range [][2]uint32{{3, 2}, {3, 1}, {2, 0}} {
			if !yield(l[0], l[1]) {
				return
			}
		}
	})
	require.Equal(t, []uint32{3, 1, 2, 0}, crawl(g, []uint32{3}, newOracle(four)))
}

func TestStartsReachNearlyAll(t *testing.T) {
	w := generate(3000, 2)
	starts := w.starts(3)
	require.Len(t, starts, 3)
	for _, s := range starts {
		require.Greater(t, s.graph.Len(), 2000)
		_, n := s.reach(s.seeds)
		require.Equal(t, s.graph.Len(), n, "all pages are reachable")
		require.Len(t, s.hosts, n, "hosts are kept")
	}
	lone, err := readWeb(write(t, "g", "0 1\n"), "")
	require.NoError(t, err)
	require.Len(t, lone.starts(4), 1)
}

func TestTheGeneratorMakesHosts(t *testing.T) {
	w := generate(5000, 1)
	same, hosts := 0, map[uint32]int{}
	for id := range uint32(5000) {
		hosts[w.hosts[id]]++
		for _, to := range w.graph.Links(id) {
			if w.hosts[id] == w.hosts[to] {
				same++
			}
		}
	}
	require.Greater(t, len(hosts), 50)
	require.InDelta(t, .85, float64(same)/float64(w.graph.Size()), .1)
	require.Equal(t, w.graph.Links(17), generate(5000, 1).graph.Links(17), "the same each time")
	require.Equal(t, "generated-5000", w.name)
	other := generate(5000, 2)
	require.Equal(t, "generated-5000-2", other.name)
	require.NotEqual(t, w.graph.Size(), other.graph.Size())
}

func TestTheLabReportsAll(t *testing.T) {
	dir := t.TempDir()
	var out strings.Builder
	args := []string{"-generate", "2000", "-crawls", "2", "-rounds", "1", "-out", dir}
	require.NoError(t, run(args, &out, io.Discard))
	for _, c := range contenders(true) {
		require.Contains(t, out.String(), "\n"+c.name+" ")
	}
	require.NotContains(t, out.String(), "NaN")
	for _, line := range strings.Split(out.String(), "\n") {
		if strings.HasPrefix(line, "scores are within") || strings.HasPrefix(line, "fetched pages have") {
			require.Contains(t, line, "  holds  ", "guarantees hold on any graph")
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "generated-2000", "*"))
	require.NoError(t, err)
	require.Len(t, files, 10)
	for _, name := range files {
		requireWellFormed(t, name)
	}
}

func requireWellFormed(t *testing.T, name string) {
	t.Helper()
	file, err := os.Open(name)
	require.NoError(t, err)
	defer file.Close()
	if strings.HasSuffix(name, ".csv") {
		rows, err := csv.NewReader(file).ReadAll()
		require.NoError(t, err, name)
		require.Greater(t, len(rows), 5, name)
		return
	}
	marks := 0
	for d := xml.NewDecoder(file); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err, name)
		if e, ok := token.(xml.StartElement); ok && (e.Name.Local == "polyline" || e.Name.Local == "rect") {
			marks++
		}
	}
	require.Greater(t, marks, 4, name)
}

func TestBadArgumentsAreRefused(t *testing.T) {
	graph := write(t, "g", "0 1\n1 0\n")
	for _, args := range [][]string{
		{"-crawls", "0", graph}, {"-pages", "x", graph, graph}, {"-generate", "9999999999"},
		{"-nosuchflag"}, {"/no/such/graph"}, {"-seeds", "7", graph}, {"-seeds", "http://a/", graph},
		{"-pages", "/no/such/pages", graph},
	} {
		require.Error(t, run(args, io.Discard, io.Discard), "%v", args)
	}
	var out bytes.Buffer
	require.ErrorContains(t, run([]string{"-out", graph, graph}, &out, io.Discard), "-out: ")
	require.Zero(t, out.Len(), "it is known before any work")
	require.NoError(t, run([]string{"-rounds", "0", "-seeds", "1", graph}, io.Discard, io.Discard))
}

func TestARealGraph(t *testing.T) {
	data := os.Getenv("SPINNERET_DATA")
	if data == "" {
		data = "../../../shared/data"
	}
	graph := filepath.Join(data, "graphs/hollins/edges.hollins.dat")
	if _, err := os.Stat(graph); err != nil {
		t.Skip("no graphs below SPINNERET_DATA: ", err)
	}
	var out strings.Builder
	pages := filepath.Join(filepath.Dir(graph), "nodes.links.dat")
	args := []string{"-rounds", "0", "-crawls", "1", "-pages", pages, graph}
	require.NoError(t, run(args, &out, io.Discard))
	require.Contains(t, out.String(), "# hollins: 6013 pages, 23875 links")
	require.Contains(t, out.String(), "Push, no hosts", "the list of pages gives hosts")
}

func TestNoArgumentsGenerateAGraph(t *testing.T) {
	s, err := parse(nil, io.Discard)
	require.NoError(t, err)
	require.Equal(t, defaultPages, s.generate)
	s, err = parse([]string{"graph.tsv"}, io.Discard)
	require.NoError(t, err)
	require.Zero(t, s.generate)
	_, err = parse([]string{"-generate", "-1"}, io.Discard)
	require.Error(t, err)
}
