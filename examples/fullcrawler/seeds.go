package main

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// seedAnswers counts the seeds that were visited, and the visits to any page that got an answer.
type seedAnswers struct {
	visited, answered atomic.Int64

	given   stage.Set // seeds that were discovered in this run, as given and in canonical form
	targets sync.Map  // of redirects, by seed
}

// leads reports whether a redirect widens the scope: it is the first one of a seed, or of where that leads,
// or goes where that did.
func (c *crawler) leads(from, target string) bool {
	if !c.Leading.Has(from) {
		return false
	}
	first, _ := c.seeds.targets.LoadOrStore(from, target)
	if first == target {
		c.Leading.Add(target)
	}
	return first == target
}

// note records the fate of an item.
func (s *seedAnswers) note(it stage.Item, fate stage.Fate) {
	if it.Seeded() && fate != stage.Interrupted {
		s.visited.Add(1)
	}
	switch fate {
	case stage.Interrupted, stage.Unwanted, stage.HostFull, stage.BadURL, stage.UnknownHost, stage.Unresolved, stage.BlockedAddress, stage.Refused,
		stage.TurnedAway, stage.TimedOut, stage.TLSFailed, stage.NotHTTP, stage.RobotsUnreachable:
	default:
		s.answered.Add(1)
	}
}

// errNoAnswer makes the status of a crawl that got nowhere that of a failure.
var errNoAnswer = errors.New(
	"no seed has answered: correct the seeds, or see to the network, and start again")

// silence returns an error if seeds were visited, and nothing has ever answered in this crawl.
func (c *crawler) silence() error {
	if c.seeds.visited.Load() > 0 && c.seeds.answered.Load() == 0 && c.Hosts.Fetched() == 0 {
		return errNoAnswer
	}
	return nil
}
