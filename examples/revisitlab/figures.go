package main

import (
	"io"

	"github.com/spinneret-go/spinneret/examples/internal/report"
)

// figures returns the paper's Figures 4 to 9 and the curves at equal cost, by file name.
func (r *result) figures() map[string]report.Plot {
	all := map[string]report.Plot{
		"fig4-intervals": r.intervals(),
		"fig6-coverage": r.byInterval("Version coverage by true mean interval (Fig. 6)", "coverage",
			(*sums).macro),
		"fig7-efficiency": r.byInterval("Access efficiency by true mean interval (Fig. 7)", "efficiency",
			(*sums).useful),
		"fig8-missed": r.missed(),
		"curve-micro": r.curvePlot("Versions caught at equal cost", (*sums).micro),
		"curve-macro": r.curvePlot("Mean coverage of a page at equal cost", (*sums).macro),
	}
	five := report.Plot{Title: "Coverage and efficiency (Fig. 5)", XName: "coverage", YName: "efficiency"}
	nine := report.Plot{Title: "Coverage month by month (Fig. 9)", XName: "month", YName: "coverage"}
	for i, name := range r.names {
		s := &r.scores[i]
		five.Lines = append(five.Lines, report.Line{
			Name: name, X: []float64{s.macro()}, Y: []float64{s.useful()}, Points: true, Bold: own(name),
		})
		l := report.Line{Name: name, Bold: own(name)}
		for m := range months {
			l.X = append(l.X, float64(m+1))
			l.Y = append(l.Y, float64(s.months[m])/float64(s.versionM[m]))
		}
		nine.Lines = append(nine.Lines, l)
	}
	all["fig5-policies"], all["fig9-months"] = five, nine
	return all
}

// own reports whether a policy is the library's recommendation.
func own(name string) bool { return name == "Bayes" }

// intervals is the histogram of the gaps between versions and of the mean gaps of pages.
func (r *result) intervals() report.Plot {
	gaps, means := make([]float64, year+1), make([]float64, year+1)
	for i := range r.pages {
		p := &r.pages[i]
		for n := 1; n < len(p.changes); n++ {
			gaps[int(p.changes[n]-p.changes[n-1]+0.5)]++
		}
		if len(p.changes) > 0 {
			means[int(p.gap()+0.5)]++
		}
	}
	days := make([]float64, year+1)
	for d := range days {
		days[d] = float64(d)
	}
	return report.Plot{
		Title: "Change intervals (Fig. 4)", XName: "days", YName: "count", LogX: true, LogY: true,
		Lines: []report.Line{{Name: "each version", X: days, Y: gaps}, {Name: "per page", X: days, Y: means}},
	}
}

func (r *result) byInterval(title, name string, of func(*sums) float64) report.Plot {
	p := report.Plot{Title: title, XName: "true mean interval, days", YName: name, LogX: true}
	for i, policy := range r.names {
		l := report.Line{Name: policy, Bold: own(policy)}
		for b := range bins {
			if s := &r.scores[i].bins[b]; s.pages > 0 {
				l.X, l.Y = append(l.X, binDays(b)), append(l.Y, of(s))
			}
		}
		p.Lines = append(p.Lines, l)
	}
	return p
}

func (r *result) missed() report.Plot {
	p := r.byInterval("Versions missed by true mean interval (Fig. 8)", "versions",
		func(s *sums) float64 { return float64(s.versions - s.captured) })
	p.LogY = true
	all := report.Line{Name: "all versions"}
	for b := range bins {
		if s := &r.scores[0].bins[b]; s.pages > 0 {
			all.X, all.Y = append(all.X, binDays(b)), append(all.Y, float64(s.versions))
		}
	}
	p.Lines = append(p.Lines, all)
	return p
}

func (r *result) curvePlot(title string, of func(*sums) float64) report.Plot {
	p := report.Plot{Title: title, XName: "visits per page and year", YName: "coverage", LogX: true}
	for _, c := range r.curves {
		l := report.Line{Name: c.name, Bold: own(c.name)}
		for i := range c.points {
			l.X = append(l.X, c.points[i].perPage())
			l.Y = append(l.Y, of(&c.points[i].sums))
		}
		p.Lines = append(p.Lines, l)
	}
	return p
}

// save writes all figures and the numbers behind them into a directory.
func (r *result) save(dir string) error {
	files := map[string]func(io.Writer) error{"policies.csv": r.policiesCSV, "curves.csv": r.curvesCSV}
	for name, p := range r.figures() {
		files[name+".svg"] = p.Draw
	}
	return report.Save(dir, files)
}
