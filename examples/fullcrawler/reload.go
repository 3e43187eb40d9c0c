package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// reloadOnHangup reads the deny list and the seeds again at each SIGHUP, until ctx ends.
func (c *crawler) reloadOnHangup(ctx context.Context) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
			c.reload()
		}
	}
}

// reload reads the files again. What cannot be read leaves all as it was.
func (c *crawler) reload() {
	if err := c.cfg.readDeny(); err != nil {
		c.log.Error("deny list not read again", "error", err)
	}
	err := readFile(c.cfg.seedFile, func(f io.Reader) error {
		seeds, err := stage.Seeds(f, func(line int, err error) {
			c.log.Error("seed skipped", "file", c.cfg.seedFile, "line", line, "error", err)
		})
		for _, seed := range seeds {
			c.filter.Scope.Add(seed)
			c.sight(seed, stage.Item{})
		}
		return err
	})
	if err != nil {
		c.log.Error("seeds not read again", "error", err)
	}
	c.log.Info("read again", "deny", c.cfg.denyFile, "seeds", c.cfg.seedFile)
}

// openLog makes the log of a file, or of nothing.
func openLog(name string) (*slog.Logger, io.Closer, error) {
	if name == "" {
		return slog.New(slog.DiscardHandler), io.NopCloser(nil), nil
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, nil, err
	}
	return slog.New(slog.NewJSONHandler(f, nil)), f, nil
}
