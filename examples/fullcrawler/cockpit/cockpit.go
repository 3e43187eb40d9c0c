// Package cockpit is what an operator of fullcrawler sees and touches: flags, the directory of a
// crawl, the commands that work in it, the ledger of fates, counts, the progress line, the live
// page and the summary. The crawl itself is in package main.
//
// [Crawl] has the parts of a crawl that are looked at; the crawler embeds it. All else is used
// before a crawl runs, or without one.
package cockpit

import (
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/hostcache/resolve"
)

// A Crawl is what an operator sees of a crawl, while it runs and at its end. Its fields are set
// first. Its methods are safe for concurrent use.
type Crawl struct {
	Cfg      Config
	Clock    stage.Clock
	Pages    *stage.Pages
	Hosts    *stage.HostBook
	Robots   *stage.Robots
	Rhythms  *stage.Rhythms
	Order    *stage.Order // nil if items are taken in the order in which they are found
	Uplink   *stage.Uplink
	Resolver *resolve.Resolver
	Polite   *stage.Politeness
	Store    *archive.Archive // nil if nothing is kept
	Filter   stage.Filter
	Tally    *tally
	Retries  stage.Retries
	Log      *slog.Logger
	Say      func(string)   // to whoever watches the terminal
	Paused   stage.Underway // hosts, by the operator
	Finder   *stage.Finder
	Places   stage.Places  // of the visits that are under way
	Room     chan struct{} // has an element for each page in flight

	Servers  []*http.Server
	Warnings []string // before there was somebody to hear them

	opened bool         // the scheduler knows what it knew
	given  atomic.Int64 // visits that were begun when politeness was saved
}

// Why a crawl ends before its queue is empty.
var (
	ErrPageLimit   = errors.New("page limit reached")
	ErrByteLimit   = errors.New("byte limit reached")
	ErrTimeLimit   = errors.New("time limit reached")
	ErrDiskLimit   = errors.New("disk nearly full")
	ErrMemoryLimit = errors.New("memory nearly full")
	ErrStopped     = errors.New("interrupted")

	// ErrReopen is wrapped where the same command has to begin anew at once.
	ErrReopen = errors.New("the pages are opened again")
)

// Paused says whether a crawl ended because it was told to.
func Paused(err error) bool {
	for _, limit := range []error{
		ErrPageLimit, ErrByteLimit, ErrTimeLimit, ErrDiskLimit, ErrMemoryLimit, ErrStopped, ErrReopen,
	} {
		if errors.Is(err, limit) {
			return true
		}
	}
	return false
}
