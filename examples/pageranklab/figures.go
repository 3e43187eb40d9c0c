package main

import (
	"fmt"
	"io"

	"github.com/spinneret-go/spinneret/examples/internal/report"
)

// crawled returns the share of pages fetched at a point of a curve.
func crawled(point int) float64 { return float64(point+1) / curvePoints }

// figures returns the paper's Figures 4 to 10 by file name.
func (r *result) figures() map[string]func(io.Writer) error {
	files := map[string]func(io.Writer) error{}
	shown := []string{nameOracle, namePush, nameDL1, namePR, nameBLC, nameBF, nameOPIC}
	for k, what := range []string{"top 0.1 %", "top 1 %", "top 10 %"} {
		p := r.curves(fmt.Sprintf("Figure %d: %s collected", 4+k, what), shown, k)
		files[fmt.Sprintf("figure%d.svg", 4+k)] = p.Draw
	}
	files["figure7.svg"] = r.curves("Figure 7: PageRank collected", shown, nTops).Draw
	errors := report.Chart{Title: r.web.name + ": Figure 8, error of the order", First: "less is better"}
	for _, name := range r.names {
		errors.Bars = append(errors.Bars, report.Bar{Name: name, Value: r.scores[name].error})
	}
	files["figure8.svg"] = errors.Draw
	files["figure9.svg"] = r.cutoffs().Draw
	speed := report.Chart{
		Title: r.web.name + ": Figure 10, pages per second on one core",
		First: "in total", Second: "scoring alone",
	}
	for _, p := range r.paces {
		speed.Bars = append(speed.Bars, report.Bar{Name: p.name, Value: p.pages, Second: p.scoring})
	}
	if len(r.paces) > 0 {
		files["figure10.svg"] = speed.Draw
	}
	return files
}

// curves plots one criterion.
func (r *result) curves(title string, names []string, k int) report.Plot {
	p := report.Plot{Title: r.web.name + ": " + title, XName: "share of pages fetched"}
	for _, name := range names {
		l := report.Line{Name: name}
		for i, v := range r.scores[name].curves[k] {
			l.X, l.Y = append(l.X, crawled(i)), append(l.Y, v)
		}
		p.Lines = append(p.Lines, l)
	}
	return p
}

// cutoffs plots how much more than DL1 the cutoffs collect.
func (r *result) cutoffs() report.Plot {
	p := report.Plot{
		Title: r.web.name + ": Figure 9: PageRank collected, less that of DL1",
		XName: "share of pages fetched",
	}
	base := &r.scores[nameDL1].curves[nTops]
	for _, name := range []string{namePL, nameVR, nameAR, "AR 1/2, d=.85", namePush} {
		l := report.Line{Name: name}
		for i, v := range r.scores[name].curves[nTops] {
			l.X, l.Y = append(l.X, crawled(i)), append(l.Y, v-base[i])
		}
		p.Lines = append(p.Lines, l)
	}
	return p
}
