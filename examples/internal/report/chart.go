package report

import (
	"fmt"
	"html"
	"io"
	"math"
)

// A Bar is a value of a Chart, with a second one that is a part of it or is drawn next to it.
type Bar struct {
	Name          string
	Value, Second float64
}

// A Chart is a list of bars.
type Chart struct {
	Title, First, Second string // what the values are; Second is "" if there is none
	Bars                 []Bar
}

// Draw writes the chart as SVG.
func (c Chart) Draw(w io.Writer) error {
	const row, left, right = 34.0, 170.0, 740.0
	out := NewPrinter(w)
	most := math.SmallestNonzeroFloat64
	for _, b := range c.Bars {
		most = max(most, b.Value, b.Second)
	}
	out.open(80+row*float64(len(c.Bars)), c.Title)
	draw := func(y, height, v float64, colour string) {
		out.Printf(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", left, y,
			v/most*(right-left), height, colour)
		out.text(left+v/most*(right-left)+4, y+height-1, "start", fmt.Sprintf("%.3g", v))
	}
	for i, b := range c.Bars {
		y := 50 + row*float64(i)
		out.text(left-8, y+16, "end", b.Name)
		draw(y, 12, b.Value, colours[0])
		if c.Second != "" {
			draw(y+13, 12, b.Second, colours[4])
		}
	}
	end := 70 + row*float64(len(c.Bars))
	out.Printf(`<text x="%g" y="%g" fill="%s">%s</text>`+"\n", left, end, colours[0],
		html.EscapeString(c.First))
	out.Printf(`<text x="%g" y="%g" fill="%s">%s</text>`+"\n", left+300, end, colours[4],
		html.EscapeString(c.Second))
	out.Printf("</svg>\n")
	return out.Err()
}
