package cockpit

import (
	"fmt"
	"time"

	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// A limitUse is how much of one of its limits a crawl has used.
type limitUse struct {
	Name string `json:"name"`
	Used string `json:"used"`
	Left string `json:"left"` // time until it is reached at the present rate, or ""
}

// limits returns the use of the limits that were set, and when all due pages will be done, both at
// the rate of the last minute.
func (c *Crawl) limits(s summary, rate float64) []limitUse {
	uses := []limitUse{}
	add := func(name, used string, left float64) { // seconds; less than 0 is unknown
		use := limitUse{Name: name, Used: used}
		if left >= 0 && left < float64(stage.Longest/time.Second) {
			use.Left = "in about " + spell(time.Duration(left*float64(time.Second)).Round(time.Second))
		}
		uses = append(uses, use)
	}
	in := func(rest, perSecond float64) float64 {
		if perSecond <= 0 {
			return -1
		}
		return max(rest, 0) / perSecond
	}
	if store := c.Pages.Stats(); store.Due > 0 {
		add("due now", fmt.Sprint(store.Due), in(float64(store.Due), rate))
	}
	if most := c.Cfg.Pages; most > 0 {
		add("page limit", fmt.Sprintf("%d of %d", s.Pages, most), in(float64(most-s.Pages), rate))
	}
	if most := c.Cfg.Bytes; most > 0 {
		perSecond := float64(s.Bytes) / max(s.took.Seconds(), 1)
		add("byte limit", Size(s.Bytes)+" of "+Size(most), in(float64(most-s.Bytes), perSecond))
	}
	if most := c.Cfg.Duration; most > 0 {
		add("time limit", spell(s.took.Round(time.Second))+" of "+spell(most), (most - s.took).Seconds())
	}
	if free, known := FreeSpace(c.Cfg.Out); known && c.Cfg.MinFree > 0 {
		add("disk", Size(free)+" free", -1)
	}
	return uses
}
