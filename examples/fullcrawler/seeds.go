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

	given   sync.Map // seeds that were discovered in this run
	targets sync.Map // of redirects, by seed
}

// leads reports whether a redirect of a seed is the first one, or leads where that did.
func (s *seedAnswers) leads(seed, target string) bool {
	first, _ := s.targets.LoadOrStore(seed, target)
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
