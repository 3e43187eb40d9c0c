//go:build !unix

package fetch_test

import "time"

// cpuTime is not known here; the benchmarks leave its figures out.
func cpuTime() time.Duration { return 0 }
