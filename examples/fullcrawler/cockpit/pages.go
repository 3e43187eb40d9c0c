package cockpit

import (
	"path/filepath"
	"time"

	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// slotUnit is the time within which the order of pages does not matter.
const slotUnit = time.Minute

// UnitFor returns the unit of the slots: a tenth of a second goes by before one ends.
func UnitFor(pace float64) time.Duration {
	unit := time.Duration(pace * float64(time.Second/10))
	return max(slotUnit, unit.Truncate(time.Second))
}

// OpenPages opens the pages of a crawl, and the clock that they go by.
func OpenPages(cfg Config) (*stage.Pages, stage.Clock, error) {
	clock, err := stage.OpenClock(filepath.Join(cfg.Out, BeganName), cfg.Pace)
	if err != nil {
		return nil, clock, err
	}
	pages, err := stage.OpenPages(cfg.Out, PagesOptions(cfg, clock))
	return pages, clock, err
}

// PagesOptions returns how the pages of a configuration are opened.
func PagesOptions(cfg Config, clock stage.Clock) stage.PagesOptions {
	return stage.PagesOptions{
		Memory: cfg.Memory / 4,
		Unit:   UnitFor(clock.Pace),
		Start:  clock.Now(),
	}
}

// Seconds makes a duration of what is on record of a page.
func Seconds(n int64) time.Duration { return time.Duration(n) * time.Second }
