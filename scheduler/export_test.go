package scheduler

import "time"

// In most tests, pauses are as long as they would be without a spread.
func init() { Spread(false) }

// Spread switches the spread of pauses in new Schedulers on or off.
func Spread(on bool) {
	seedOf = func(epoch time.Time) uint64 {
		if on {
			return uint64(epoch.UnixNano())
		}
		return 0
	}
}
