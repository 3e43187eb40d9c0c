//go:build linux

package main

import (
	"fmt"
	"io"
)

// printTable writes Markdown. The last column compares with the first row.
func printTable(to io.Writer, results []result) {
	fmt.Fprintln(to, "| engine | records | fixed B | slot h | buffer MiB "+
		"| µs per record | CPU µs | MB/s | of the disk | read B | written B | load µs "+
		"| disk B per record | recovery s | times the first |")
	fmt.Fprintln(to, "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, r := range results {
		c, recovery := r.Config, "–"
		if c.Recover {
			recovery = fmt.Sprintf("%.2f", r.Recovery)
		}
		fmt.Fprintf(to, "| %s | %d | %d | %d | %g "+
			"| %.3f | %.3f | %.0f | %.2f | %.0f | %.0f | %.2f | %.0f | %s | %.2f |\n",
			c.Engine, c.Records, c.Fixed, c.Hours, float64(c.Buffer)/(1<<20),
			r.Micros, r.CPU, r.Rate(), r.Rate()/r.Disk, r.Read, r.Written, r.Load,
			float64(r.Size)/float64(c.Records), recovery, r.Micros/results[0].Micros)
	}
}
