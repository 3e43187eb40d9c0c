package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", name))
	require.NoError(t, err)
	return string(text)
}

func TestReadmeHasTheFiguresOfTheReport(t *testing.T) {
	readme, report := read(t, readmeName), read(t, reportName)
	want, err := update(readme, sectionsOf(report))
	require.NoError(t, err)
	require.Equal(t, want, readme, "run: go run ./internal/house/figures")
	changed, err := update(readme, sectionsOf(strings.ReplaceAll(report, " ns/op", "9 ns/op")))
	require.NoError(t, err)
	require.NotEqual(t, readme, changed, "the figures must depend on the report")
}

func TestGoalsHaveTheFiguresOfTheReport(t *testing.T) {
	report := read(t, reportName)
	want, err := makeGoals(sectionsOf(report))
	require.NoError(t, err)
	require.Equal(t, want, read(t, goalsName), "run: go run ./internal/house/figures")
	slower, err := makeGoals(sectionsOf(strings.ReplaceAll(report, "| 64 | 0.", "| 64 | 9.")))
	require.NoError(t, err)
	require.Greater(t, strings.Count(slower, "missed:"), strings.Count(want, "missed:"))
	_, err = makeGoals(nil)
	require.ErrorContains(t, err, "nothing matches")
}

func TestScaleHasTheFiguresOfTheReport(t *testing.T) {
	report := read(t, reportName)
	want, err := makeScale(sectionsOf(report))
	require.NoError(t, err)
	require.Equal(t, want, read(t, scaleName), "run: go run ./internal/house/figures")
	larger, err := makeScale(sectionsOf(strings.ReplaceAll(report, "fullcrawler with gzip ", "fullcrawler with gzip 1")))
	require.NoError(t, err)
	require.NotEqual(t, want, larger)
	_, err = makeScale(nil)
	require.ErrorContains(t, err, "nothing matches")
}

func TestMissingFiguresAreErrors(t *testing.T) {
	_, err := makeTable(map[string]string{robots: "nothing\n"})
	require.ErrorContains(t, err, "nothing matches")
	_, err = replaceTable("no table", nil)
	require.ErrorContains(t, err, "has no table")
	_, err = replaceTable(tableHead+"| a | b | c |\n", nil)
	require.ErrorContains(t, err, "no empty line")
	_, err = replaceMap("no map", "")
	require.ErrorContains(t, err, "has no map")
	_, err = replaceMap("| [`p`](x) | q | none; 1 MB |", "")
	require.ErrorContains(t, err, "lacks package p")
	_, err = of("a", "x "+number, 1).in(map[string]string{"a": "x 1.2.3\n"})
	require.ErrorContains(t, err, "invalid syntax")
}

func TestFiguresAreMedians(t *testing.T) {
	got, err := of("a", "x "+number, 10).in(map[string]string{"a": "x 7\n x   1\nx 2\ny 9\n"})
	require.NoError(t, err)
	require.Equal(t, 20.0, got)
}

func TestMapHasDependenciesAndSizes(t *testing.T) {
	got, err := replaceMap("| [`p`](x) | q | old |\n| [`r`](x) | s | old |\n",
		"p      none     0   0.5 MB\nr  a/b, c/d  12  1.5 MB\n")
	require.NoError(t, err)
	require.Equal(t, "| [`p`](x) | q | none; 0.5 MB |\n| [`r`](x) | s | 12 packages of a/b, c/d; 1.5 MB |\n", got)
}

func TestFormat(t *testing.T) {
	for value, want := range map[float64]string{
		0: "0", 0.0715: "0.071", 0.2351: "0.24", 1.187: "1.2", 33.84: "34", 378.8: "380", 999: "1,000",
		38573: "39,000", 593195: "590,000", 12345678: "12,000,000",
	} {
		require.Equal(t, want, format(value, 2), value)
	}
}
