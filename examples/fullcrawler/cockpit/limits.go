package cockpit

import (
	"fmt"
	"time"
)

// limits returns how much of the limits that were set has been used.
func (c *Crawl) limits(s summary) []Fact {
	uses := []Fact{}
	if most := c.Cfg.Pages; most > 0 {
		uses = append(uses, Fact{"page limit", fmt.Sprintf("%d of %d", c.Quota.Pages(), most)})
	}
	if most := c.Cfg.Bytes; most > 0 {
		uses = append(uses, Fact{"byte limit", Size(s.Bytes) + " of " + Size(most)})
	}
	if most := c.Cfg.Duration; most > 0 {
		uses = append(uses, Fact{"time limit", spell(s.took.Round(time.Second)) + " of " + spell(most)})
	}
	if free, known := FreeSpace(c.Cfg.Out); known && c.Cfg.MinFree > 0 {
		uses = append(uses, Fact{"disk", Size(free) + " free"})
	}
	return uses
}
