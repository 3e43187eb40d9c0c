package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"

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
	before := c.Cfg.Filters()
	if err := c.Cfg.ReadDeny(); err != nil {
		c.Log.Error("deny list not read again", "error", err)
	}
	if err := c.Cfg.ReadOverrides(); err != nil {
		c.Log.Error("overrides not read again", "error", err)
	}
	c.lately.forget()
	defer c.refilter(before, c.Cfg.Filters())
	if c.Cfg.SeedFile == "-" {
		return // it can be read once
	}
	err := cockpit.ReadFile(c.Cfg.SeedFile, func(f io.Reader) error {
		seeds, err := urlfilter.Seeds(f, c.Cfg.SeedFile)
		for _, seed := range seeds {
			c.widen(seed)
			c.sight(seed, stage.Item{})
		}
		return cockpit.SkipLines(err, func(err *urlfilter.SyntaxError) { c.Log.Error("seed skipped", "error", err) })
	})
	if err != nil {
		c.Log.Error("seeds not read again", "error", err)
	}
	c.Log.Info("read again", "deny", c.Cfg.DenyFile, "seeds", c.Cfg.SeedFile)
}

// refilter notes other filters. If they let more pass, what was left out has to come back.
func (c *crawler) refilter(before, now cockpit.Filters) {
	if now.Wider(before) {
		c.stop(fmt.Errorf("the deny list has become shorter: %w", cockpit.ErrReopen))
		return
	}
	if err := now.Write(c.file(cockpit.FiltersName)); err != nil {
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
