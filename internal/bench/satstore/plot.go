//go:build linux

package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A plot is a figure with logarithmic axes, like those in the paper.
type plot struct {
	title, x, y string
	lines       map[string][]point
}

type point struct{ x, y float64 }

func (p *plot) add(line string, x, y float64) {
	if p.lines == nil {
		p.lines = map[string][]point{}
	}
	if x > 0 && y > 0 {
		p.lines[line] = append(p.lines[line], point{x, y})
	}
}

// axes are the flags that a figure may have as its x axis.
var axes = []struct {
	name, label string
	of          func(config) float64
}{
	{"records", "records", func(c config) float64 { return float64(c.Records) }},
	{"fixed", "fixed part of a record (bytes)", func(c config) float64 { return float64(c.Fixed) }},
	{"buffer", "buffers (MiB)", func(c config) float64 { return float64(c.Buffer) / (1 << 20) }},
}

// plotAll writes a figure of times, of rates and of sizes for each flag that has several values,
// and one of time by slot.
func plotAll(dir string, results []result) error {
	trace := plot{title: "Time by slot (Figure 6)", x: "slot", y: "µs per record"}
	for _, r := range results {
		for i, y := range r.Trace {
			trace.add(lineOf(r.Config, "", results), float64(i+1), y)
		}
	}
	if err := trace.save(filepath.Join(dir, "trace.svg")); err != nil {
		return err
	}
	for _, axis := range axes {
		time := plot{title: "Time (Figures 7 to 9)", x: axis.label, y: "µs per record"}
		rate := plot{title: "Throughput (Figure 10)", x: axis.label, y: "MB/s"}
		size := plot{title: "Size (Figure 5)", x: axis.label, y: "GB on disk"}
		values := map[float64]bool{}
		for _, r := range results {
			x := axis.of(r.Config)
			values[x] = true
			line := lineOf(r.Config, axis.name, results)
			time.add(line, x, r.Micros)
			rate.add(line, x, r.Rate())
			size.add(line, x, float64(r.Size)/1e9)
		}
		if len(values) < 2 {
			continue
		}
		for kind, p := range map[string]plot{"time": time, "rate": rate, "size": size} {
			if err := p.save(filepath.Join(dir, kind+"-by-"+axis.name+".svg")); err != nil {
				return err
			}
		}
	}
	return nil
}

// lineOf names the line of a config: its engine, and the flags that differ and are not the axis.
func lineOf(c config, axis string, results []result) string {
	name := c.Engine
	for _, a := range axes {
		for _, r := range results {
			if a.name != axis && a.of(r.Config) != a.of(c) {
				name += fmt.Sprintf(" %s=%g", a.name, a.of(c))
				break
			}
		}
	}
	return name
}

const (
	plotWidth, plotHeight = 720.0, 460.0
	plotLeft, plotBottom  = 70.0, 50.0
	plotRight, plotTop    = 190.0, 40.0
)

var plotColors = []string{
	"#1b6ca8", "#d1495b", "#3a7d44", "#edae49", "#6a4c93", "#00798c", "#8d5524", "#555555",
}

// save draws the figure as SVG.
func (p *plot) save(name string) error {
	low, high := point{math.Inf(1), math.Inf(1)}, point{}
	for _, line := range p.lines {
		for _, at := range line {
			low = point{min(low.x, at.x), min(low.y, at.y)}
			high = point{max(high.x, at.x), max(high.y, at.y)}
		}
	}
	low, high = point{low.x / 1.1, low.y / 1.5}, point{high.x * 1.1, high.y * 1.5}
	place := func(at point) (x, y float64) {
		x = plotLeft + (plotWidth-plotLeft-plotRight)*math.Log(at.x/low.x)/math.Log(high.x/low.x)
		y = plotHeight - plotBottom -
			(plotHeight-plotBottom-plotTop)*math.Log(at.y/low.y)/math.Log(high.y/low.y)
		return x, y
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" `+
		`font-family="sans-serif" font-size="12"><rect width="100%%" height="100%%" fill="white"/>`+
		"\n", plotWidth, plotHeight)
	text(&b, plotLeft, 20, "start", p.title+": "+p.y)
	text(&b, (plotWidth-plotRight+plotLeft)/2, plotHeight-10, "middle", p.x)
	for _, tick := range ticks(low.x, high.x) {
		x, _ := place(point{tick, low.y})
		fmt.Fprintf(&b, `<path d="M%.1f %g V%g" stroke="#ddd"/>`, x, plotTop, plotHeight-plotBottom)
		text(&b, x, plotHeight-plotBottom+16, "middle", fmt.Sprintf("%g", tick))
	}
	for _, tick := range ticks(low.y, high.y) {
		_, y := place(point{low.x, tick})
		fmt.Fprintf(&b, `<path d="M%g %.1f H%g" stroke="#ddd"/>`, plotLeft, y, plotWidth-plotRight)
		text(&b, plotLeft-6, y+4, "end", fmt.Sprintf("%g", tick))
	}
	p.drawLines(&b, place)
	b.WriteString("</svg>\n")
	return os.WriteFile(name, []byte(b.String()), 0o644)
}

func (p *plot) drawLines(b *strings.Builder, place func(point) (x, y float64)) {
	names := make([]string, 0, len(p.lines))
	for name := range p.lines {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		color := plotColors[i%len(plotColors)]
		line := p.lines[name]
		slices.SortStableFunc(line, func(a, b point) int { return int(math.Copysign(1, a.x-b.x)) })
		fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="1.5" points="`, color)
		for _, at := range line {
			x, y := place(at)
			fmt.Fprintf(b, "%.1f,%.1f ", x, y)
		}
		b.WriteString(`"/>` + "\n")
		y := plotTop + 16*float64(i+1)
		fmt.Fprintf(b, `<rect x="%g" y="%g" width="10" height="10" fill="%s"/>`,
			plotWidth-plotRight+12, y-9, color)
		text(b, plotWidth-plotRight+28, y, "start", name)
	}
}

func text(b *strings.Builder, x, y float64, anchor, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, s)
}

// ticks returns 1, 2 and 5 times powers of ten.
func ticks(low, high float64) (all []float64) {
	for power := math.Pow(10, math.Floor(math.Log10(low))); power <= high; power *= 10 {
		for _, n := range []float64{1, 2, 5} {
			if x := n * power; x >= low && x <= high {
				all = append(all, x)
			}
		}
	}
	return all
}
