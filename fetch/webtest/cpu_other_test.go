//go:build !unix

package webtest

import "time"

// cpuTime is not known here; the benchmarks leave its figures out.
func cpuTime() time.Duration { return 0 }
