//go:build !unix

package fetch_test

import "time"

// cpuTime is not supported here; the benchmarks omit its figures.
func cpuTime() time.Duration { return 0 }
