package report

import (
	"bytes"
	"encoding/xml"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireValid checks that a plot is an XML document with one line for each series.
func requireValid(t *testing.T, name string, p Plot) {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, p.Draw(&out), name)
	require.NotContains(t, out.String(), "NaN", name)
	require.NotContains(t, out.String(), "Inf", name)
	shapes := 0
	for d := xml.NewDecoder(&out); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		require.NoError(t, err, name)
		e, ok := token.(xml.StartElement)
		if ok && (e.Name.Local == "polyline" || e.Name.Local == "circle") {
			shapes++
		}
	}
	require.GreaterOrEqual(t, shapes, len(p.Lines), name)
}

func TestPlotsAreValid(t *testing.T) {
	requireValid(t, "empty", Plot{Title: "a < b & c"})
	one := Line{Name: "x", X: []float64{1}, Y: []float64{1}, Points: true}
	requireValid(t, "one point", Plot{Lines: []Line{one}})
	large := Line{Name: "x", X: []float64{1e20}, Y: []float64{1e20}, Points: true}
	requireValid(t, "one large point", Plot{LogX: true, LogY: true, Lines: []Line{large}})
	requireValid(t, "holes", Plot{LogX: true, LogY: true, Lines: []Line{
		{Name: "x", X: []float64{0, 1, math.NaN(), 100}, Y: []float64{1, 0, 2, math.Inf(1)}},
		{Name: "y", X: []float64{1, 10}, Y: []float64{5, 50}},
	}})
}

func TestTicksAreRound(t *testing.T) {
	require.Equal(t, []float64{1, 2, 5, 10, 20, 50, 100}, axis{1, 100, true}.ticks())
	want := []float64{0, .1, .2, .3, .4, .5, .6, .7, .8, .9}
	require.InDeltaSlice(t, want, axis{0, .95, false}.ticks(), 1e-9)
	require.InDeltaSlice(t, []float64{0, .2, .4, .6, .8, 1}, axis{0, 1, false}.ticks(), 1e-9)
	require.InDeltaSlice(t, []float64{0, 5, 10, 15, 20, 25, 30}, axis{0, 30, false}.ticks(), 1e-9)
}

func TestSeriesCanBeDistinguished(t *testing.T) {
	seen := map[pen]bool{}
	for n := range Series {
		p := penOf(n, Line{})
		require.False(t, seen[p], "series %d looks like an earlier one", n)
		seen[p] = true
		require.Greater(t, penOf(n, Line{Bold: true}).width, p.width)
	}
}

func TestChartsAreValid(t *testing.T) {
	var out bytes.Buffer
	c := Chart{Title: "a < b", First: "x", Second: "y", Bars: []Bar{{"one", 1, 0.5}, {"none", 0, 0}}}
	require.NoError(t, c.Draw(&out))
	require.NoError(t, xml.Unmarshal(out.Bytes(), new(struct{})))
	require.Contains(t, out.String(), "a &lt; b")

	out.Reset()
	require.NoError(t, Chart{Bars: []Bar{{"none", 0, 0}}}.Draw(&out))
	require.NotContains(t, out.String(), "NaN")
}
