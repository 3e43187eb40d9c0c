// Package measure has what the programs of this module share: CPU time, medians and tables.
package measure

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// CPU returns the CPU time of this process so far, on all cores. The call does not fail.
func CPU() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// Median returns the median of the values, or the higher one of two in the middle.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// MedianOf returns the median of a figure of all runs.
func MedianOf[T any](runs []T, figure func(T) float64) float64 {
	values := make([]float64, len(runs))
	for i, run := range runs {
		values[i] = figure(run)
	}
	return Median(values)
}

// Columns returns a writer that aligns columns to the right. A tab ends each of them, and Flush
// writes the table to standard output.
func Columns() *tabwriter.Writer {
	return tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
}

// Results are the figures of subjects that took turns, by round.
type Results struct {
	names   []string
	figures map[string][][]float64
}

// Add adds the figures of a subject in one round, in the order of the columns.
func (r *Results) Add(name string, figures ...float64) {
	if r.figures == nil {
		r.figures = map[string][][]float64{}
	}
	if r.figures[name] == nil {
		r.names = append(r.names, name)
	}
	r.figures[name] = append(r.figures[name], figures)
}

// Medians returns the median of each column of a subject.
func (r *Results) Medians(name string) (columns []float64) {
	runs := r.figures[name]
	for c := range runs[0] {
		columns = append(columns, MedianOf(runs, func(figures []float64) float64 { return figures[c] }))
	}
	return columns
}

// Ratio returns the median of the ratios to another subject in each round. The load of the machine
// changes between rounds and affects both, so many short rounds show differences of a few percent
// that few long rounds do not.
func (r *Results) Ratio(name, reference string, column int) float64 {
	ratios := make([]float64, len(r.figures[name]))
	for round, figures := range r.figures[name] {
		ratios[round] = figures[column] / r.figures[reference][round][column]
	}
	return Median(ratios)
}

// Print prints the medians of all subjects, in the order of their first results, and their ratios
// to one of them in the first column.
func (r *Results) Print(kind, reference string, columns ...string) error {
	out := Columns()
	fmt.Fprintf(out, "%s\t%s\t%s / %s\t\n", kind, strings.Join(columns, "\t"), columns[0], reference)
	for _, name := range r.names {
		row(out, name, r.Medians(name))
		fmt.Fprintf(out, "%.3f\t\n", r.Ratio(name, reference, 0))
	}
	return out.Flush()
}

func row(out io.Writer, name string, figures []float64) {
	fmt.Fprintf(out, "%s\t", name)
	for _, figure := range figures {
		fmt.Fprintf(out, "%.4g\t", figure)
	}
}

// Silent is a logger of peers that discards everything but the reason for which they end the program.
// It is safe for concurrent use.
type Silent struct{}

// Infof does nothing.
func (Silent) Infof(string, ...any) {}

// Errorf does nothing.
func (Silent) Errorf(string, ...any) {}

// Fatalf panics.
func (Silent) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
