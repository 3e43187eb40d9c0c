package report

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// A full writer fails, and counts the calls.
type full struct{ calls int }

var errFull = errors.New("full")

func (f *full) Write([]byte) (int, error) {
	f.calls++
	return 0, errFull
}

func TestThePrinterStopsAtTheFirstError(t *testing.T) {
	row := func(row func(format string, args ...any)) { row("a\tb") }
	for name, print := range map[string]func(p *Printer){
		"text":  func(p *Printer) { p.Printf("text") },
		"table": func(p *Printer) { p.Table(row) },
	} {
		var w full
		p := NewPrinter(&w)
		print(p)
		require.ErrorIs(t, p.Err(), errFull, name)
		asked := w.calls
		p.Printf("more")
		p.Table(row)
		require.ErrorIs(t, p.Err(), errFull, name)
		require.Equal(t, asked, w.calls, name)
	}
}
