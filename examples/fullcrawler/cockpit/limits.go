package cockpit

import (
	"fmt"
	"time"
)

// A limitUse is how much of one of its limits a crawl has used.
type limitUse struct {
	Name string `json:"name"`
	Used string `json:"used"`
}

// limits returns the use of the limits that were set.
func (c *Crawl) limits(s summary) []limitUse {
	uses := []limitUse{}
	if most := c.Cfg.Pages; most > 0 {
		uses = append(uses, limitUse{"page limit", fmt.Sprintf("%d of %d", s.Pages, most)})
	}
	if most := c.Cfg.Bytes; most > 0 {
		uses = append(uses, limitUse{"byte limit", Size(s.Bytes) + " of " + Size(most)})
	}
	if most := c.Cfg.Duration; most > 0 {
		uses = append(uses, limitUse{"time limit", spell(s.took.Round(time.Second)) + " of " + spell(most)})
	}
	if free, known := FreeSpace(c.Cfg.Out); known && c.Cfg.MinFree > 0 {
		uses = append(uses, limitUse{"disk", Size(free) + " free"})
	}
	return uses
}
