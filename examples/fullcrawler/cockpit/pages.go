package cockpit

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/satstore"
)

// slotUnit is the resolution of due times: within it, the order of pages does not matter. Pages that
// wait for their host come back at the next slot, so it is shorter than the horizon of a host.
const slotUnit = 10 * time.Second

// UnitFor returns the unit of the slots: a tenth of a second goes by before one ends.
func UnitFor(pace float64) time.Duration {
	unit := time.Duration(pace * float64(time.Second/10))
	return max(slotUnit, unit.Truncate(time.Second))
}

// errNoPace is returned if the pages may be sound, but the pace of their clock is not known.
var errNoPace = fmt.Errorf("the file %s is lost: the command with the -pace of this crawl makes it again", BeganName)

// openPages opens the pages of a crawl, and their clock. If its file is lost, it had the usual pace.
func openPages(cfg Config) (*stage.Pages, stage.Clock, error) {
	clock, lost := stage.PeekClock(filepath.Join(cfg.Out, BeganName), cfg.Pace)
	if lost != nil && !errors.Is(lost, fs.ErrNotExist) {
		return nil, clock, lost
	}
	pages, err := stage.OpenPages(cfg.Out, PagesOptions(cfg, clock))
	if lost != nil && errors.Is(err, satstore.ErrOptions) {
		err = errNoPace
	}
	return pages, clock, err
}

// PagesOptions returns the options of the pages' store.
func PagesOptions(cfg Config, clock stage.Clock) satstore.Options {
	return stage.PagesOptions(cfg.Memory/4, UnitFor(clock.Pace), clock.Now())
}

// Politeness returns the options of politeness.
func (c *Config) Politeness() stage.PolitenessOptions {
	o := stage.PolitenessOptions{
		Delay: c.Delay, Backoff: c.Backoff, Patience: c.Wait, Group: c.Group,
		Shared: stage.NewSharedAddrs(c.Shared),
	}
	if c.OverrideFile != "" {
		o.Overrides = c.Overrides
	}
	return o
}
