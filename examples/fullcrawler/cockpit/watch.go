package cockpit

import (
	"cmp"
	"context"
	"fmt"
	"runtime/metrics"
	"time"
)

// limitsEvery is the interval of checks for limits that a single page does not exceed by much.
const limitsEvery = time.Second

// memoryShare is the share of the memory that may be in use. Beyond it, Go's garbage collector
// would run ever more often and free ever less.
const memoryShare = 0.9

// MemoryChecks is how many checks in a row must find more before the crawl ends. A server can cause
// a short peak by sending several large pages at the same time.
const MemoryChecks = 60

// WatchLimits ends the crawl when it reaches a limit on bytes, time, disk or memory, or when the
// clock was set back.
func (c *Crawl) WatchLimits(ctx context.Context, stop func(why error)) {
	var end <-chan time.Time
	if c.Cfg.Duration > 0 {
		end = time.After(c.Cfg.Duration - c.Tally.Sum().took) // more than nothing if the crawl was reopened
	}
	ticks := time.Tick(limitsEvery)
	for fullFor := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-end:
			stop(ErrTimeLimit)
			return
		case <-ticks:
		}
		err := cmp.Or(c.OverLimit(), c.OverMemory(&fullFor))
		if err != nil {
			stop(err)
			return
		}
	}
}

// OverLimit returns the error for a limit that is reached, or nil.
func (c *Crawl) OverLimit() error {
	if c.Pages.Ahead(c.Clock.Now()) {
		return fmt.Errorf("the clock was set back: %w", ErrReopen)
	}
	if c.Cfg.Bytes > 0 && c.Tally.Sum().Bytes >= c.Cfg.Bytes {
		return ErrByteLimit
	}
	if c.Cfg.MinFree > 0 {
		free, known := FreeSpace(c.Cfg.Out)
		if known && free < c.Cfg.MinFree {
			return fmt.Errorf("%w: %s free where %s is, less than -min-free", ErrDiskLimit,
				Size(free), c.Cfg.Out)
		}
	}
	return nil
}

// OverMemory counts the checks in a row that found too much memory in use.
func (c *Crawl) OverMemory(fullFor *int) error {
	used := inUse()
	if c.Cfg.Memory <= 0 || float64(used) <= memoryShare*float64(c.Cfg.Memory) {
		*fullFor = 0
		return nil
	}
	if *fullFor++; *fullFor < MemoryChecks {
		return nil
	}
	return fmt.Errorf("%w: %s in use of the %s that -memory allows; give it more", ErrMemoryLimit,
		Size(used), Size(c.Cfg.Memory))
}

// inUse returns the size of the heap in use at the last garbage collection.
func inUse() int64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return int64(live[0].Value.Uint64())
}
