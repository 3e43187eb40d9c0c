package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// figures returns the paper's Figures 4 to 9 and the curves at equal cost, by file name.
func (r *result) figures() map[string]plot {
	all := map[string]plot{
		"fig4-intervals": r.intervals(),
		"fig6-coverage": r.byInterval("Version coverage by true mean interval (Fig. 6)", "coverage",
			(*sums).macro),
		"fig7-efficiency": r.byInterval("Access efficiency by true mean interval (Fig. 7)", "efficiency",
			(*sums).useful),
		"fig8-missed": r.missed(),
		"curve-micro": r.curvePlot("Versions caught at equal cost", (*sums).micro),
		"curve-macro": r.curvePlot("Mean coverage of a page at equal cost", (*sums).macro),
	}
	five := plot{title: "Coverage and efficiency (Fig. 5)", xName: "coverage", yName: "efficiency"}
	nine := plot{title: "Coverage month by month (Fig. 9)", xName: "month", yName: "coverage"}
	for i, name := range r.names {
		s := &r.scores[i]
		five.lines = append(five.lines, line{
			name: name, x: []float64{s.macro()}, y: []float64{s.useful()}, points: true, bold: own(name),
		})
		l := line{name: name, bold: own(name)}
		for m := range months {
			l.x = append(l.x, float64(m+1))
			l.y = append(l.y, float64(s.months[m])/float64(s.versionM[m]))
		}
		nine.lines = append(nine.lines, l)
	}
	all["fig5-policies"], all["fig9-months"] = five, nine
	return all
}

// own tells whether a policy is the library's recommendation.
func own(name string) bool { return name == "Bayes" }

// intervals is the histogram of the gaps between versions and of the pages' mean ones.
func (r *result) intervals() plot {
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
	return plot{
		title: "Change intervals (Fig. 4)", xName: "days", yName: "count", logX: true, logY: true,
		lines: []line{{name: "each version", x: days, y: gaps}, {name: "per page", x: days, y: means}},
	}
}

func (r *result) byInterval(title, name string, of func(*sums) float64) plot {
	p := plot{title: title, xName: "true mean interval, days", yName: name, logX: true}
	for i, policy := range r.names {
		l := line{name: policy, bold: own(policy)}
		for b := range bins {
			if s := &r.scores[i].bins[b]; s.pages > 0 {
				l.x, l.y = append(l.x, binDays(b)), append(l.y, of(s))
			}
		}
		p.lines = append(p.lines, l)
	}
	return p
}

func (r *result) missed() plot {
	p := r.byInterval("Versions missed by true mean interval (Fig. 8)", "versions",
		func(s *sums) float64 { return float64(s.versions - s.captured) })
	p.logY = true
	all := line{name: "all versions"}
	for b := range bins {
		if s := &r.scores[0].bins[b]; s.pages > 0 {
			all.x, all.y = append(all.x, binDays(b)), append(all.y, float64(s.versions))
		}
	}
	p.lines = append(p.lines, all)
	return p
}

func (r *result) curvePlot(title string, of func(*sums) float64) plot {
	p := plot{title: title, xName: "visits per page and year", yName: "coverage", logX: true}
	for _, c := range r.curves {
		l := line{name: c.name, bold: own(c.name)}
		for i := range c.points {
			l.x = append(l.x, c.points[i].perPage())
			l.y = append(l.y, of(&c.points[i].sums))
		}
		p.lines = append(p.lines, l)
	}
	return p
}

// save writes all figures and the numbers behind them into a folder.
func (r *result) save(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, p := range r.figures() {
		if err := writeFile(filepath.Join(dir, name+".svg"), p.writeTo); err != nil {
			return err
		}
	}
	if err := writeFile(filepath.Join(dir, "policies.csv"), r.policiesCSV); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, "curves.csv"), r.curvesCSV)
}

// writeFile creates a file and reports the first of all errors.
func writeFile(name string, write func(w io.Writer) error) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if closing := f.Close(); err == nil {
			err = closing
		}
	}()
	if err := write(f); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
