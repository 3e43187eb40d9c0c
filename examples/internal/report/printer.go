// Package report writes the results of the laboratories: tables, and drawings as SVG.
package report

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// A Printer writes text and keeps the first error, after which it writes nothing. It is for use by
// one goroutine at a time.
type Printer struct {
	w   io.Writer
	err error
}

// NewPrinter returns a Printer that writes to w.
func NewPrinter(w io.Writer) *Printer { return &Printer{w: w} }

// Printf writes as [fmt.Printf] does.
func (p *Printer) Printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// Table writes rows of tab-separated cells in columns.
func (p *Printer) Table(rows func(row func(format string, args ...any))) {
	if p.err != nil {
		return
	}
	t := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	rows(func(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) })
	p.err = t.Flush()
}

// Err returns the first error.
func (p *Printer) Err() error { return p.err }
