package main

import (
	"context"
	"fmt"
	"time"
)

// limitsEvery is how often the limits are looked at that no single page exceeds.
const limitsEvery = time.Second

// watchLimits ends the crawl when it has taken what it may: bytes, time, or the disk.
func (c *crawler) watchLimits(ctx context.Context) {
	var end <-chan time.Time
	if c.cfg.duration > 0 {
		end = time.After(c.cfg.duration)
	}
	var ticks <-chan time.Time
	if c.cfg.bytes > 0 || c.cfg.minFree > 0 {
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
	return nil
}
