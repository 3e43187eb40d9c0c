package main

import (
	"context"
	"fmt"
	"runtime/metrics"
	"time"
)

// limitsEvery is how often the limits are looked at that no single page exceeds.
const limitsEvery = time.Second

// memoryShare is the part of the memory that may be in use. Beyond it, Go's collector would work ever
// more often and get ever less back.
const memoryShare = 0.9

// watchLimits ends the crawl when it has taken what it may: bytes, time, the disk or memory.
func (c *crawler) watchLimits(ctx context.Context) {
	var end <-chan time.Time
	if c.cfg.duration > 0 {
		end = time.After(c.cfg.duration)
	}
	var ticks <-chan time.Time
	if c.cfg.bytes > 0 || c.cfg.minFree > 0 || c.cfg.memory > 0 {
		ticks = time.Tick(limitsEvery)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-end:
			c.stop(errTimeLimit)
			return
		case <-ticks:
		}
		if err := c.overLimit(); err != nil {
			c.stop(err)
			return
		}
	}
}

func (c *crawler) overLimit() error {
	if c.cfg.bytes > 0 && c.tally.sum().bytes >= c.cfg.bytes {
		return errByteLimit
	}
	if c.cfg.minFree > 0 {
		free, known := freeSpace(c.cfg.out)
		if known && free < c.cfg.minFree {
			return fmt.Errorf("%w: %s free where %s is, less than -min-free", errDiskLimit,
				size(free), c.cfg.out)
		}
	}
	if used := inUse(); c.cfg.memory > 0 && float64(used) > memoryShare*float64(c.cfg.memory) {
		return fmt.Errorf("%w: %s in use of the %s that -memory allows; give it more", errMemoryLimit,
			size(used), size(c.cfg.memory))
	}
	return nil
}

// inUse returns how many bytes the collector found to be in use when it ran last.
func inUse() int64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return int64(live[0].Value.Uint64())
}
