package cockpit

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/satstore"
)

// file returns the path of a file of the crawl.
func (c *Crawl) file(name string) string { return filepath.Join(c.Cfg.Out, name) }

// Warn reports a problem that costs only time. It is printed once the log is open.
func (c *Crawl) Warn(format string, args ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
}

// Remedy adds advice to an error about damage.
func (c *Crawl) Remedy(err error) error {
	if isAny(err, satstore.ErrCorrupt, archive.ErrIndex, stage.ErrRecord, fs.ErrNotExist) {
		return fmt.Errorf("%w: fullcrawler repair -out %s", err, c.Cfg.Out)
	}
	if errors.Is(err, satstore.ErrReadOnly) {
		return fmt.Errorf("%w (make room where %s is, and start again)", err, c.Cfg.Out)
	}
	return err
}

// OpenPauses restores which hosts the operator has paused. A restart is no reason to visit them.
func (c *Crawl) OpenPauses() error {
	saved, err := os.ReadFile(c.file(PausedName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for host, err := range stage.Entries[string](saved) {
		if err != nil {
			return fmt.Errorf("%s: %w", c.file(PausedName), err)
		}
		c.Paused.Add(host)
		c.Warn("%s is still paused: resume it on the live page", host)
	}
	return nil
}

// savePauses requires that c.pausing is held.
func (c *Crawl) savePauses() error {
	return writeEntries(c.file(PausedName), c.Paused.All())
}

// writeEntries replaces a file of entries.
func writeEntries[E any](name string, entries iter.Seq[E]) error {
	data, err := stage.AppendEntries(nil, entries)
	if err != nil {
		return err
	}
	return stage.ReplaceFile(name, data)
}
