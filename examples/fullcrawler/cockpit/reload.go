package cockpit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
)

// OnHangup calls reload at each SIGHUP, until ctx ends.
func OnHangup(ctx context.Context, hangups <-chan os.Signal, reload func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
			reload()
		}
	}
}

// Reload reads the deny list, the overrides and the seeds again, and passes the seeds on. A file
// that cannot be read changes nothing. An error means that the crawl must end. ErrReopen means that
// the filters are wider, and excluded URLs must be checked again: until that is done, the file with the
// filters stays as it is, or a later call would hide the difference.
func (c *Crawl) Reload(seed func(url string)) error {
	before := c.Cfg.Filters()
	tell := func(what string, err error) {
		if err != nil {
			c.Log.Error("cannot reload the "+what, "error", err)
			c.Say(fmt.Sprintf("cannot reload the %s, so nothing of it changes: %v", what, err))
		}
	}
	tell("log", c.log.reopen())
	tell("deny list", c.Cfg.ReadDeny())
	tell("list of what was erased", c.Cfg.readErased())
	tell("overrides", c.Cfg.ReadOverrides())
	c.Barred.Store(true)
	if c.Cfg.SeedFile != "-" { // standard input can be read only once
		tell("seeds", c.rereadSeeds(seed))
	}
	c.Log.Info("reloaded", "deny", c.Cfg.DenyFile, "seeds", c.Cfg.SeedFile)
	now := c.Cfg.Filters()
	c.wider = c.wider || now.Wider(before)
	if c.wider {
		return fmt.Errorf("the lists let more URLs pass: %w", ErrReopen)
	}
	return now.Write(filepath.Join(c.Cfg.Out, FiltersName))
}

func (c *Crawl) rereadSeeds(seed func(url string)) error {
	return ReadFile(c.Cfg.SeedFile, func(f io.Reader) error {
		seeds, err := urlfilter.Seeds(f, c.Cfg.SeedFile)
		for _, url := range seeds {
			seed(url)
		}
		return SkipLines(err, func(err *urlfilter.SyntaxError) { c.Log.Error("seed skipped", "error", err) })
	})
}

// tryLog returns the error that OpenLog would return, without creating the file.
func tryLog(name string) error {
	_, missing := os.Lstat(name)
	_, file, err := OpenLog(name)
	if err == nil && name != "" {
		err = file.Close()
		if missing != nil {
			err = errors.Join(err, os.Remove(name))
		}
	}
	return err
}

// A logFile is a log that can be moved away while it is written. Its methods are safe for concurrent
// use. A nil one stands for no log.
type logFile struct {
	name string
	mu   sync.Mutex
	f    *os.File // nil if it could not be opened
}

// OpenLog returns a log that writes to a file, or nowhere. After an error it writes once it was reopened.
func OpenLog(name string) (*slog.Logger, *logFile, error) {
	if name == "" {
		return slog.New(slog.DiscardHandler), nil, nil
	}
	l := &logFile{name: name}
	return slog.New(slog.NewJSONHandler(l, nil)), l, inFlag("-log", l.reopen())
}

func openLogFile(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
}

func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Write(p)
}

// reopen continues in a new file if the old one was renamed.
func (l *logFile) reopen() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	f, err := openLogFile(l.name)
	if err != nil {
		return err
	}
	if l.f != nil {
		err = l.f.Close()
	}
	l.f = f
	return err
}

// Close closes the file.
func (l *logFile) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return nil
	}
	return l.f.Close()
}
