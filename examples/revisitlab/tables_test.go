package main

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/internal/report"
)

func TestTablesShowTheOutcomes(t *testing.T) {
	won := func(own, of int) map[string]*tally {
		return map[string]*tally{"AIMD": {own, of}}
	}
	all := []outcome{
		{
			name: "made",
			summary: &summary{
				name: "made",
				costs: []summaryCost{
					{visits: 8.52, lead: 0.0071, margin: 0.0721, mean: 0.2, oracle: 0.1},
					{visits: 141, lead: -0.02, margin: 0.004, mean: -0.1, oracle: 0.1},
				},
				won: [len(matches)]map[string]*tally{won(2, 3), won(0, 3), won(3, 3)},
			},
			claims: []claim{{text: "one", holds: true}, {text: "two", brief: "0.14"}, {text: "three"}},
			crowds: []crowding{{
				own: 1.02, paper: 1.1, oracle: 1.16, theory: 1.01, unused: 0.02, unusedPaper: 0.13,
			}},
		},
		{
			name:    "other",
			summary: &summary{name: "other", won: [len(matches)]map[string]*tally{won(1, 1)}},
			claims:  []claim{{text: "one"}, {text: "two", void: true, brief: "NaN"}, {text: "three"}},
		},
		{name: "in short"},
	}
	var out bytes.Buffer
	require.NoError(t, printTables(&out, all))
	for _, row := range []string{
		"| made | 8.52 141 | +0.007±0.072 −0.020±0.004 | +0.200 −0.100 | -0.06 |",
		"| least lead | not below −0.01 | −0.020 |",
		"| AIMD | 3 of 4 | 0 of 3 | 3 of 3 | 0 of 0 | 0 of 0 |",
		"| claim | made | other |",
		"| one | yes | no |",
		"| two | 0.14 | – |",
		"| made | 1.02 | 1.10 | 1.16 | 1.01 | 2 %, 13 % |",
	} {
		require.Contains(t, out.String(), row+"\n")
	}
	require.NotContains(t, out.String(), "| in short")
	require.NotContains(t, out.String(), "NaN")
}

// Each row of a table must have as many cells as its head, or Markdown drops some.
func TestTablesAreRectangles(t *testing.T) {
	pages := synthesize(8, 2, 1, 6)
	r := result{name: "made", pages: pages}
	l := lab{step: 1}
	for _, p := range paperPolicies() {
		r.names = append(r.names, p.name)
	}
	r.scores = l.simulateAll(pages, paperPolicies(), func(float64) {})
	r.curves = l.curves(pages, families(), func(float64) {})
	leads := r.summarize()
	o := outcome{name: r.name, summary: &leads, claims: r.claims()}
	o.crowds = r.printOverload(report.NewPrinter(&bytes.Buffer{}), l)
	require.Len(t, o.crowds, 2)
	for _, c := range o.crowds {
		require.InDelta(t, 1, c.own, 0.5)
		require.GreaterOrEqual(t, c.theory, 1.0)
	}
	var out bytes.Buffer
	require.NoError(t, printTables(&out, []outcome{o, o}))
	tables := strings.Split(strings.TrimSpace(out.String()), "\n\n")
	require.Len(t, tables, 5)
	for _, table := range tables {
		rows := strings.Split(table, "\n")
		require.Greater(t, len(rows), 2)
		for _, row := range rows {
			require.Equal(t, strings.Count(rows[0], "|"), strings.Count(row, "|"), row)
		}
	}
}

func TestNothingSeenMakesNoTables(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, printTables(&out, []outcome{{name: "x"}}))
	require.Empty(t, out.String())
}

func TestDifferencesHaveSigns(t *testing.T) {
	require.Equal(t, "+0.125", signed(0.125))
	require.Equal(t, "−0.125", signed(-0.125))
	require.Equal(t, "-", signed(math.NaN()))
}
