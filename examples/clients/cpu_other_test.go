//go:build !unix

package clients

import "time"

// cpuTime is not known here.
func cpuTime() time.Duration { return 0 }
