package report

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// A Line is one series of a Plot.
type Line struct {
	Name   string
	X, Y   []float64 // of the same length
	Points bool      // draw points instead of a line
	Bold   bool      // the most important line
}

// A Plot is a drawing with two axes. Values that a logarithmic axis cannot show are omitted.
type Plot struct {
	Title, XName, YName string
	LogX, LogY          bool
	Lines               []Line
}

// The canvas.
const (
	plotWidth, plotHeight     = 820.0, 520.0
	plotLeft, plotRight       = 70.0, 600.0
	plotTop, plotBottom       = 40.0, 460.0
	legendLeft, legendSpacing = 615.0, 18.0
	nameLeft                  = 16.0
)

// colours can be distinguished by most people; after the last one they repeat, with dashes.
var colours = []string{
	"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#7f3c8d",
}

// Series is the number of lines that a Plot can distinguish.
const Series = 16

// An axis maps values to the canvas.
type axis struct {
	low, high float64
	log       bool
}

// axisOf returns an axis that covers all finite values.
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
		a.high = a.low + max(1, math.Abs(a.low)) // adding 1 to a large number may not change it
	}
	if !log {
		a.low = min(a.low, 0)
	}
	return a
}

// share returns the position of v, from 0 to 1.
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
	for _, m := range []float64{0.5, 0.2, 0.1} {
		if (a.high-a.low)/step >= 5 {
			break
		}
		step = m * math.Pow(10, math.Floor(math.Log10(a.high-a.low)))
	}
	for n := math.Ceil(a.low / step); n*step <= a.high; n++ {
		values = append(values, n*step)
	}
	return values
}

// Draw writes the plot as SVG.
func (p Plot) Draw(w io.Writer) error {
	out := NewPrinter(w)
	xs := axisOf(p.LogX, func(yield func(float64)) { p.each(func(x, _ float64) { yield(x) }) })
	ys := axisOf(p.LogY, func(yield func(float64)) { p.each(func(_, y float64) { yield(y) }) })
	x := func(v float64) float64 { return plotLeft + xs.share(v)*(plotRight-plotLeft) }
	y := func(v float64) float64 { return plotBottom - ys.share(v)*(plotBottom-plotTop) }
	out.open(plotHeight, p.Title)
	out.text((plotLeft+plotRight)/2, plotBottom+42, "middle", p.XName)
	const middle = (plotTop + plotBottom) / 2
	out.Printf(`<g transform="rotate(-90 %g %g)">`, nameLeft, middle)
	out.text(nameLeft, middle, "middle", p.YName)
	out.Printf("</g>\n")
	for _, v := range xs.ticks() {
		out.rule(x(v), plotTop, x(v), plotBottom)
		out.text(x(v), plotBottom+18, "middle", fmt.Sprintf("%.6g", v))
	}
	for _, v := range ys.ticks() {
		out.rule(plotLeft, y(v), plotRight, y(v))
		out.text(plotLeft-6, y(v)+4, "end", fmt.Sprintf("%.6g", v))
	}
	for i, l := range p.Lines {
		p.draw(out, i, l, x, y)
	}
	out.Printf("</svg>\n")
	return out.Err()
}

// each visits all points that can be drawn.
func (p Plot) each(visit func(x, y float64)) {
	for _, l := range p.Lines {
		for i := range l.X {
			if p.drawable(l.X[i], l.Y[i]) {
				visit(l.X[i], l.Y[i])
			}
		}
	}
}

func (p Plot) drawable(x, y float64) bool {
	finite := !math.IsNaN(x+y) && !math.IsInf(x+y, 0)
	return finite && !(p.LogX && x <= 0) && !(p.LogY && y <= 0)
}

// A pen is how one series looks.
type pen struct {
	colour, dash, fill string
	width              float64
}

// penOf returns the pen of the nth series. When the colours are used up, lines get dashes, and
// points become rings.
func penOf(n int, l Line) pen {
	p := pen{colour: colours[n%len(colours)], width: 1.5}
	p.fill = p.colour
	if n >= len(colours) {
		p.dash, p.fill = ` stroke-dasharray="5 3"`, "white"
	}
	if l.Bold {
		p.width = 3
	}
	return p
}

func (p Plot) draw(out *Printer, n int, l Line, x, y func(float64) float64) {
	pen := penOf(n, l)
	var path strings.Builder
	for i := range l.X {
		if !p.drawable(l.X[i], l.Y[i]) {
			continue
		}
		fmt.Fprintf(&path, "%.1f,%.1f ", x(l.X[i]), y(l.Y[i]))
		if l.Points {
			out.point(x(l.X[i]), y(l.Y[i]), pen)
		}
	}
	if !l.Points {
		out.Printf(`<polyline points="%s" fill="none" stroke="%s" stroke-width="%g"%s/>`+"\n",
			path.String(), pen.colour, pen.width, pen.dash)
	}
	at := plotTop + legendSpacing*float64(n)
	if l.Points {
		out.point(legendLeft+10, at, pen)
	} else {
		out.Printf(`<line x1="%g" y1="%g" x2="%g" y2="%g" stroke="%s" stroke-width="%g"%s/>`+"\n",
			legendLeft, at, legendLeft+20, at, pen.colour, pen.width, pen.dash)
	}
	out.text(legendLeft+26, at+4, "start", l.Name)
}

func (p *Printer) text(x, y float64, anchor, text string) {
	p.Printf(`<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor,
		html.EscapeString(text))
}

// open begins a drawing.
func (p *Printer) open(height float64, title string) {
	p.Printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" `+
		`font-family="sans-serif" font-size="12">`+"\n", plotWidth, height)
	p.Printf(`<rect width="100%%" height="100%%" fill="white"/>` + "\n")
	p.Printf(`<g font-size="15" font-weight="bold">`)
	p.text(plotLeft, plotTop-16, "start", title)
	p.Printf("</g>\n")
}

func (p *Printer) point(x, y float64, pen pen) {
	p.Printf(`<circle cx="%.1f" cy="%.1f" r="%g" fill="%s" stroke="%s" stroke-width="2"/>`+"\n",
		x, y, 3.5+pen.width/2, pen.fill, pen.colour)
}

func (p *Printer) rule(x1, y1, x2, y2 float64) {
	p.Printf(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#ddd"/>`+"\n", x1, y1, x2, y2)
}
