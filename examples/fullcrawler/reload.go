package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// reloadOnHangup reads the deny list and the seeds again at each SIGHUP, until ctx ends.
func (c *crawler) reloadOnHangup(ctx context.Context, hangups <-chan os.Signal) {
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
	before := c.cfg.filters()
	if err := c.cfg.readDeny(); err != nil {
		c.log.Error("deny list not read again", "error", err)
	}
	defer c.refilter(before, c.cfg.filters())
	if c.cfg.seedFile == "-" {
		return // it can be read once
	}
	err := readFile(c.cfg.seedFile, func(f io.Reader) error {
		seeds, err := urlfilter.Seeds(f, c.cfg.seedFile)
		for _, seed := range seeds {
			c.filter.Scope.Add(seed)
			c.sight(seed, stage.Item{})
		}
		return skipLines(err, func(err *urlfilter.SyntaxError) { c.log.Error("seed skipped", "error", err) })
	})
	if err != nil {
		c.log.Error("seeds not read again", "error", err)
	}
	c.log.Info("read again", "deny", c.cfg.denyFile, "seeds", c.cfg.seedFile)
}

// refilter notes other filters. If they let more pass, what was left out has to come back.
func (c *crawler) refilter(before, now filters) {
	if now.wider(before) {
		c.stop(fmt.Errorf("the deny list has become shorter: %w", errReopen))
		return
	}
	if err := now.write(c.file(filtersName)); err != nil {
		c.stop(err)
	}
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
