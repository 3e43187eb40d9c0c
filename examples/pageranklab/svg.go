package main

import (
	"fmt"
	"html"
	"io"
	"math"
)

// A line is one series of a plot.
type line struct {
	name   string
	x, y   []float64
	points bool // draw points instead of a line
}

// A plot is a chart with two axes.
type plot struct {
	title, xName, yName string
	logX, logY          bool
	lines               []line
}

// The canvas.
const (
	plotWidth, plotHeight     = 820.0, 520.0
	plotLeft, plotRight       = 70.0, 600.0
	plotTop, plotBottom       = 40.0, 460.0
	legendLeft, legendSpacing = 615.0, 18.0
)

// colours are told apart by most eyes; after the last one they begin again, with dashes.
var colours = []string{
	"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#7f3c8d",
}

// An axis maps values to the canvas.
type axis struct {
	low, high float64
	log       bool
}

// axisOf returns an axis that holds all finite values.
func axisOf(log bool, values func(yield func(float64))) axis {
	a := axis{math.Inf(1), math.Inf(-1), log}
	values(func(v float64) {
		if log && v <= 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			return
		}
		a.low, a.high = min(a.low, v), max(a.high, v)
	})
	switch {
	case a.low > a.high:
		a.low, a.high = 1, 2
	case a.low == a.high:
		a.high = a.low + 1
	}
	if !log {
		a.low = min(a.low, 0)
	}
	return a
}

// share returns where v lies, from 0 to 1.
func (a axis) share(v float64) float64 {
	if a.log {
		return math.Log(v/a.low) / math.Log(a.high/a.low)
	}
	return (v - a.low) / (a.high - a.low)
}

// ticks returns a handful of round values.
func (a axis) ticks() (values []float64) {
	if a.log {
		for v := math.Pow(10, math.Floor(math.Log10(a.low))); v <= a.high; v *= 10 {
			for _, m := range []float64{1, 2, 5} {
				if v*m >= a.low && v*m <= a.high {
					values = append(values, v*m)
				}
			}
		}
		return values
	}
	step := math.Pow(10, math.Floor(math.Log10(a.high-a.low)))
	for (a.high-a.low)/step < 5 {
		step /= 2
	}
	for n := math.Ceil(a.low / step); n*step <= a.high; n++ {
		values = append(values, n*step)
	}
	return values
}

// writeTo writes the plot as SVG.
func (p plot) writeTo(w io.Writer) error {
	out := &printer{w: w}
	xs := axisOf(p.logX, func(yield func(float64)) { p.each(func(x, _ float64) { yield(x) }) })
	ys := axisOf(p.logY, func(yield func(float64)) { p.each(func(_, y float64) { yield(y) }) })
	x := func(v float64) float64 { return plotLeft + xs.share(v)*(plotRight-plotLeft) }
	y := func(v float64) float64 { return plotBottom - ys.share(v)*(plotBottom-plotTop) }
	out.open(plotHeight, p.title)
	out.text((plotLeft+plotRight)/2, plotBottom+42, "middle", p.xName)
	out.text(plotLeft, plotTop-4, "middle", p.yName)
	for _, v := range xs.ticks() {
		out.rule(x(v), plotTop, x(v), plotBottom)
		out.text(x(v), plotBottom+18, "middle", fmt.Sprintf("%.4g", v))
	}
	for _, v := range ys.ticks() {
		out.rule(plotLeft, y(v), plotRight, y(v))
		out.text(plotLeft-6, y(v)+4, "end", fmt.Sprintf("%.4g", v))
	}
	for i, l := range p.lines {
		p.draw(out, i, l, x, y)
	}
	out.printf("</svg>\n")
	return out.err
}

// each visits all points that can be drawn.
func (p plot) each(visit func(x, y float64)) {
	for _, l := range p.lines {
		for i := range l.x {
			if p.drawable(l.x[i], l.y[i]) {
				visit(l.x[i], l.y[i])
			}
		}
	}
}

func (p plot) drawable(x, y float64) bool {
	finite := !math.IsNaN(x+y) && !math.IsInf(x+y, 0)
	return finite && !(p.logX && x <= 0) && !(p.logY && y <= 0)
}

func (p plot) draw(out *printer, n int, l line, x, y func(float64) float64) {
	colour, dash := colours[n%len(colours)], ""
	if n >= len(colours) {
		dash = ` stroke-dasharray="5 3"`
	}
	path := ""
	for i := range l.x {
		if !p.drawable(l.x[i], l.y[i]) {
			continue
		}
		path += fmt.Sprintf("%.1f,%.1f ", x(l.x[i]), y(l.y[i]))
		if l.points {
			out.printf(`<circle cx="%.1f" cy="%.1f" r="5" fill="%s"/>`+"\n", x(l.x[i]), y(l.y[i]), colour)
		}
	}
	if !l.points {
		out.printf(`<polyline points="%s" fill="none" stroke="%s" stroke-width="2"%s/>`+"\n",
			path, colour, dash)
	}
	at := plotTop + legendSpacing*float64(n)
	out.printf(`<line x1="%g" y1="%g" x2="%g" y2="%g" stroke="%s" stroke-width="3"%s/>`+"\n",
		legendLeft, at, legendLeft+20, at, colour, dash)
	out.text(legendLeft+26, at+4, "start", l.name)
}

// A printer keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func (p *printer) text(x, y float64, anchor, text string) {
	p.printf(`<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor,
		html.EscapeString(text))
}

func (p *printer) rule(x1, y1, x2, y2 float64) {
	p.printf(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#ddd"/>`+"\n", x1, y1, x2, y2)
}

// open begins a drawing.
func (p *printer) open(height float64, title string) {
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" `+
		`font-family="sans-serif" font-size="12">`+"\n", plotWidth, height)
	p.printf(`<rect width="100%%" height="100%%" fill="white"/>` + "\n")
	p.text(plotLeft, 24, "start", title)
}

// A bar is a value of a bar chart, and a second one that is a part of it or lies beside it.
type bar struct {
	name          string
	value, second float64
}

// A chart is a list of bars.
type chart struct {
	title, first, second string // second may be empty
	bars                 []bar
}

// writeTo writes the chart as SVG.
func (c chart) writeTo(w io.Writer) error {
	const row, left, right = 34.0, 170.0, 740.0
	out := &printer{w: w}
	most := 0.0
	for _, b := range c.bars {
		most = max(most, b.value, b.second)
	}
	out.open(80+row*float64(len(c.bars)), c.title)
	draw := func(y, height, v float64, colour string) {
		out.printf(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", left, y,
			v/most*(right-left), height, colour)
		out.text(left+v/most*(right-left)+4, y+height-1, "start", fmt.Sprintf("%.3g", v))
	}
	for i, b := range c.bars {
		y := 50 + row*float64(i)
		out.text(left-8, y+16, "end", b.name)
		draw(y, 12, b.value, colours[0])
		if c.second != "" {
			draw(y+13, 12, b.second, colours[4])
		}
	}
	end := 70 + row*float64(len(c.bars))
	out.printf(`<text x="%g" y="%g" fill="%s">%s</text>`+"\n", left, end, colours[0],
		html.EscapeString(c.first))
	out.printf(`<text x="%g" y="%g" fill="%s">%s</text>`+"\n", left+300, end, colours[4],
		html.EscapeString(c.second))
	out.printf("</svg>\n")
	return out.err
}
