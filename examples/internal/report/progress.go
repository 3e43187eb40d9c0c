package report

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
)

// Progress returns a function that shows the progress of a job, from 0 to 1, on one line of a
// terminal; 1 ends the line. If w is not a terminal, the function does nothing: a log would keep
// every step.
func Progress(w io.Writer, what string) func(share float64) {
	f, ok := w.(*os.File)
	if !ok {
		return func(float64) {}
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return func(float64) {}
	}
	return bar(f, what)
}

// bar overwrites the line that it drew before.
func bar(w io.Writer, what string) func(share float64) {
	const width = 40
	return func(share float64) {
		share = min(max(share, 0), 1)
		done := int(math.Round(share * width))
		drawn := strings.Repeat("=", done) + strings.Repeat(" ", width-done)
		fmt.Fprintf(w, "\r%s [%s] %3.0f %%", what, drawn, share*100)
		if share >= 1 {
			fmt.Fprintln(w)
		}
	}
}
