package main

import (
	"fmt"
	"io"
)

// crawled is the share of pages fetched at a point of a curve.
func crawled(point int) float64 { return float64(point+1) / curvePoints }

// figures returns the paper's Figures 4 to 10 by file name.
func (r *result) figures() map[string]func(io.Writer) error {
	files := map[string]func(io.Writer) error{}
	shown := []string{nameOracle, namePush, nameDL1, namePR, nameBLC, nameBF, nameOPIC}
	for k, what := range []string{"top 0.1 %", "top 1 %", "top 10 %"} {
		p := r.curves(fmt.Sprintf("Figure %d: %s collected", 4+k, what), shown, k)
		files[fmt.Sprintf("figure%d.svg", 4+k)] = p.writeTo
	}
	files["figure7.svg"] = r.curves("Figure 7: PageRank collected", shown, nTops).writeTo
	errors := chart{title: r.web.name + ": Figure 8, error of the order", first: "less is better"}
	for _, name := range r.names {
		errors.bars = append(errors.bars, bar{name: name, value: r.scores[name].error})
	}
	files["figure8.svg"] = errors.writeTo
	files["figure9.svg"] = r.cutoffs().writeTo
	speed := chart{
		title: r.web.name + ": Figure 10, pages a second on one core",
		first: "all in all", second: "scoring alone",
	}
	for _, p := range r.paces {
		speed.bars = append(speed.bars, bar{p.name, p.pages, p.scoring})
	}
	if len(r.paces) > 0 {
		files["figure10.svg"] = speed.writeTo
	}
	return files
}

// curves plots one criterion.
func (r *result) curves(title string, names []string, k int) plot {
	p := plot{title: r.web.name + ": " + title, xName: "share of pages fetched"}
	for _, name := range names {
		l := line{name: name}
		for i, v := range r.scores[name].curves[k] {
			l.x, l.y = append(l.x, crawled(i)), append(l.y, v)
		}
		p.lines = append(p.lines, l)
	}
	return p
}

// cutoffs plots what the cutoffs collect more than DL1.
func (r *result) cutoffs() plot {
	p := plot{
		title: r.web.name + ": Figure 9: PageRank collected, less that of DL1",
		xName: "share of pages fetched",
	}
	base := &r.scores[nameDL1].curves[nTops]
	for _, name := range []string{namePL, nameVR, nameAR, "AR 1/2, d=.85", namePush} {
		l := line{name: name}
		for i, v := range r.scores[name].curves[nTops] {
			l.x, l.y = append(l.x, crawled(i)), append(l.y, v-base[i])
		}
		p.lines = append(p.lines, l)
	}
	return p
}
