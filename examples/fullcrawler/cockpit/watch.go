package cockpit

import (
	"cmp"
	"context"
	"fmt"
	"runtime/metrics"
	"time"
)

// limitsEvery is how often the limits are looked at that no single page exceeds.
const limitsEvery = time.Second

// memoryShare is the part of the memory that may be in use. Beyond it, Go's collector would work
// ever more often and get ever less back.
const memoryShare = 0.9

// MemoryLooks is how many times in a row it has to be more before the crawl ends: large pages that
// are under way at one time, which servers can arrange for, are soon gone.
const MemoryLooks = 60

// WatchLimits ends the crawl when it has taken what it may: bytes, time, the disk or memory. It
// also notices a clock that is set back.
func (c *Crawl) WatchLimits(ctx context.Context, stop func(why error)) {
	var end <-chan time.Time
	if c.Cfg.Duration > 0 {
		end = time.After(c.Cfg.Duration)
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

// OverLimit returns the limit that is reached, if one is.
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

// OverMemory counts the looks in a row at which little was left.
func (c *Crawl) OverMemory(fullFor *int) error {
	used := inUse()
	if c.Cfg.Memory <= 0 || float64(used) <= memoryShare*float64(c.Cfg.Memory) {
		*fullFor = 0
		return nil
	}
	if *fullFor++; *fullFor < MemoryLooks {
		return nil
	}
	return fmt.Errorf("%w: %s in use of the %s that -memory allows; give it more", ErrMemoryLimit,
		Size(used), Size(c.Cfg.Memory))
}

// inUse returns how many bytes the collector found to be in use when it ran last.
func inUse() int64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return int64(live[0].Value.Uint64())
}
