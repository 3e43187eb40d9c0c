package cockpit

import (
	"path/filepath"
	"time"

	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// slotUnit is the resolution of due times: within it, the order of pages does not matter. Pages that
// wait for their host come back at the next slot, so it is shorter than the horizon of a host.
const slotUnit = 10 * time.Second

// UnitFor returns the unit of the slots: a tenth of a second goes by before one ends.
func UnitFor(pace float64) time.Duration {
	unit := time.Duration(pace * float64(time.Second/10))
	return max(slotUnit, unit.Truncate(time.Second))
}

// openPages opens the pages of a crawl, and their clock.
func openPages(cfg Config) (*stage.Pages, stage.Clock, error) {
	clock, err := stage.OpenClock(filepath.Join(cfg.Out, BeganName), cfg.Pace)
	if err != nil {
		return nil, clock, err
	}
	pages, err := stage.OpenPages(cfg.Out, PagesOptions(cfg, clock))
	return pages, clock, err
}

// PagesOptions returns the options of the pages' store.
func PagesOptions(cfg Config, clock stage.Clock) stage.PagesOptions {
	return stage.PagesOptions{
		Memory: cfg.Memory / 4,
		Unit:   UnitFor(clock.Pace),
		Start:  clock.Now(),
	}
}

// Politeness returns the options of politeness.
func (c *Config) Politeness() stage.PolitenessOptions {
	o := stage.PolitenessOptions{
		Delay: c.Delay, Backoff: c.Backoff, Arrival: c.Arrival, Group: c.Group,
		Shared: stage.NewSharedAddrs(c.Shared, c.SharedAfter),
	}
	if c.OverrideFile != "" {
		o.Overrides = c.Overrides
	}
	return o
}
