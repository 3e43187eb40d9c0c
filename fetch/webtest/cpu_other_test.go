//go:build !unix

package webtest

import "time"

// cpuTime is not supported here; the benchmarks omit its figures.
func cpuTime() time.Duration { return 0 }
