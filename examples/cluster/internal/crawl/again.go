package crawl

import (
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/revisit"
)

// Fates that exist only in a cluster.
const (
	postponed stage.Fate = "postponed (the host or its address has enough queued)"
	gaveUp    stage.Fate = "given up after all retries"
	refused   stage.Fate = "on the operator's deny list"
)

// mayPass are the fates that a later visit may change.
var mayPass = map[stage.Fate]bool{
	stage.ServerError: true, stage.SentAway: true, stage.Unresolved: true, stage.Refused: true,
	stage.TurnedAway: true, stage.TimedOut: true, stage.RobotsUnreachable: true,
	stage.QueueFull: true, stage.Unstored: true,
}

// DefaultRetries is how often a page is retried by default.
const DefaultRetries = 5

// maxRetry bounds the delay between two tries. It is shorter than the time after which a plan gives
// up waiting for a visit.
const maxRetry = 24 * time.Hour

// ownFault is how long a page waits after a failure of this machine.
const ownFault = time.Minute

// next records the result of a visit in s, and returns when the page is due again. After a success
// that depends on its history; after a failure the delay doubles. The zero time means never. The
// page is not due before notBefore, which the server may have asked for.
func (o *Options) next(fate stage.Fate, s *stage.State, at, notBefore time.Time) (due time.Time) {
	had := !s.History.Last().IsZero()
	switch {
	case fate == stage.Interrupted:
		due = at.Add(ownFault)
	case fate.Page(), fate == stage.Unchanged, fate == stage.HardlyChanged,
		fate == stage.Redirected, fate == stage.Listed:
		s.Failures = 0
		if o.Revisit <= 0 {
			return time.Time{}
		}
		due = at.Add(revisit.Bayes{Min: o.Revisit}.Next(s.History))
	case fate == refused, fate == stage.Unwanted, fate == stage.HostFull:
		return time.Time{}
	case !mayPass[fate] && (!had || o.Revisit <= 0):
		return time.Time{}
	default:
		s.Failures++
		if s.Failures > o.Retries && (!had || o.Revisit <= 0) {
			return time.Time{}
		}
		delay := fate.Retry()
		if o.Retry > 0 {
			delay = o.Retry
		}
		due = at.Add(min(delay<<min(s.Failures-1, 16), maxRetry))
	}
	if due.Before(notBefore) {
		due = notBefore
	}
	// A plan counts whole seconds, and must not be early.
	return due.UTC().Truncate(time.Second).Add(time.Second)
}

// report returns the item that tells the page's partition of dedupe the result of a visit. It
// returns false if the partition need not know: it has no plan for the page, and there is no second
// visit.
func report(it message.Item, s stage.State, due time.Time) (message.Item, bool) {
	if due.IsZero() && it.Round == 0 && !it.Again {
		return message.Item{}, false
	}
	return message.Item{
		Kind: message.Visited, URL: it.URL, Round: it.Round, Due: due,
		State: stage.AppendRecord(nil, knownOf(it), s),
	}, true
}

// stateOf returns the state of an item's page, empty if it cannot be decoded.
func stateOf(it message.Item) stage.State {
	if it.State == nil {
		return stage.State{}
	}
	_, s, err := stage.ReadRecord(it.URL, it.State)
	if err != nil {
		return stage.State{}
	}
	return s
}
