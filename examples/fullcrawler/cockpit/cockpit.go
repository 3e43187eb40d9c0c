// Package cockpit has everything that an operator of fullcrawler sees or sets: flags, the directory
// of a crawl and the commands that work in it, the ledger of fates, counts, the progress line, the
// live page and the summary. The crawl itself is in package main.
//
// [Crawl] has the parts of a crawl that can be inspected; the crawler embeds it. The rest is used
// before a crawl runs, or without one.
package cockpit

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/hostcache/resolve"
)

// A Crawl is the operator's view of a crawl, while it runs and at its end. Set its fields before
// use. Its methods are safe for concurrent use.
type Crawl struct {
	Cfg      Config
	Clock    stage.Clock
	Pages    *stage.Pages
	Hosts    *stage.HostTable
	Depths   *stage.Depths // nil: the depth does not matter
	Robots   *stage.Robots
	Rhythms  *stage.Rhythms
	Order    *stage.Order // nil: items in order of discovery
	Uplink   *stage.Uplink
	Resolver *resolve.Resolver
	Polite   *stage.Politeness
	Store    *archive.Archive // nil: no archive
	Filter   stage.Filter
	Tally    *tally
	Retries  stage.Retries
	Log      *slog.Logger
	Say      func(string) // prints on the terminal

	// VisitNow visits a page before it is due, or adds it, and says when it will be visited.
	VisitNow func(url string) (says string)

	Paused  stage.Set   // hosts, by the operator
	pausing sync.Mutex  // held to change and save them
	Leading stage.Set   // seeds, and the targets of their redirects that have widened the scope
	Barred  atomic.Bool // pages that wait may be barred by the lists
	Finder  *stage.Finder
	Places  *stage.Places // of visits in progress
	Room    chan struct{} // has an element for each page in flight
	Quota   *stage.Quota  // of -pages

	Reopened bool // the crawl goes on, if need be without its log
	Servers  []*http.Server
	Warnings []string // from before the log was open

	log       *logFile
	rewritten bool   // the pages have just been rewritten
	wider     bool   // Reload has made the filters wider, and the pages are reopened
	liveToken string // of the live page; "": it needs none

}

// Why a crawl ends before its queue is empty.
var (
	ErrPageLimit   = errors.New("page limit reached")
	ErrByteLimit   = errors.New("byte limit reached")
	ErrTimeLimit   = errors.New("time limit reached")
	ErrDiskLimit   = errors.New("disk nearly full")
	ErrMemoryLimit = errors.New("memory nearly full")
	ErrStopped     = errors.New("interrupted")

	// ErrReopen is wrapped if the same command must start over immediately.
	ErrReopen = errors.New("reopening the pages")
)

// Paused reports whether a crawl ended by a limit or an interrupt, rather than by a failure.
func Paused(err error) bool {
	return isAny(err, ErrPageLimit, ErrByteLimit, ErrTimeLimit, ErrDiskLimit, ErrMemoryLimit, ErrStopped, ErrReopen)
}

// isAny reports whether an error is one of several.
func isAny(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}
